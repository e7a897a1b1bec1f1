"""Rewards for the words of a response."""
