"""Checkers of logic and search puzzles: an answer is judged by the constraints, so every valid one is right."""
