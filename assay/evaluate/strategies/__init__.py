"""Strategies at test time, compared: accuracy against what it costs."""
