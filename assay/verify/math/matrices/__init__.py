"""Formulas with matrices and vectors, whose products do not commute."""
