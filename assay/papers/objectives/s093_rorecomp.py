"""S093: update on short right and long wrong responses; the others come back later, from a replay buffer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.ops.turns import own_turns
from assay.registry import build
from assay.select.records import Record, records, restored

SET_ASIDE = "set_aside"
"""Signal ``(N,)``: the weight of a sample that is kept for compensation, 0 for all others."""
THEIR_ADVANTAGES = "set_aside_advantages"
"""Signal ``(N, T)``: advantages of the samples that are set aside."""


@paper(
    "S093",
    "RoRecomp",
    arxiv="2509.25958",
    seams=["credit", "select"],
    essentials={
        "priority batches: of every group its short right and its long wrong responses": "test_the_worked_example",
        "rewards are as they were, and advantages those of the whole group": (
            "test_advantages_are_those_of_the_whole_group"
        ),
        "compensation batches: the other responses come back from a replay buffer, oldest first": (
            "test_the_oldest_samples_come_back_as_they_were"
        ),
        "compensation is given up in the course of training": "test_the_chance_falls_linearly_to_nothing",
        "for agents a response is as long as it has turns": "test_a_response_may_be_measured_by_its_turns",
        "in training priority shortens responses, and compensation keeps more of them right": (
            "test_in_training_priority_shortens_and_compensation_keeps_what_is_right"
        ),
    },
    choices=(
        "half of each kind has priority; a compensation batch is as large as the step's batch",
        "compensation falls linearly over the run; set-aside samples are lost after 4 steps",
        "no priority without a verdict; equal lengths in the order they came",
    ),
)
def rorecomp(alpha: float = 0.5, compensation: float = 1.0, decay: int | None = None) -> Method:
    """GRPO that learns from the short right and the long wrong responses first, with rewards left as they are.

        priority of a group:  its ceil(alpha n+) shortest right and ceil(alpha n-) longest wrong responses
        update 1:  the priority batch, with the advantages of the whole group
        update 2:  when the buffer holds a batch of the others, the oldest batch of it, with probability p

    The advantages are those of the whole groups, so brevity is favoured by what is learned from, not by a reward. The
    compensation batch has the advantages and log-probabilities of when it was sampled; the clipped surrogate bounds how
    far it can pull. With ``alpha = 1`` it is GRPO. Logged under ``replay/``: what the second update was like.

    Args:
        alpha: share of each kind that is learned from at once, in (0, 1]; 0.8 is mild.
        compensation: p, in [0, 1].
        decay: RL steps over which p falls linearly to 0; ``None``: all of the run, 0: it stays. The paper lowers the
            compensation in the course of training; how is not known.

    For agents, ``method.credit = {by = "turn"}`` measures a response by its turns (or spans of another kind).

    Source: RoRecomp (arXiv 2509.25958); its constants are not known, the defaults are choices.
    """
    return Method(credit=Priority(alpha), select=Compensation(compensation, decay))


@dataclass(slots=True, eq=False)
class Priority:
    """Advantages of another credit; samples without priority then have weight 0, and theirs are put by for replay.

    Priority have, of each advantage group, the first ceil(alpha n) of its right responses, shortest first, and of its
    wrong ones, longest first; of equal lengths the earlier. Responses without a verdict are neither.

    Args:
        alpha: in (0, 1].
        credit: a credit part; it sees whole groups.
        by: ``tokens``, ``turn``, or the kind of span that is counted.

    Raises:
        UsageError: ``alpha`` out of range.
    """

    alpha: float = 0.5
    credit: Any = "grpo"
    by: str = "tokens"

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise UsageError(f"credit 'S093': alpha {self.alpha:g} must be in (0, 1]")
        self.credit = build("credit", self.credit)

    @property
    def members(self) -> list[Any]:
        return [self.credit]

    def __getattr__(self, name: str) -> Any:
        # What the inner credit says of itself holds of this one; what it does not say is not said here either.
        if name in ("needs", "group_relative", "level", "rollout", "summary"):
            return getattr(self.credit, name)
        raise AttributeError(name)

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        advantages: Tensor = self.credit(batch)
        rest = batch.active & ~self.priority(batch)
        batch.signals[SET_ASIDE] = torch.where(rest, batch.weights, 0)
        batch.signals[THEIR_ADVANTAGES] = torch.where(rest[:, None], advantages, 0)
        batch.weights = torch.where(rest, 0, batch.weights)
        return torch.where(rest[:, None], 0, advantages)

    def priority(self, batch: Batch) -> Bool[Tensor, "N"]:
        """Say of each sample whether it is learned from at once."""
        lengths = [self.length(batch, i) for i in range(len(batch))]
        first = torch.zeros(len(batch), dtype=torch.bool)
        for group in batch.group[batch.active].unique().tolist():
            rows = ((batch.group == group) & batch.active).nonzero()[:, 0].tolist()
            for passed, sign in ((True, 1), (False, -1)):
                mine = [i for i in rows if batch.verdicts[i].passed is passed]
                mine.sort(key=lambda i: sign * lengths[i])
                first[mine[: math.ceil(self.alpha * len(mine) - 1e-9)]] = True
        return first

    def length(self, batch: Batch, row: int) -> int:
        """Return the length that counts."""
        episode = batch.episodes[row]
        if self.by == "tokens":
            return len(episode.tokens)
        if self.by == "turn":
            return len(own_turns(episode))
        return sum(span.kind == self.by for span in episode.spans)


@dataclass(slots=True)
class Compensation:
    """Weight 1 for every sample; keeps what credit ``S093`` sets aside, and replays it.

    A buffer holds the samples in the order they came, with their advantages and log-probabilities. Once a step it gives
    up its oldest ``size`` samples, if it has as many: with probability p they are one more update, else they are lost.

    Args:
        chance: p, in [0, 1].
        decay: steps over which p falls linearly to 0; ``None``: all of the run, where its length is known; 0: it stays.
        size: samples of a compensation batch; ``None``: as many as the step's batch has.
        max_age: steps after which a sample is too old, and lost; ``None``: never.

    Raises:
        UsageError: an option out of range.
        RunError: another credit than ``S093`` is in use, so nothing is set aside.
    """

    chance: float = 1.0
    decay: int | None = None
    size: int | None = None
    max_age: int | None = 4
    _kept: list[tuple[int, Record]] = field(default_factory=list, init=False, repr=False, compare=False)
    _run: int = field(default=0, init=False, repr=False, compare=False)
    _step: int = field(default=0, init=False, repr=False, compare=False)
    _groups: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.chance <= 1:
            raise UsageError(f"select 'S093': chance {self.chance:g} must be in [0, 1]")
        if (self.decay or 0) < 0 or min(1 if x is None else x for x in (self.size, self.max_age)) < 1:
            raise UsageError("select 'S093': size and max_age must be at least 1, decay not negative")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return torch.ones_like(batch.rewards)

    def planned(self, steps: int) -> None:
        """Take in how many steps the run has."""
        self._run = steps

    @property
    def probability(self) -> float:
        """Of a compensation update in this step."""
        over = self._run if self.decay is None else self.decay
        return self.chance * max(0.0, 1 - self._step / over) if over else self.chance

    def replay(self, batch: Batch, rng: np.random.Generator) -> list[Batch]:
        """Take in what the step set aside; return the compensation batch that is due, if one is."""
        if SET_ASIDE not in batch.signals:
            raise RunError("select 'S093' replays what credit 'S093' sets aside; set method.credit = \"S093\" too")
        rows = batch.signals[SET_ASIDE].nonzero()[:, 0].tolist()
        for record in records(batch, rows):
            record["weights"] = record["signals"].pop(SET_ASIDE)[1]
            record["advantages"] = record["signals"].pop(THEIR_ADVANTAGES)[1]
            for name in ("group", "prompt_group"):
                record[name] = record[name] + self._groups
            self._kept.append((self._step, record))
        self._groups += int(torch.cat([batch.group, batch.prompt_group]).max()) + 1
        if self.max_age is not None:
            self._kept = [(born, r) for born, r in self._kept if self._step - born <= self.max_age]
        size, probability = self.size or len(batch), self.probability
        self._step += 1
        if len(self._kept) < size:
            return []
        oldest, self._kept = self._kept[:size], self._kept[size:]
        return [restored([r for _, r in oldest])] if rng.random() < probability else []

    def state_dict(self) -> dict[str, Any]:
        return {"kept": list(self._kept), "step": self._step, "groups": self._groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept = [(int(born), dict(record)) for born, record in state["kept"]]
        self._step, self._groups = int(state["step"]), int(state["groups"])


claims(
    Claim(
        paper="S093",
        text="Learning first from short right and long wrong responses makes for more right answers per token.",
        setting="lengths",
        arms={
            "rorecomp": {"name": "S093"},
            "priority alone": {"name": "S093", "select": {"chance": 0.0}},
            "grpo": {"name": "grpo"},
        },
        better="rorecomp",
        baseline="grpo",
        measure="per_token",
        options={
            "easy": (0.1, 0.4, 0.7, 0.8, 0.8, 0.8, 0.8, 0.8),
            "hard": (0.1, 0.4, 0.7, 0.8, 0.8, 0.8, 0.8, 0.8),
            "steps": 100,
        },
        sweep={"lr": (0.3, 1.0)},
    )
)
