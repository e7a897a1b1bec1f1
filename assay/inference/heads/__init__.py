"""Heads on hidden states: trained, and read."""
