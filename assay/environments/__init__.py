"""Worlds that a policy acts in over several turns."""
