"""A policy that draws: a rectified flow to points, pictures or videos, whose noisy steps are its decisions."""
