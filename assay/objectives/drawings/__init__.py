"""Objectives of models that draw."""
