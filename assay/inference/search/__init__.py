"""Strategies that search over the steps of a response."""
