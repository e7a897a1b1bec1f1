"""Puzzles whose solutions are videos: what of a video is right."""
