"""Verifiers of what was drawn."""
