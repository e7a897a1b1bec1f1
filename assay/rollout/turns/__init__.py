"""Rollouts of several turns: an environment is played, and what of it becomes an episode."""
