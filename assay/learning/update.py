"""One optimiser step on a mini-batch, its gradient gathered over micro-batches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import RunError
from assay.method.checked import blamed, checked_loss, name_of
from assay.policies.base import Policy
from assay.scale.ranks import Ranks

ALONE = Ranks()


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


def read_tokens(batch: Batch, rows: Int[Tensor, "M"]) -> int:
    """Tokens that a pass over some rows reads, a group's prompt counted once."""
    index = rows.tolist()
    prompts = {int(batch.prompt_group[i]): len(batch.episodes[i].prompt) for i in index}
    return sum(batch.episodes[i].reading for i in index) + sum(prompts.values())


def fair_budget(batch: Batch, budget: int, size: int) -> int:
    """Return the tokens of a micro-batch: ``budget``, or less where that would leave one of ``size`` ranks idle."""
    if size == 1:
        return budget
    return min(budget, max(1, -(-read_tokens(batch, torch.arange(len(batch))) // size)))


def turns(costs: Sequence[float], ranks: Ranks) -> Iterator[tuple[int, bool]]:
    """Yield which part this rank passes over at each turn, and whether it counts; all ranks have as many turns."""
    shares = ranks.share(costs)
    cheapest = min(range(len(costs)), key=costs.__getitem__, default=0)
    for turn in range(max(map(len, shares))):
        mine = shares[ranks.rank]
        yield (mine[turn], True) if turn < len(mine) else (cheapest, False)


def whole(value: Tensor) -> Tensor:
    """The value of a tensor of which ranks may hold parts."""
    gather = getattr(value, "full_tensor", None)
    return value if gather is None else gather()


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
    ranks: Ranks = ALONE,
) -> tuple[dict[str, float], int]:
    """Take one optimiser step that minimises ``objective`` over a mini-batch.

    With several ranks each passes over other micro-batches, as many as the busiest: a rank that has no more passes over
    one that counts for nothing, because a pass of a sharded policy is one of all ranks. The policy adds gradients up.

    Args:
        live: quantities with a gradient that the objective reads from ``batch.live``.
        temperature: divides the logits, as when sampling.
        token_budget: tokens per micro-batch.
        max_grad_norm: L2 norm that gradients are scaled down to.
        skip_idle: leave out the pass over samples whose advantages are all zero; right only for an objective to which
            they add neither value nor gradient. They still count in the denominators.
        ranks: that take this step together, on the same batch.

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
    parts = policy.micro_batches(work, fair_budget(work, token_budget, ranks.size)) if len(index) else []
    parts = whole_groups(parts, work) if getattr(objective, "whole_groups", False) else parts
    found: list[tuple[int, float, dict[str, float], int]] = []
    for part, counts in turns([read_tokens(work, rows) for rows in parts], ranks):
        micro = work.rows(parts[part])
        output = policy.forward(micro, live, temperature)
        micro = micro.to(output.logprobs.device)
        micro.live = output.live
        with blamed("objective", objective):
            loss = checked_loss(objective, objective(output.logprobs, micro))
        (loss.value if counts else 0 * loss.value).backward()
        if counts:
            found.append((part, loss.value.item(), loss.metrics, int(micro.mask.sum())))
    # In the order of the parts, whoever had them: sums come out the same on every rank.
    for _, value, metrics, count in sorted((x for own in ranks.gather(found) for x in own), key=lambda x: x[0]):
        averages.add(metrics, count)
        total += value
        tokens += count
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if len(index) == 0 and bool(idle.any()):
        # The gradient is zero, not absent: momentum and decay go on as if the pass had been made.
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter, dtype=getattr(parameter, "grad_dtype", None))
    norm = float(whole(torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)))
    if not math.isfinite(total) or not math.isfinite(norm):
        # Rewards and advantages that are not finite were refused before.
        raise RunError(
            f"loss {total} with gradient norm {norm} from objective {name_of(objective)}: the update was not applied; "
            "lower train.lr, or look at what the objective does with large ratios"
        )
    optimizer.step()
    return {"loss": total, "grad_norm": norm, **averages.means()}, tokens
