"""Judges whose failings are known, and what is told them."""
