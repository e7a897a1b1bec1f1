"""Rewards from the policy's own probabilities."""
