"""Policies of numbers: they read a vector and decide on one, a step of a world at a time."""
