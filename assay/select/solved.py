"""Trajectories that have solved their task by work, for fine-tuning on them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.types import Episode, Verdict


@part("select", "solved")
class Solved:
    """Weight 1 for what passed and was solved on the way, at most ``cap`` of a task in the whole run; else 0.

    A trajectory was solved if its last turn submits, ``least`` turns before that made a valid call of another tool, no
    call matches ``forbidden``, and the verdict's part ``shown`` is not 0: an answer that was guessed, remembered or
    read from what judges it earns nothing. A verdict without that part does not tell.

    With objective ``sft`` this is rejection fine-tuning; ``cap`` counts are in the checkpoint.

    Args:
        submit: the tool that ends an episode.
        least: calls of other tools, at least 1.
        forbidden: patterns, looked for in the arguments of calls, letters' case apart.
        shown: name of that part.
        cap: trajectories of a task; ``None`` for all.

    Raises:
        UsageError: an option out of range, or a pattern that is none.

    Source: CTF-Dojo (arXiv 2508.18370).
    """

    def __init__(
        self,
        submit: str = "submit",
        least: int = 1,
        forbidden: Sequence[str] = (r"flag\.sha256", r"check_?flag", r"checker"),
        shown: str = "shown",
        cap: int | None = None,
    ):
        if least < 1 or (cap is not None and cap < 1):
            raise UsageError(f"select 'solved': least {least} and cap {cap} must be at least 1")
        try:
            self.forbidden = [re.compile(one, re.IGNORECASE) for one in forbidden]
        except re.error as error:
            raise UsageError(f"select 'solved': a pattern of forbidden cannot be read: {error}") from None
        self.submit, self.least, self.shown, self.cap = submit, least, shown, cap
        self.kept: Counter[str] = Counter()

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        weights = torch.zeros_like(batch.rewards)
        for i, (task, episode, verdict) in enumerate(zip(batch.tasks, batch.episodes, batch.verdicts, strict=True)):
            room = self.cap is None or self.kept[task.id] < self.cap
            if room and bool(batch.valid[i]) and self.solved(episode, verdict):
                self.kept[task.id] += 1
                weights[i] = 1
        return weights

    def solved(self, episode: Episode, verdict: Verdict) -> bool:
        """Whether a trajectory passed, and by work."""
        if verdict.passed is not True or verdict.parts.get(self.shown, 1.0) == 0 or not episode.turns:
            return False
        *before, last = episode.turns
        calls = [call for turn in episode.turns for call in turn.calls if not call.problem]
        if not any(call.name == self.submit and not call.problem for call in last.calls):
            return False
        if any(one.search(json.dumps(call.arguments, ensure_ascii=False)) for one in self.forbidden for call in calls):
            return False
        work = [turn for turn in before if turn.valid and any(call.name != self.submit for call in turn.calls)]
        return len(work) >= self.least

    def state_dict(self) -> dict[str, Any]:
        return {"kept": dict(self.kept)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.kept = Counter(state["kept"])
