"""Final answers that say the same are one cluster; the largest cluster is what the responses vote for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from assay.batch import Batch
from assay.types import Task
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.answer.spans import Span
from assay.verify.kind import KindVerifier
from assay.verify.text.compare import normalise, parse_number

Equal = Literal["exact", "same", "verifier"]
Ties = Literal["first", "none"]


@dataclass(frozen=True, slots=True)
class Vote:
    """What a vote came to.

    Attributes:
        winner: index of the first answer of the largest cluster; ``None`` without a winner.
        share: of the answers given, those in the largest cluster; 0 where there is none.
        clusters: per answer the number of its cluster, from 0 in order of appearance; -1 for no answer.
    """

    winner: int | None
    share: float
    clusters: tuple[int, ...]


def vote(
    answers: Sequence[Hashable | None], equal: Callable[[int, int], bool] | None = None, ties: Ties = "first"
) -> Vote:
    """Cluster answers and return the vote.

    An answer joins the first cluster whose first member it equals: an equivalence test that is not transitive gives
    clusters that depend on the order.

    Args:
        answers: ``None`` or an empty text does not vote.
        equal: told the indices of a cluster's first member and of another answer, unlike as they stand; ``None``: only
            answers that are alike as they stand are equal.
        ties: between largest clusters: the ``first`` to appear wins, or ``none``.
    """
    known: dict[Hashable, int] = {}
    firsts: list[int] = []
    sizes: list[int] = []
    clusters: list[int] = []
    for i, answer in enumerate(answers):
        if not answer:
            clusters.append(-1)
            continue
        if equal is None:
            mine = known.setdefault(answer, len(firsts))
        else:
            found = (k for k, first in enumerate(firsts) if answers[first] == answer or equal(first, i))
            mine = next(found, len(firsts))
        if mine == len(firsts):
            firsts.append(i)
            sizes.append(0)
        sizes[mine] += 1
        clusters.append(mine)
    if not sizes:
        return Vote(None, 0.0, tuple(clusters))
    best = max(sizes)
    tied = ties == "none" and sizes.count(best) > 1
    return Vote(None if tied else firsts[sizes.index(best)], best / sum(sizes), tuple(clusters))


@dataclass(frozen=True)
class Ballot:
    """How the responses of a batch vote.

    Args:
        rules: where an answer stands, see :func:`~assay.verify.answer.extract.extract`; where the task's verifier reads
            it unless given.
        fallback: see there; unless rules are given, of tasks whose verifier does not say where it reads.
        equal: when two answers are one: the ``exact`` text, the ``same`` text or number
            (:func:`~assay.verify.text.compare.same`), or by the task's own ``verifier``, given one as the reference.
        ties: see :func:`vote`.
    """

    rules: tuple[Rule, ...] | None = None
    fallback: Fallback = "line"
    equal: Equal = "same"
    ties: Ties = "first"
    _verify: KindVerifier = field(default_factory=KindVerifier, init=False, repr=False, compare=False)

    def answers(self, batch: Batch) -> list[str | None]:
        """Return the final answer of each response, ``None`` or empty where it has none."""
        if self.rules is not None:
            return [extract(e.text, self.rules, self.fallback) for e in batch.episodes]
        place = batch.answer or self._verify.answer
        return [self._read(task, e.text, place) for task, e in zip(batch.tasks, batch.episodes, strict=True)]

    def _read(self, task: Task, text: str, place: Callable[[Task, str], Span | None]) -> str | None:
        span = place(task, text)
        if span is not None:
            return text[span.start : span.end]
        return None if self._verify.locates(task) else extract(text, RULES, self.fallback)

    def of(self, batch: Batch, rows: Sequence[int], answers: Sequence[str | None]) -> Vote:
        """Return the vote of the responses at ``rows``; its ``winner`` is a row of the batch."""

        def agree(a: int, b: int) -> bool:
            return self.agree(batch, rows[a], rows[b], answers)

        found = vote([self._said(answers[i]) for i in rows], agree if self.equal == "verifier" else None, self.ties)
        return found if found.winner is None else replace(found, winner=rows[found.winner])

    def agree(self, batch: Batch, label: int, row: int, answers: Sequence[str | None]) -> bool:
        """Say whether the answer of ``row`` is that of ``label``; no answer agrees with nothing."""
        wanted, given = answers[label], answers[row]
        if not wanted or not given:
            return False
        if self._said(wanted) == self._said(given):
            return True
        if self.equal != "verifier":
            return False
        task = replace(batch.tasks[label], reference=wanted)
        return self._verify(task, batch.episodes[row].text).passed is True

    def _said(self, answer: str | None) -> Hashable | None:
        """What is alike for answers that are one without a verifier being asked."""
        return _number_or_text(answer) if answer and self.equal == "same" else answer


@lru_cache(maxsize=4096)
def _number_or_text(answer: str) -> tuple[Hashable]:
    """Equal for two answers iff they are the same, see :func:`~assay.verify.text.compare.same`."""
    plain = normalise(answer)
    number = parse_number(plain)
    return (plain if number is None else number,)
