"""Answers that are places: boxes, points, intervals of time."""
