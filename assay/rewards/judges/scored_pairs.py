"""A language model that compares two answers in writing, asked in both orders and perhaps more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import filled, judge_of, seed_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.verify.pair_scores import TEMPLATE, pair_scores, untagged


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Which of two answers a model scores higher, by all of its votes.

    Args:
        judge: an engine, or the specification of one.
        votes: replies in each of both orders; one is greedy, more are drawn at temperature 1.
        max_tokens: of a reply.
        template: with ``{question}``, ``{first}`` and ``{second}``; asks for a reply that
            :func:`~assay.verify.pair_scores.pair_scores` reads.

    Raises:
        UsageError: no engine, ``votes`` below 1, or a template that does not show both answers.

    Source: the generative reward model of Writing-Zero (arXiv 2506.00103).
    """

    judge: Any
    votes: int = 1
    max_tokens: int = 2048
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        object.__setattr__(self, "judge", judge_of(self.judge, "the judge of pairs"))
        if self.votes < 1 or any(f"{{{name}}}" not in self.template for name in ("question", "first", "second")):
            raise UsageError(
                f"the judge of pairs: votes {self.votes} must be 1 or more, and the template show {{question}}, "
                "{first} and {second}"
            )

    def beats(self, items: Sequence[tuple[str, str, str]]) -> list[bool | None]:
        """Return for each (question, one, other) whether one scores higher in every vote of both orders.

        One vote against it is enough for no, as is a level one; where nothing is against it but a vote cannot be read,
        it is not known.
        """
        orders = [self.prompt(q, *pair) for q, one, other in items for pair in ((one, other), (other, one))]
        once = list(dict.fromkeys(orders))
        sampling = Sampling(self.max_tokens, 0.0 if self.votes == 1 else 1.0)
        replies = self.judge.generate([Request(p, self.votes, sampling, seed_of(p)) for p in once]) if once else []
        scores = [[None if r.stop == "error" else pair_scores(r.text) for r in some] for some in replies]
        said = dict(zip(once, scores, strict=True))
        out: list[bool | None] = []
        for ahead, behind in zip(orders[::2], orders[1::2], strict=True):
            leads = [None if s is None else s[0] > s[1] for s in said[ahead]]
            leads += [None if s is None else s[1] > s[0] for s in said[behind]]
            out.append(False if False in leads else None if None in leads else True)
        return out

    def prompt(self, question: str, first: str, second: str) -> str:
        """Return what the judge is asked."""
        return filled(self.template, question=question, first=untagged(first), second=untagged(second))
