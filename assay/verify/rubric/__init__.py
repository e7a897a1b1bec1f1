"""Rubrics as data: criteria, how a judge is asked for marks and read, and what the marks come to."""
