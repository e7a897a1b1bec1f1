"""Sampled estimators of the Kullback-Leibler divergence between two policies."""

from __future__ import annotations

from assay.ops import Estimator, kl_estimate

__all__ = ["Estimator", "kl_estimate"]
