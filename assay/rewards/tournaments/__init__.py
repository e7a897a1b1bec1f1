"""Responses of a group ranked by playing against each other."""
