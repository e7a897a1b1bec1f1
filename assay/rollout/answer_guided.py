"""Responses, and beside them chains of thought that were written with the answer in sight."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.rollout.templates import check_template, through_template
from assay.signals.likelihood import text_of_reference
from assay.signals.likelihoods.path_gains import CHAINS
from assay.signals.steps import token_ends
from assay.types import Ask, Group, Prompt, Task
from assay.verify.answer.spans import Span
from assay.verify.kind import KindVerifier

TEMPLATE = "{question}\n\nThe answer is {answer}. Explain step by step how to get there, and end with it."


@part("rollout", "answer_guided")
@dataclass(slots=True)
class AnswerGuided:
    """Of ask.n responses, a share are chains for which the prompt shows the answer; the others are learned from.

    K = max(1, round(share ask.n)) chains per prompt. There are none, and ask.n responses, for a task whose reference is
    not a text or a number, and where the prompt with the answer would leave a response less than half of the room it
    has without (and less than the longest response). A chain is what stands before its answer; without one, or
    empty, it is dropped. The rest is in ``meta["chains"]`` of each of the prompt's responses, for a signal to read.

    Args:
        sampling: supplied by the run.
        share: in (0, 1).
        template: of the prompt with the answer, with ``{answer}`` and ``{question}``.
        open: what answers open with; without it a chain ends where the task's verifier reads an answer.
        answer: where a response to a task has its answer, as the run's verifier says; supplied by the run.

    Raises:
        UsageError: ``share`` out of range, a template without ``{answer}``, or a group too small for the split.
    """

    sampling: Sampling
    share: float = 0.25
    template: str = TEMPLATE
    open: str | None = None
    answer: Callable[[Task, str], Span | None] = field(default_factory=lambda: KindVerifier().answer)
    _kept: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UsageError(f"rollout 'answer_guided': share {self.share:g} must be in (0, 1)")
        check_template(self.template, "answer", "rollout 'answer_guided'")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        answers = [text_of_reference(ask.task) for ask in asks]
        counts = [
            max(1, int(self.share * ask.n + 0.5)) if answer and self._fits(ask, answer, engine) else 0
            for ask, answer in zip(asks, answers, strict=True)
        ]
        if any(ask.n - k < 1 for ask, k in zip(asks, counts, strict=True)):
            raise UsageError("rollout 'answer_guided': the chains leave no response to learn from; raise rollout.group")
        guided = [
            Ask(replace(ask.task, prompt=self._shown(ask, answer)), k)
            for ask, answer, k in zip(asks, answers, counts, strict=True)
            if k
        ]
        single = SingleTurn(self.sampling)
        chains = iter(single.collect(guided, engine, rng))
        plain = single.collect([replace(a, n=a.n - k) for a, k in zip(asks, counts, strict=True)], engine, rng)
        self._kept, out = [], []
        for ask, group, k in zip(asks, plain, counts, strict=True):
            written = next(chains).episodes if k else ()
            found = tuple(chain for chain in (self._chain(ask.task, e.tokens, engine) for e in written) if len(chain))
            self._kept += [len(found) / k] if k else []
            episodes = tuple(replace(e, meta={**e.meta, CHAINS: found}) for e in group.episodes)
            out.append(Group(ask, episodes))
        return out

    def metrics(self) -> dict[str, float]:
        """``chains/kept``: share of the chains that have the form."""
        return {"chains/kept": float(np.mean(self._kept))} if self._kept else {}

    def _shown(self, ask: Ask, answer: str) -> Prompt:
        return through_template(full_prompt(ask), self.template, answer=answer)

    def _fits(self, ask: Ask, answer: str, engine: Engine) -> bool:
        """Whether the prompt with the answer leaves enough of the model's context for a response."""
        context = getattr(getattr(engine, "policy", None), "context", None)
        if context is None:
            return True
        plain = len(engine.encode(full_prompt(ask)))
        room = min(self.sampling.max_tokens, (context - plain) // 2)
        return len(engine.encode(self._shown(ask, answer))) + room <= context

    def _chain(self, task: Task, tokens: np.ndarray, engine: Engine) -> np.ndarray:
        """Return the tokens before the answer; none if there is no answer."""
        ids = tokens.tolist()
        text = engine.decode(ids)
        if self.open is not None:
            where = text.rfind(self.open)
        else:
            place = self.answer(task, text)
            where = -1 if place is None else place.begin
        if where < 0:
            return tokens[:0]
        return tokens[: bisect_left(range(len(ids)), where + 1, key=token_ends(ids, engine.decode))]
