"""Is one method better than another? Runs at an equal budget with an equal sweep, and what may be said of them."""

from assay.compare.plan import Plan, read_plan
from assay.compare.run import compare

__all__ = ["Plan", "compare", "read_plan"]
