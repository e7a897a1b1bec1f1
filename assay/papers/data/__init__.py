"""Papers of the family data."""
