"""Rollouts of models that draw."""
