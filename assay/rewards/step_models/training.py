"""One trainer for all that scores steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from assay.errors import UsageError
from assay.rewards.step_models.examples import Row, StepExample, StepPair
from assay.rewards.step_models.losses import Compared, Loss, Strength, labelled_loss, pair_loss

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
Logits = list[Tensor]


@runtime_checkable
class StepModel(Protocol):
    """Gives every step of a solution a score z; s(z) is how sure it is that the step is right."""

    def read(self, rows: Sequence[StepExample]) -> list[tuple[Tensor, Tensor]]:
        """Return z ``(K,)`` of each solution's steps and what they were read off, ``(K, D)``, with a gradient."""
        ...

    def train(self, learning: bool) -> None:
        """Begin to learn, or end it."""
        ...

    def views(self, rows: Sequence[StepExample]) -> list[Logits]:
        """Return the scores that a loss is taken of, once for each way of reading the solutions."""
        ...

    def groups(self, lr: float, trunk_lr: float) -> list[dict[str, object]]:
        """Return what learns, for an optimiser: what is new at ``lr``, and above 0 the model below at ``trunk_lr``."""
        ...

    def parts(self, rows: Sequence[StepExample]) -> list[list[int]]:
        """Divide solutions into those that are read in one pass."""
        ...

    def save(self, folder: Path) -> None:
        """Write what :func:`assay.rewards.step_models.saved.load_prm` reads into a folder."""
        ...


@dataclass(frozen=True, slots=True)
class StepTraining:
    """How a scorer of steps is trained: L = mean over labelled steps, or over pairs, of a loss, by AdamW.

    Args:
        loss: of labelled steps, see :func:`~assay.rewards.step_models.losses.labelled_loss`.
        compared, strength: of pairs, what of them is compared and how much better the better one is counts, see
            :func:`~assay.rewards.step_models.losses.pair_loss`.
        epochs, batch: passes over the data, and solutions or pairs of an optimiser step.
        lr, trunk_lr: of what is new and of the model below, which stays as it is where that is 0.
        weight_decay: of AdamW.
        warmup: share of the steps over which both rates rise from 0.
        wrong_weight: how much a wrong step weighs.
        margin: of the ranking within a solution.

    Raises:
        UsageError: an option out of range.
    """

    loss: Loss = "soft"
    compared: Compared = "steps"
    strength: Strength = "ignored"
    epochs: int = 20
    batch: int = 16
    lr: float = 0.01
    trunk_lr: float = 0.0
    weight_decay: float = 0.01
    warmup: float = 0.0
    wrong_weight: float = 1.0
    margin: float = 4.0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or self.lr <= 0 or self.trunk_lr < 0:
            raise UsageError(
                "a scorer of steps needs epochs and batch of at least 1, lr above 0, trunk_lr not below it"
            )
        if self.wrong_weight <= 0 or self.margin < 0 or self.weight_decay < 0 or not 0 <= self.warmup < 1:
            raise UsageError(
                "a scorer of steps needs wrong_weight above 0, margin and weight_decay not below it, warmup in [0, 1)"
            )

    def fit(self, model: StepModel, data: Sequence[Row], rng: np.random.Generator) -> list[float]:
        """Train ``model`` in place; return the mean loss of each epoch.

        Raises:
            UsageError: nothing labels a step and there is no pair.
        """
        useful = [row for row in data if isinstance(row, StepPair) or row.known]
        if not useful:
            raise UsageError("the scorer of steps has nothing to learn from: no example labels a step")
        sets = model.groups(self.lr, self.trunk_lr)
        optimizer = torch.optim.AdamW(sets, lr=self.lr, weight_decay=self.weight_decay)
        total = self.epochs * -(-len(useful) // self.batch)
        rising = max(int(self.warmup * total), 1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / rising, 1.0))
        model.train(True)
        try:
            return descend(
                useful, lambda rows: self.pieces(model, rows), optimizer, self.epochs, self.batch, rng, schedule
            )
        finally:
            model.train(False)

    def pieces(self, model: StepModel, rows: Sequence[Row]) -> Iterator[Tensor]:
        """Yield the summands of the loss of a mini-batch, one for each pass."""
        singles = [row for row in rows if isinstance(row, StepExample)]
        pairs = [row for row in rows if isinstance(row, StepPair)]
        count = sum(row.known for row in singles) + len(pairs)
        for part in model.parts(singles):
            chosen = [singles[i] for i in part]
            views = model.views(chosen)
            terms = [
                labelled_loss(z, row.labels, self.loss, self.wrong_weight, self.margin)
                for found in views
                for z, row in zip(found, chosen, strict=True)
            ]
            yield torch.stack(terms).sum() / (count * len(views))
        for part in model.parts([row.better for row in pairs]):
            mine = [pairs[i] for i in part]
            views = model.views([*(row.better for row in mine), *(row.worse for row in mine)])
            terms = [
                pair_loss(found[i], found[len(mine) + i], row.fork, self.compared, row.strength, self.strength)
                for found in views
                for i, row in enumerate(mine)
            ]
            yield torch.stack(terms).sum() / (count * len(views))


def descend(
    data: Sequence[T],
    pieces: Callable[[list[T]], Iterable[Tensor]],
    optimizer: torch.optim.Optimizer,
    epochs: int,
    batch: int,
    rng: np.random.Generator,
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
) -> list[float]:
    """Take optimiser steps over shuffled mini-batches; return the mean loss of each epoch.

    Args:
        data: examples.
        pieces: of a mini-batch, the summands of its loss, each with a graph of its own, so that one is in memory.
        optimizer: of what learns.
        epochs, batch: passes over the data, and examples of a step.
        rng: orders the examples.
        schedule: of the learning rate, by steps.
    """
    history = []
    for _ in range(epochs):
        losses, order = [], rng.permutation(len(data)).tolist()
        for start in range(0, len(order), batch):
            optimizer.zero_grad(set_to_none=True)
            total = 0.0
            for piece in pieces([data[i] for i in order[start : start + batch]]):
                piece.backward()
                total += piece.item()
            optimizer.step()
            if schedule is not None:
                schedule.step()
            losses.append(total)
        history.append(sum(losses) / len(losses))
    return history
