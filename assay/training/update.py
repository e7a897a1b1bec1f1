"""One optimiser step on a mini-batch, its gradient gathered over micro-batches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection

import torch
from jaxtyping import Int
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import RunError
from assay.policies.base import Policy


class Averages:
    """Running means of metrics, weighted by how many tokens each was taken over."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._weights: dict[str, float] = defaultdict(float)

    def add(self, metrics: dict[str, float], weight: float = 1.0) -> None:
        for key, value in metrics.items():
            self._sums[key] += value * weight
            self._weights[key] += weight

    def means(self) -> dict[str, float]:
        return {k: self._sums[k] / self._weights[k] for k in self._sums if self._weights[k]}


def mini_batches(batch: Batch, parts: int, order: Int[Tensor, "G"]) -> list[Batch]:
    """Split a batch by whole prompt groups, in ``order``, into ``parts`` of nearly equal size, each with own totals."""
    out = []
    for chosen in order.tensor_split(parts):
        rows = torch.isin(batch.prompt_group, chosen).nonzero()[:, 0]
        if len(rows):
            part = batch.rows(rows)
            part.totals = part.count()
            out.append(part)
    return out


def whole_groups(parts: list[Int[Tensor, "M"]], batch: Batch) -> list[Int[Tensor, "M"]]:
    """Move the samples of each advantage group into the part that holds its first one."""
    home: dict[int, int] = {}
    rows: list[list[int]] = [[] for _ in parts]
    for i, part in enumerate(parts):
        for row in part.tolist():
            rows[home.setdefault(int(batch.group[row]), i)].append(row)
    return [torch.tensor(part, dtype=torch.int64) for part in rows if part]


def update(
    policy: Policy,
    objective: Callable[[Tensor, Batch], Loss],
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    *,
    live: Collection[str] = (),
    temperature: float = 1.0,
    token_budget: int = 8192,
    max_grad_norm: float = 1.0,
    skip_idle: bool = False,
) -> tuple[dict[str, float], int]:
    """Take one optimiser step that minimises ``objective`` over a mini-batch.

    Args:
        live: quantities with a gradient that the objective reads from ``batch.live``.
        temperature: divides the logits, as when sampling.
        token_budget: tokens per micro-batch.
        max_grad_norm: L2 norm that gradients are scaled down to.
        skip_idle: leave out the pass over samples whose advantages are all zero; right only for an objective to which
            they add neither value nor gradient. They still count in the denominators.

    Returns:
        Metrics (``loss``, ``grad_norm`` before scaling, the objective's own), and the number of tokens learned from.

    Raises:
        RunError: the loss or the gradient is not finite; the weights are left as they were.
    """
    optimizer.zero_grad(set_to_none=True)
    used = batch.active & (batch.lengths > 0)
    idle = used & (batch.advantages == 0).all(-1) if skip_idle else torch.zeros_like(used)
    index = (used & ~idle).nonzero()[:, 0]
    averages, total, tokens = Averages(), 0.0, 0
    getattr(objective, "prepare", lambda _: None)(batch)
    work = batch.rows(index)
    parts = policy.micro_batches(work, token_budget) if len(index) else []
    for rows in whole_groups(parts, work) if getattr(objective, "whole_groups", False) else parts:
        micro = work.rows(rows)
        output = policy.forward(micro, live, temperature)
        micro = micro.to(output.logprobs.device)
        micro.live = output.live
        loss = objective(output.logprobs, micro)
        loss.value.backward()
        count = int(micro.mask.sum())
        averages.add(loss.metrics, count)
        total += loss.value.item()
        tokens += count
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if len(index) == 0 and bool(idle.any()):
        # The gradient is zero, not absent: momentum and decay go on as if the pass had been made.
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm))
    if not math.isfinite(total) or not math.isfinite(norm):
        raise RunError(
            f"loss {total} with gradient norm {norm}: the update was not applied; lower train.lr or check the reward"
        )
    optimizer.step()
    return {"loss": total, "grad_norm": norm, **averages.means()}, tokens
