"""Worlds that others made, played unchanged."""
