"""Untrusted work in processes that can be killed."""
