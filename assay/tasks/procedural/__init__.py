"""Endless families of tasks whose rules judge answers: any that keeps to them is right."""
