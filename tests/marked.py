"""Batches whose responses are cut into steps with known scores, and critics of steps that say what they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Request
from assay.method import Method
from assay.types import Ask, Episode, Group, Span, Task, Verdict

NOBODY = np.zeros(0, dtype=np.int64)


def stepped(
    rows: Sequence[Sequence[float] | None],
    passed: Sequence[bool | None],
    sizes: Sequence[Sequence[int]] | None = None,
    groups: Sequence[int] | None = None,
    texts: Sequence[str] | None = None,
) -> Batch:
    """Responses whose steps have these scores p in [0, 1] as parts of their verdicts (``None`` for none), in float64.

    Steps have one token each unless ``sizes`` says otherwise; of a response without scores it has to.
    """
    made = []
    for i, (row, right) in enumerate(zip(rows, passed, strict=True)):
        size = sizes[i] if sizes else [1] * len(row or ())
        borders = np.cumsum([0, *size]).tolist()
        spans = tuple(Span("step", a, b) for a, b in pairwise(borders))
        tokens = np.arange(borders[-1], dtype=np.int64)
        mask, key = np.ones(len(tokens), dtype=bool), str(groups[i] if groups else 0)
        text = texts[i] if texts else f"response {i}"
        zeros = np.zeros(len(tokens), dtype=np.float32)
        episode = Episode(NOBODY, tokens, mask, zeros, text, "eos", spans=spans, advantage_group=key)
        verdict = Verdict(float(bool(right)), right, {f"step {k}": float(p) for k, p in enumerate(row or ())})
        made.append(Group(Ask(Task(f"task-{key}", f"question {key}", reference="4"), 1), (episode,), (verdict,)))
    return Batch.from_groups(made, torch.float64)


def signalled(batch: Batch, method: Method, models: Any = None) -> Batch:
    """The batch with the signals that the method's parts compute by themselves."""
    from assay.policies.tabular import TabularPolicy, Tree
    from assay.signals.base import Models

    models = Models(TabularPolicy(Tree.bandit(2))) if models is None else models
    for signal in (n for n in method.needs if not isinstance(n, str)):
        batch.signals[signal.name] = signal(batch, models)
    return batch


def rows_of(batch: Batch, found: torch.Tensor) -> list[list[float]]:
    """One list per response, as long as it is."""
    return [row[: len(e.tokens)].tolist() for row, e in zip(found, batch.episodes, strict=True)]


class Critic:
    """An engine that replies by a function of the prompt and of which of a request's replies it is; ``None`` fails."""

    def __init__(self, reply: Callable[[str, int], str | None]):
        self.reply, self.asked = reply, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return NOBODY

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NOBODY

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for request in requests:
            said = [self.reply(str(request.prompt), k) for k in range(request.n)]
            out.append(
                [Episode(NOBODY, NOBODY, NOBODY > 0, None, s or "", "eos" if s is not None else "error") for s in said]
            )
        return out


def critique(marks: Sequence[bool], final: bool | None = None) -> str:
    """A reply that gives these verdicts on steps, and on the answer."""
    word = {True: "correct", False: "incorrect"}
    lines = [f"Step {k}: {word[m]}" for k, m in enumerate(marks)]
    return "\n".join(lines if final is None else [*lines, f"Verdict: {word[final]}"])
