"""Proofs and their analyses, scored 0, 1/2 or 1."""
