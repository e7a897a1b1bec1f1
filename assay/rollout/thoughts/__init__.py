"""Thoughts that are ended where that serves best."""
