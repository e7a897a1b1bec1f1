"""An appeal against a verifier's no: a judge hears rejected responses, which says how often the verifier is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import build
from assay.types import Episode, Prompt, Task

TEMPLATE = """Question:
{question}

Reference answer:
{reference}

Response to be judged (its end):
{response}

Does the response reach the reference answer, in whatever form it is written? Reply with yes or no."""

_WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def category_of(task: Task) -> str:
    """What an estimate is kept by: the task's ``meta["category"]``, or its kind."""
    return str(task.meta.get("category", task.kind))


@dataclass(slots=True)
class Appeals:
    """Estimates rho1 = P(rejected | right) of each category of tasks while training.

    In a batch with n1 accepted responses of a category and n0 rejected ones, of which the judge decides m and calls k
    right, f = n0 k / m rejected responses are right, and rho1 = f / (n1 + f), accepted ones being taken as right. f and
    n1 are summed over batches, each sum multiplied by ``decay`` beforehand. What the judge leaves open (neither yes nor
    no, or generation failed) is not counted in m; a batch where it decides nothing is passed over.

    Source: the appeals mechanism of arXiv 2510.00915, which fixes rechecking negatives with a small model; the sums
    are a choice.

    Args:
        judge: an engine, or the specification of one.
        share: of the rejected responses that are heard, drawn at random, in (0, 1].
        decay: in [0, 1).
        max_tokens: of the judge's reply, which is greedy; its last yes or no counts.
        tail: characters of the response that the judge sees, its last ones.
        template: the judge's prompt, with ``{question}``, ``{reference}`` and ``{response}``.
        seed: of the draw.

    Raises:
        UsageError: an option out of range, no engine, or a template without ``{response}``.
    """

    judge: Any
    share: float = 1.0
    decay: float = 0.9
    max_tokens: int = 16
    tail: int = 2000
    template: str = TEMPLATE
    seed: int = 0
    _sums: dict[str, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _heard: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 0 <= self.decay < 1 or self.max_tokens < 1 or self.tail < 1:
            raise UsageError("appeals: needs share in (0, 1], decay in [0, 1), max_tokens and tail of at least 1")
        if "{response}" not in self.template:
            raise UsageError("appeals: the template does not show the judge the {response}")
        self.judge = build("engine", self.judge)
        if not isinstance(self.judge, Engine):
            raise UsageError(f"appeals: the judge must be an engine or the specification of one, not {self.judge!r}")

    def hear(self, batch: Batch) -> dict[str, Tensor]:
        """Have rejected responses judged and count; return what happened to each sample, ``(N,)`` of zeros and ones.

        ``appealed``: heard by the judge; ``overturned``: called right by it; ``undecided``: no readable reply.
        """
        passed = [v.passed for v in batch.verdicts]
        rejected = [i for i, p in enumerate(passed) if p is False]
        rng = np.random.default_rng([self.seed, self._heard])
        self._heard += 1
        if self.share < 1 and rejected:
            count = max(1, round(self.share * len(rejected)))
            rejected = sorted(rng.choice(rejected, count, replace=False).tolist())
        said = dict(zip(rejected, self._ask(batch, rejected, rng), strict=True))
        names = [category_of(task) for task in batch.tasks]
        for name in dict.fromkeys(names):
            mine = [i for i, n in enumerate(names) if n == name]
            decided = [said[i] for i in mine if said.get(i) is not None]
            denied = sum(passed[i] is False for i in mine)
            if denied and not decided:
                continue
            flipped = denied * sum(map(bool, decided)) / len(decided) if decided else 0.0
            sums = self._sums.setdefault(name, [0.0, 0.0])
            accepted = sum(passed[i] is True for i in mine)
            self._sums[name] = [self.decay * sums[0] + flipped, self.decay * sums[1] + accepted]

        def where(test: Any) -> Tensor:
            return torch.tensor([float(i in said and test(said[i])) for i in range(len(batch))]).to(batch.rewards)

        return {
            "appealed": where(lambda _: True),
            "overturned": where(lambda reply: reply is True),
            "undecided": where(lambda reply: reply is None),
        }

    def rate(self, category: str) -> float | None:
        """Return the estimate of rho1 for a category, ``None`` before any response of it seemed right."""
        flipped, accepted = self._sums.get(category, (0.0, 0.0))
        return flipped / (flipped + accepted) if flipped + accepted > 0 else None

    def _ask(self, batch: Batch, rows: list[int], rng: np.random.Generator) -> list[bool | None]:
        sampling = Sampling(self.max_tokens, temperature=0.0)
        requests = [
            Request(self._prompt(batch.tasks[i], batch.episodes[i]), 1, sampling, int(rng.integers(2**63)))
            for i in rows
        ]
        found = self.judge.generate(requests) if requests else []
        return [reading(replies[0]) for replies in found]

    def _prompt(self, task: Task, episode: Episode) -> Prompt:
        shown = {"question": task.question, "reference": str(task.reference), "response": episode.text[-self.tail :]}
        text = self.template
        # One pass, so that braces in a response are text.
        return re.sub(r"\{(question|reference|response)\}", lambda m: shown[m[1]], text)

    def state_dict(self) -> dict[str, Any]:
        return {"sums": {k: list(v) for k, v in self._sums.items()}, "heard": self._heard}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._sums = {k: list(v) for k, v in state["sums"].items()}
        self._heard = int(state["heard"])


def reading(reply: Episode) -> bool | None:
    """Return the last yes or no of a reply; ``None`` if it says neither or generation failed."""
    words = _WORD.findall(reply.text) if reply.stop != "error" else []
    return words[-1].lower() == "yes" if words else None
