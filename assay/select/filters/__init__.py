"""Filters of prompts by one number of each, on a step's prompts or on those of all the data."""
