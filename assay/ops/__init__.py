"""Tensor helpers shared by the seams; those on turns are in :mod:`assay.ops.turns`."""

from assay.ops.groups import (
    broadcast,
    group_count,
    group_mean,
    group_std,
    group_sum,
    masked_mean,
    outcome,
    row_mean,
    whiten,
)
from assay.ops.losses import IMPOSSIBLE, Aggregation, Estimator, aggregate, kl_estimate, log_ratio

__all__ = [
    "IMPOSSIBLE",
    "Aggregation",
    "Estimator",
    "aggregate",
    "broadcast",
    "group_count",
    "group_mean",
    "group_std",
    "group_sum",
    "kl_estimate",
    "log_ratio",
    "masked_mean",
    "outcome",
    "row_mean",
    "whiten",
]
