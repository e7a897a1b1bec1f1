"""A ranking of given items."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.lists import rank_metrics as metrics
from assay.verify.lists.items import Key, item_key, read_items, reference_items
from assay.verify.text.exact import shorten

Measure = Literal["ndcg", "rr", "ap", "recall", "kendall", "spearman", "rbo", "overlap", "exact"]
BY_GRADE = ("ndcg", "rr", "ap", "recall")

_BRACKETED = re.compile(r"\[([^\[\]\n]{1,200})\]")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task asks for: grades of items, an order of items, or both, and the items that may be named."""

    grades: dict[Key, float] | None
    order: list[Key] | None
    known: frozenset[Key]


@part("verify", "ranking")
@dataclass(frozen=True, slots=True)
class Ranking(Marked):
    """How good a ranking is, best item first.

    ``task.reference`` is an order (a list), or ``{"order": [...], "relevance": {item: grade}, "candidates": [...]}``
    with an order, grades of at least 0 (or a list of relevant items), or both. The answer is ``[3] > [1] > [2]``, or a
    list as :func:`~assay.verify.lists.items.read_items` reads it.

    ``parts``: ``valid`` (nothing repeated, unknown or left out) and every measure that the reference allows;
    ``kendall`` and ``spearman`` are (correlation + 1) / 2. An item named again, or that is no candidate, holds its
    place and earns nothing.

    Args:
        measure: what the score is: ``ndcg``, ``rr`` (reciprocal rank), ``ap`` (average precision) and ``recall`` by
            grades; ``kendall``, ``spearman``, ``rbo`` (rank-biased overlap), ``overlap`` (longest common subsequence)
            and ``exact`` by order.
        k: places that count for measures by grades; all unless given.
        gain: worth of a grade in nDCG: the grade, or 2^grade - 1.
        persistence: p of rank-biased overlap, in (0, 1]; 1 is the average overlap. It is divided by its maximum, so
            that the right order scores 1 whatever p.
        strict: a ranking that is not valid scores 0.
        threshold: passed iff score >= threshold, in (0, 1].
        rules, fallback: where the ranking stands, see :func:`~assay.verify.answer.extract.extract`.
        max_items: a longer ranking is wrong; so is an answer of more than 200 times as many characters.
    """

    measure: Measure = "ndcg"
    k: int | None = None
    gain: metrics.Gain = "linear"
    persistence: float = 1.0
    strict: bool = True
    threshold: float = 1.0
    rules: tuple[Rule, ...] = ("answer_tag", "boxed", "phrase")
    fallback: Fallback = "whole"
    max_items: int = 1000

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise UsageError(f"verifier 'ranking': k {self.k} must be at least 1")
        if not (0 < self.threshold <= 1 and 0 < self.persistence <= 1):
            raise UsageError(
                f"verifier 'ranking': threshold {self.threshold} and persistence {self.persistence} must be in (0, 1]"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = read_wanted(task.reference)
        if wanted is None or (wanted.grades if self.measure in BY_GRADE else wanted.order) is None:
            return Verdict.abstain(f"task {task.id}: reference has not what {self.measure!r} needs")
        answer = extract(response, self.rules, self.fallback)
        if answer is None or len(answer) > 200 * self.max_items:
            return Verdict.wrong("no ranking found" if answer is None else "the answer is too long for a ranking")
        ranking = read_ranking(answer)
        if len(ranking) > self.max_items:
            return Verdict.wrong(f"ranks {len(ranking)} items, more than {self.max_items}")
        if not ranking:
            return Verdict.wrong("no ranking found")
        complaint = _fault(ranking, wanted.known)
        parts: dict[str, float | None] = {"valid": float(not complaint), **self._measures(ranking, wanted)}
        score = 0.0 if self.strict and complaint else parts[self.measure] or 0.0
        passed = score >= self.threshold - 1e-12
        return Verdict(score, passed, parts, complaint or ("" if passed else f"{self.measure} {score:.3f}"))

    def _measures(self, ranking: list[Key], wanted: Wanted) -> dict[str, float]:
        found: dict[str, float] = {}
        if wanted.grades is not None:
            relevant = {item for item, grade in wanted.grades.items() if grade > 0}
            found["ndcg"] = metrics.ndcg(ranking, wanted.grades, self.k, self.gain)
            found["rr"] = metrics.reciprocal_rank(ranking, relevant, self.k)
            found["ap"] = metrics.average_precision(ranking, relevant, self.k)
            found["recall"] = metrics.recall_at(ranking, relevant, self.k)
        if wanted.order is not None:
            found["kendall"] = (metrics.kendall_tau(ranking, wanted.order) + 1) / 2
            found["spearman"] = (metrics.spearman_rho(ranking, wanted.order) + 1) / 2
            found["rbo"] = metrics.average_overlap(ranking, wanted.order, self.persistence)
            found["overlap"] = metrics.ordered_overlap(ranking, wanted.order)
            found["exact"] = float(ranking == wanted.order)
        return {name: min(max(value, 0.0), 1.0) for name, value in found.items()}


def read_ranking(text: str) -> list[Key]:
    """Return the items of ``[b] > [a] > [c]``, ``b > a > c``, or any list; repetitions are kept."""
    if ">" in text:
        bracketed = _BRACKETED.findall(text)
        items = bracketed or [piece.strip() for piece in text.strip().strip("[]()").split(">")]
    else:
        items = read_items(text)
        bracketed = _BRACKETED.findall(text)
        if len(bracketed) > 1 and len(bracketed) >= len(items):
            items = bracketed
    return [item_key(item) for item in items if item.strip()]


def read_wanted(reference: Any) -> Wanted | None:
    """Return what a reference asks for, ``None`` if it is none; grades that are no numbers of at least 0 are none."""
    spec = reference if isinstance(reference, Mapping) else {"order": reference}
    if spec.keys() - {"order", "relevance", "candidates"}:
        return None
    order = None if spec.get("order") is None else reference_items(spec["order"])
    if spec.get("order") is not None and not order:
        return None
    named = [item_key(item) for item in order] if order else None
    if named is not None and len(set(named)) < len(named):
        return None
    relevance = spec.get("relevance")
    grades: dict[Key, float] | None = None
    if isinstance(relevance, Mapping):
        if not all(isinstance(g, int | float) and math.isfinite(g) and 0 <= g <= 100 for g in relevance.values()):
            return None
        grades = {item_key(str(item)): float(grade) for item, grade in relevance.items()}
    elif relevance is not None:
        listed = reference_items(relevance)
        if listed is None:
            return None
        grades = {item_key(item): 1.0 for item in listed}
    if grades is not None and not any(grades.values()):
        return None
    if grades is None and named is None:
        return None
    candidates = reference_items(spec["candidates"]) if spec.get("candidates") is not None else None
    known = {item_key(item) for item in candidates or ()} or set(named or grades or ())
    return Wanted(grades, named, frozenset(known))


def _fault(ranking: list[Key], known: frozenset[Key]) -> str:
    seen: set[Key] = set()
    for item in ranking:
        if item not in known:
            return (
                f"ranks {shorten(str(item))!r}, which is no candidate"
                if isinstance(item, str)
                else "ranks a number that is no candidate"
            )
        if item in seen:
            return f"ranks {shorten(str(item))!r} twice"
        seen.add(item)
    left = len(known) - len(seen)
    return f"leaves out {left} of {len(known)} items" if left else ""
