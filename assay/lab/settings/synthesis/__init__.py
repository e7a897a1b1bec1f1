"""Settings about where tasks come from."""
