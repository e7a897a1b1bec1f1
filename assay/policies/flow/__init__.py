"""A policy that draws: a rectified flow from noise to points, pictures or videos, whose noisy steps are its decisions."""
