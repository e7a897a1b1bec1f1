"""Language models that see pictures."""
