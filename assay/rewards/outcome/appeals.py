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

PRIOR = 1e-5
"""Counted beside both the missed and the accepted responses of a batch."""

_WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def category_of(task: Task) -> str:
    """What an estimate is kept by: the task's ``meta["category"]``, or its kind."""
    return str(task.meta.get("category", task.kind))


@dataclass(slots=True)
class Appeals:
    """Estimates rho1 = P(rejected | right) of each category of tasks while training.

    Of a batch's rejected responses of a category each is heard with probability q = ``share``. With k of those called
    right by the judge and n1 accepted responses, which are taken as right,

        rho_t = (k / q + a) / (k / q + n1 + 2 a),  a = 1e-5        rho <- decay rho + (1 - decay) rho_t

    and the first rho_t is where rho starts. What the judge leaves open (neither yes nor no, or generation failed) makes
    q smaller by its share; a batch where all that was heard stays open is passed over, and so is one without verdicts.

    Source: arXiv 2510.00915, appendices B.9 and E.4. It has one rate for all tasks, and TinyV for a judge, which says
    yes or no to every response.

    Args:
        judge: an engine, or the specification of one.
        share: q, in (0, 1].
        decay: in [0, 1).
        max_tokens: of the judge's reply, which is greedy; its last yes or no counts.
        tail: characters of the response that the judge sees, its last ones.
        template: the judge's prompt, with ``{question}``, ``{reference}`` and ``{response}``.
        seed: of the draw.

    Raises:
        UsageError: an option out of range, no engine, or a template without ``{response}``.
    """

    judge: Any
    share: float = 0.1
    decay: float = 0.9
    max_tokens: int = 16
    tail: int = 2000
    template: str = TEMPLATE
    seed: int = 0
    _rates: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
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
        rng = np.random.default_rng([self.seed, self._heard])
        self._heard += 1
        heard = [i for i, p in enumerate(passed) if p is False and rng.random() < self.share]
        said = dict(zip(heard, self._ask(batch, heard, rng), strict=True))
        told: dict[str, list[int]] = {}
        for i, task in enumerate(batch.tasks):
            if passed[i] is not None:
                told.setdefault(category_of(task), []).append(i)
        for name, rows in told.items():
            self._follow(name, sum(passed[i] is True for i in rows), [said[i] for i in rows if i in said])

        def where(test: Any) -> Tensor:
            return torch.tensor([float(i in said and test(said[i])) for i in range(len(batch))]).to(batch.rewards)

        return {
            "appealed": where(lambda _: True),
            "overturned": where(lambda reply: reply is True),
            "undecided": where(lambda reply: reply is None),
        }

    def _follow(self, category: str, accepted: int, replies: list[bool | None]) -> None:
        """Let a category's rate take the step of a batch."""
        decided = [reply for reply in replies if reply is not None]
        if replies and not decided:
            return
        missed = sum(decided) / (self.share * len(decided) / len(replies)) if replies else 0.0
        rate = (missed + PRIOR) / (missed + accepted + 2 * PRIOR)
        self._rates[category] = self.decay * self._rates.get(category, rate) + (1 - self.decay) * rate

    def rate(self, category: str) -> float | None:
        """Return the estimate of rho1 for a category, ``None`` before there is one."""
        return self._rates.get(category)

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
        return {"rates": dict(self._rates), "heard": self._heard}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rates = {name: float(rate) for name, rate in state["rates"].items()}
        self._heard = int(state["heard"])


def reading(reply: Episode) -> bool | None:
    """Return the last yes or no of a reply; ``None`` if it says neither or generation failed."""
    words = _WORD.findall(reply.text) if reply.stop != "error" else []
    return words[-1].lower() == "yes" if words else None
