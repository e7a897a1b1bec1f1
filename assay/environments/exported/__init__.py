"""Environments of ours as the classes that other libraries play."""
