"""Papers of the family judges."""
