"""The evaluate seam: how good is it, how sure are we?"""

from assay.evaluate.asking import evaluate
from assay.records.evaluation import Difference, Evaluation, difference
from assay.records.sample import Sample
from assay.statistics.intervals import Interval, mean_interval, paired_interval
from assay.statistics.pass_at_k import pass_at_k, wilson

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
