"""Inference: what do we do at test time?"""

from assay.inference import sample

__all__ = ["sample"]
