"""Verifiers: is it right, and how do we know?"""

from assay.verify import countdown, exact, gym, none, number
from assay.verify.kind import KindVerifier

__all__ = ["KindVerifier", "countdown", "exact", "gym", "none", "number"]
