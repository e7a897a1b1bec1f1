"""Losses in which a turn is one action."""
