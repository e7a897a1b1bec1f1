"""What steps are worth, and scorers that learn it."""
