"""Rewards from models and people that judge."""
