"""Rewards made of other rewards, and penalties beside them."""
