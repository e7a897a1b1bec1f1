"""Answers compared as text: exact, normalised, by overlap, by form."""
