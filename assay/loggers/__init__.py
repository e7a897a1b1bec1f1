"""Loggers: where a run's metrics and rollouts go besides its own folder."""
