"""Signals: detached quantities that cost a model pass, computed once per step for all who need them."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError, nearest
from assay.policies.base import Policy

SOURCES = {
    "policy_logprobs": ("policy", "logprobs"),
    "entropy": ("policy", "entropy"),
    "reference_logprobs": ("reference", "logprobs"),
    "reference_entropy": ("reference", "entropy"),
}
"""Signal name -> (which model, which quantity); every signal is ``(N, T)``, after the sampling temperature."""


def check_signals(needs: Collection[str], live: Collection[str], policy: Policy) -> None:
    """Raise UsageError for a signal nobody can compute."""
    for name in needs:
        if name not in SOURCES:
            raise UsageError(f"the method needs the signal {name!r}, which is not known{nearest(name, SOURCES)}")
    wanted = {SOURCES[n][1] for n in needs if SOURCES[n][1] != "logprobs"} | set(live)
    for name in wanted - policy.quantities:
        raise UsageError(f"the method needs {name!r}, which a {type(policy).__name__} policy does not give")


@torch.no_grad()
def compute_signals(
    batch: Batch,
    needs: Collection[str],
    models: dict[str, Policy],
    temperature: float,
    token_budget: int,
) -> None:
    """Fill ``batch.signals`` with the union of ``needs``: one pass per model over the batch.

    Args:
        models: ``policy`` and, when some signal wants it, ``reference``.
    """
    by_model: dict[str, list[str]] = {}
    for name in sorted(needs):
        by_model.setdefault(SOURCES[name][0], []).append(name)
    for model, signals in by_model.items():
        policy = models[model]
        live = {SOURCES[s][1] for s in signals} - {"logprobs"}
        tables: dict[str, Tensor] = {s: torch.zeros_like(batch.logprobs) for s in signals}
        for rows in policy.micro_batches(batch, token_budget):
            output = policy.forward(batch.rows(rows), live, temperature)
            for signal in signals:
                quantity = SOURCES[signal][1]
                values = output.logprobs if quantity == "logprobs" else output.live[quantity]
                tables[signal][rows[:, None], torch.arange(values.shape[1])] = values.to(tables[signal])
        batch.signals.update(tables)
