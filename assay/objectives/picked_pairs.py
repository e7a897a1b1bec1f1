"""A preference loss over just the pairs that a selection has picked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.objectives.preference import DPO, IPO, KTO, SimPO, pairs
from assay.registry import build, part
from assay.select.pairs import ID, OVER, WORTH


@part("objective", "picked_pairs")
@dataclass(frozen=True, slots=True)
class PickedPairs:
    """The mean over groups of the mean over a group's picked pairs of what ``loss`` makes of a pair.

    Select ``pairs`` says which pairs these are, and leaves the other samples out; a pair of which one sample was left
    out since is not learned from. Where nothing was picked, they are all pairs of a group with R_w > R_l. With ``kto``
    the chosen are desirable and the rejected are not, and it is the mean over samples. Where the selection gives pairs
    weights of their own (signal :data:`~assay.select.pairs.WORTH`), each pair's loss is multiplied by its own.
    Advantages are not used.

    Args:
        loss: objective ``dpo``, ``simpo``, ``ipo`` or ``kto``, by reward.

    Raises:
        UsageError: another objective.
    """

    loss: Any = "dpo"

    whole_groups = True
    reads = "nothing"

    def __post_init__(self) -> None:
        loss = build("objective", self.loss)
        if not isinstance(loss, DPO | SimPO | IPO | KTO) or loss.by != "reward":
            raise UsageError("objective 'picked_pairs': loss must be dpo, simpo, ipo or kto, and by = \"reward\"")
        object.__setattr__(self, "loss", loss)

    @property
    def needs(self) -> frozenset[Any]:
        found: frozenset[Any] = self.loss.needs
        return found

    def prepare(self, batch: Batch) -> None:
        """Let the loss look at a mini-batch before it is split."""
        getattr(self.loss, "prepare", lambda _: None)(batch)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        better, worse, worth = weighed(batch)
        if not isinstance(self.loss, KTO):
            found: Loss = self.loss.over(better, worse, logprobs, batch, worth)
            return found
        # A sample of several pairs is there as often, with its weight divided among them.
        rows = torch.cat([better, worse])
        one = batch.rows(rows)
        one.rewards = torch.cat([torch.ones_like(better), torch.zeros_like(worse)]).to(batch.rewards)
        one.weights = one.weights / torch.bincount(rows, minlength=len(batch))[rows]
        if worth is not None:
            one.weights = one.weights * torch.cat([worth, worth])
        one.totals = batch.totals or batch.count()
        loss: Loss = self.loss(logprobs[rows][:, : one.tokens.shape[1]], one)
        loss.metrics["pairs"] = float(len(better))
        return loss


def picked(batch: Batch) -> tuple[Int[Tensor, "P"], Int[Tensor, "P"]]:
    """Return the rows of the chosen and of the rejected of each picked pair both of which are still active."""
    better, worse, _ = weighed(batch)
    return better, worse


def weighed(batch: Batch) -> tuple[Int[Tensor, "P"], Int[Tensor, "P"], Float[Tensor, "P"] | None]:
    """Return what :func:`picked` does, and the weights of these pairs, ``None`` where they have none of their own."""
    if OVER not in batch.signals or not len(batch):
        better, worse = pairs(batch.rewards, batch).nonzero(as_tuple=True)
        return better, worse, None
    over, here = batch.signals[OVER], batch.signals[ID]
    use = batch.active & (batch.lengths > 0)
    # The row of each number, -1 for those that are not here; the last place stands for a number of -1.
    row = torch.full((int(torch.cat([over.flatten(), here]).max()) + 2,), -1, device=here.device)
    row[here[use]] = torch.arange(len(here), device=here.device)[use]
    beaten = torch.where(use[:, None], row[over], -1)
    better, place = (beaten >= 0).nonzero(as_tuple=True)
    worth = batch.signals[WORTH][better, place] if WORTH in batch.signals else None
    return better, beaten[better, place], worth
