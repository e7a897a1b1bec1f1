"""Who says how good a response is."""
