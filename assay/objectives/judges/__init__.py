"""Objectives of judges."""
