"""Draws samples from a flow that is being trained."""
