"""Rewards for length."""
