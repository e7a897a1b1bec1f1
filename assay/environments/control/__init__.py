"""Worlds of numbers: a point mass, what spaces are as vectors, and recorded steps to learn from offline."""
