"""Small Python packages with a bug in them."""
