"""Rewards of what was drawn."""
