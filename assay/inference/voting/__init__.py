"""Strategies that let responses vote."""
