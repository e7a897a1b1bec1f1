"""Papers of the family rewards."""
