"""Papers of the family process."""
