"""Rewards turned into their opposite at random: how much noise does a method stand?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.outcome.vote import Ballot
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.verify.answer.extract import Fallback, Rule


@part("reward", "flipped")
class Flipped(Around):
    """R_i = 1 - r_i with probability ``chance``, drawn once for all responses of a prompt, else r_i.

    A flipped group has its group-relative advantages negated, so that E[A_i] = (1 - 2 chance) A_i. With ``per =
    "sample"`` each response has a draw of its own, which also makes the group's mean and deviation noisy. A response in
    which no answer is found has R_i = 0, flipped or not. Rewards on tokens pass through. Evaluation reads verdicts, and
    is never flipped. The number of batches drawn for is in the checkpoint.

    Args:
        inner: the reward r in [0, 1] (name, table or part already made).
        chance: in [0, 1].
        per: what shares a draw: the responses of a ``prompt``, or nothing (``sample``).
        rules, fallback: where an answer stands, see :class:`~assay.rewards.outcome.vote.Ballot`.
        seed: of the draws.

    Raises:
        UsageError: ``chance`` or ``seed`` out of range.
    """

    def __init__(
        self,
        inner: Any = "verdict",
        chance: float = 0.4,
        per: Literal["prompt", "sample"] = "prompt",
        rules: tuple[Rule, ...] | None = None,
        fallback: Fallback = "line",
        seed: int = 0,
    ):
        if not 0 <= chance <= 1 or seed < 0:
            raise UsageError(f"reward 'flipped': needs chance in [0, 1] and seed >= 0, not {chance:g} and {seed}")
        super().__init__({"raw": inner})
        self.chance, self.per, self.ballot, self.seed = chance, per, Ballot(rules, fallback), seed
        self._drawn = 0

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        raw = found["raw"].values
        index = batch.prompt_group if self.per == "prompt" else torch.arange(len(batch))
        size = int(index.max()) + 1 if len(batch) else 0
        drawn = np.random.default_rng([self.seed, self._drawn]).random(size) < self.chance
        self._drawn += 1
        flip = torch.from_numpy(drawn)[index]
        answered = torch.tensor([bool(answer) for answer in self.ballot.answers(batch)], dtype=torch.bool)
        values = torch.where(answered, torch.where(flip, 1 - raw, raw), 0)
        terms = {**terms_of(found), "flipped": (flip & answered).to(raw.dtype)}
        return Reward(values, found["raw"].tokens, valid_in(found, batch), terms)

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self._drawn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._drawn = int(state["drawn"])
