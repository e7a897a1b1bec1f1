"""Settings of one decision, or of a few that do not build on each other."""
