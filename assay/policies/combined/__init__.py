"""Policies made of several."""
