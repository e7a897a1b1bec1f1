"""Advantages that a number of the whole group is multiplied with."""
