"""Credit: which tokens earned the reward?"""

from assay.credit import grpo

__all__ = ["grpo"]
