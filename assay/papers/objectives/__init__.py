"""Papers of the family objectives."""
