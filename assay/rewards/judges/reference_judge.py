"""A language model as verifier: does an answer mean what the reference does, and how sure is it?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Sampling
from assay.errors import RunError, UsageError
from assay.rewards.process.error_step import steps_of
from assay.rewards.text.embedding import texts_of
from assay.tasks.judging.answers import TEMPLATE
from assay.types import Episode, Task, Verdict

Score = Literal["soft", "hard"]
Shown = Literal["final_step", "response"]
Unread = Literal["abstain", "wrong"]


@dataclass(frozen=True, slots=True)
class ReferenceJudge:
    """A verifier that asks a model whether an answer means what the reference does.

    The verdict passes if the reply is 1, or yes, which fine-tuned verifiers say whatever they are asked for; its score
    says how likely it is right: with c the reply and pi(c) its probability at temperature 1,

        soft: pi(1) if c = 1, 1 - pi(0) if c = 0        hard: 1[c = 1]

    It abstains if the judge failed, if the task has no reference, and from a reply that cannot be read unless
    ``unread`` is ``wrong``. An empty answer is wrong, unasked.

    Source: "Expanding RL with Verifiable Rewards Across Diverse Domains" (arXiv 2503.23829).

    Args:
        judge: an engine, or the specification of one.
        score: see above.
        shown: what the judge reads: the last paragraph (``final_step``) or the whole ``response``.
        unread: a reply that is neither 0 nor 1, no nor yes, is an abstention, or ``wrong``.
        max_tokens: of the reply, which is greedy.
        template: with ``{question}``, ``{reference}`` and ``{answer}``.

    Raises:
        UsageError: no engine, or a template that does not show answer and reference.
        RunError: while judging, a judge without log-probabilities is to score softly.
    """

    judge: Any
    score: Score = "soft"
    shown: Shown = "final_step"
    unread: Unread = "abstain"
    max_tokens: int = 4
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        object.__setattr__(self, "judge", judge_of(self.judge, "the reference judge"))
        if any(f"{{{name}}}" not in self.template for name in ("reference", "answer")):
            raise UsageError("the reference judge: the template must show the judge {reference} and {answer}")

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many responses by one call of the judge."""
        pairs = list(pairs)
        out = [self._unasked(task, text) for task, text in pairs]
        rows = [i for i, verdict in enumerate(out) if verdict is None]
        replies = ask(self.judge, [self.question(*pairs[i]) for i in rows], Sampling(self.max_tokens, 0.0))
        for i, reply in zip(rows, replies, strict=True):
            out[i] = self._read(reply)
        return [verdict for verdict in out if verdict is not None]

    def question(self, task: Task, response: str) -> str:
        """Return what the judge is asked."""
        reference = " / ".join(texts_of(task))
        return filled(self.template, question=task.question, reference=reference, answer=self._answer(response))

    def _answer(self, response: str) -> str:
        return (steps_of(response) or [""])[-1] if self.shown == "final_step" else response.strip()

    def _unasked(self, task: Task, response: str) -> Verdict | None:
        if not texts_of(task):
            return Verdict.abstain(f"task {task.id} has no reference to compare with")
        return None if self._answer(response) else Verdict.wrong("no answer")

    def _read(self, reply: Episode) -> Verdict:
        if reply.stop == "error":
            return Verdict.abstain("the judge failed")
        found = decision(reply, self.judge)
        if found is None:
            said = f"the judge said {reply.text.strip()[:40]!r}, neither 0 nor 1"
            return Verdict.abstain(said) if self.unread == "abstain" else Verdict.wrong(said)
        right, place = found
        if self.score == "hard":
            return Verdict(float(right), right)
        logprob = math.nan if reply.logprobs is None else float(reply.logprobs[place])
        if math.isnan(logprob):
            raise RunError(
                "the reference judge: the judge reports no log-probabilities to score by; use score = 'hard'"
            )
        said_so = min(math.exp(logprob), 1.0)
        return Verdict(said_so if right else 1 - said_so, right)


def decision(reply: Episode, judge: Engine) -> tuple[bool, int] | None:
    """Return whether a reply says 1 rather than 0, and the place of the token that says so; nothing if it says neither.

    The digit may stand between white space and before a full stop, not among other words or digits. Yes is 1 and no is
    0; of a word in several tokens the first decides.
    """
    said = re.fullmatch(r"\s*([01]|yes|no)\.?\s*", reply.text, re.IGNORECASE)
    if said is None:
        return None
    tokens = reply.tokens.tolist()
    place = next((k for k in range(len(tokens)) if judge.decode(tokens[: k + 1]).strip()), None)
    return None if place is None else (said[1].lower() in ("1", "yes"), place)
