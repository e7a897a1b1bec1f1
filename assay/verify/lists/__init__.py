"""Several items: sets and rankings."""
