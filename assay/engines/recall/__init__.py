"""Responses that were made before, in place of new ones."""
