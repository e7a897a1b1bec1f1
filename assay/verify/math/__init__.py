"""The ``math`` verifier: final answers compared as mathematics."""

from assay.verify.math.verifier import Math

__all__ = ["Math"]
