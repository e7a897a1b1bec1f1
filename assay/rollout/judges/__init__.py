"""Rollouts that teach judges."""
