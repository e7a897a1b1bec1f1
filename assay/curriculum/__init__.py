"""Curricula: what do we ask next, how often, with which hint?"""

from assay.curriculum import uniform

__all__ = ["uniform"]
