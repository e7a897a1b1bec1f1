"""A method: one part per seam, by name or made, and what refuses parts that do not fit each other."""

from assay.method.base import SEAMS, Method
from assay.method.named import make_method

__all__ = ["SEAMS", "Method", "make_method"]
