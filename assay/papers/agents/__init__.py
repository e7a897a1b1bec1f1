"""Papers of the family agents."""
