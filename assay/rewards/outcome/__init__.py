"""Rewards for the final answer."""
