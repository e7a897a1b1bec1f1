"""Engines: who generates."""
