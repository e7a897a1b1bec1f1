"""Objectives: what do we minimise?"""

from assay.objectives import clip, sft

__all__ = ["clip", "sft"]
