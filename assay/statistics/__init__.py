"""Statistics: what do a few runs, tasks and samples say? NumPy and SciPy only."""
