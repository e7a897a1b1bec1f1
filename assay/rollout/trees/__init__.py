"""Trees that are grown for each prompt."""
