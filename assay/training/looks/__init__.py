"""Callbacks that look at what a policy can do as it learns."""
