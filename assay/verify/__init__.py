"""Verifiers: is it right, and how do we know?"""

from assay.verify.kind import KindVerifier

__all__ = ["KindVerifier"]
