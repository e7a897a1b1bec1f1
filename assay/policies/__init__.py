"""Policies: what learns."""
