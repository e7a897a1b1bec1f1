"""Judging an answer with tools at hand."""
