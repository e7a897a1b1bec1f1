"""The evaluate seam: how good is it, how sure are we?"""

from assay.evaluate.evaluation import Difference, Evaluation, Sample, difference, evaluate
from assay.evaluate.intervals import Interval, mean_interval, paired_interval
from assay.evaluate.pass_at_k import pass_at_k, wilson

__all__ = [
    "Difference",
    "Evaluation",
    "Interval",
    "Sample",
    "difference",
    "evaluate",
    "mean_interval",
    "paired_interval",
    "pass_at_k",
    "wilson",
]
