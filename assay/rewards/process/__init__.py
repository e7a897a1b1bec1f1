"""Rewards for steps."""
