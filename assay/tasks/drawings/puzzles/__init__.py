"""Puzzles that are solved in a video, made and solved."""
