"""Models that score the steps of solutions: what they learn from, by which losses, and what they read."""
