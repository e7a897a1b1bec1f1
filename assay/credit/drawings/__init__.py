"""Credit of what was drawn."""
