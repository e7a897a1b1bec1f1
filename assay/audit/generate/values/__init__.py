"""Families of values: exact objects, written in many ways, and others that are not equal to them."""
