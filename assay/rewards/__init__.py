"""Rewards: what is a verdict worth?"""

from assay.rewards import function, verdict, weighted

__all__ = ["function", "verdict", "weighted"]
