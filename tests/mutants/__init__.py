"""Faults put into what papers bring, to see whether the tests of their rows notice."""
