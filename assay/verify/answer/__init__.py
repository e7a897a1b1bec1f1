"""Where in a response the final answer stands."""
