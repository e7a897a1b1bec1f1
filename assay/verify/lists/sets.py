"""The set of items that is listed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.lists.items import Key, Separator, item_key, read_items, reference_items
from assay.verify.lists.matching import f_beta
from assay.verify.text.exact import shorten

Repeats = Literal["ignore", "penalise", "multiset"]
Measure = Literal["f", "jaccard", "precision", "recall", "exact"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How two collections agree: ``common`` items, of ``given`` and of ``wanted``."""

    common: int
    given: int
    wanted: int

    @property
    def precision(self) -> float:
        """Share of the given items that are wanted; of none given, 1 iff none is wanted."""
        return self.common / self.given if self.given else float(not self.wanted)

    @property
    def recall(self) -> float:
        """Share of the wanted items that are given; 1 where none is wanted."""
        return self.common / self.wanted if self.wanted else 1.0

    @property
    def jaccard(self) -> float:
        """common / (given + wanted - common), and 1 for two empty collections."""
        union = self.given + self.wanted - self.common
        return self.common / union if union else 1.0

    def f(self, beta: float = 1.0) -> float:
        """The F measure, recall weighing beta times as much as precision; 1 for two empty collections."""
        return f_beta(self.precision, self.recall, beta)


def overlap(given: list[Key], wanted: list[Key], repeats: Repeats = "ignore") -> Overlap:
    """Count the items that two collections share.

    ``ignore`` compares sets. ``penalise`` compares sets, but every repetition of a given item counts among the given,
    so that precision is |set(given) & set(wanted)| / len(given) (LongRLVR). ``multiset`` compares how often each
    occurs.
    """
    if repeats == "multiset":
        return Overlap((Counter(given) & Counter(wanted)).total(), len(given), len(wanted))
    unique, target = set(given), set(wanted)
    return Overlap(len(unique & target), len(given) if repeats == "penalise" else len(unique), len(target))


@part("verify", "set")
@dataclass(frozen=True, slots=True)
class Items(Marked):
    """The items listed are those of the reference, whatever their order.

    ``task.reference`` is a list of items, or text that lists them. Items are equal as numbers or as normalised text.
    ``parts``: ``precision``, ``recall``, ``f``, ``jaccard``, ``exact``. An empty reference asks for an empty list; one
    that is ``None`` makes the verifier abstain. With ``recall`` as the measure, listing everything is right.

    Args:
        measure: what the score is.
        threshold: passed iff score >= threshold, in (0, 1].
        beta: weight of recall in the F measure, above 0.
        repeats: what an item listed twice means, see :func:`overlap`.
        separator: how items are separated, see :func:`~assay.verify.lists.items.read_items`.
        ignore_case, numeric: how items are compared.
        rules, fallback: where the list stands, see :func:`~assay.verify.answer.extract.extract`.
        max_chars: a longer answer is wrong.
    """

    measure: Measure = "f"
    threshold: float = 1.0
    beta: float = 1.0
    repeats: Repeats = "ignore"
    separator: Separator = "auto"
    ignore_case: bool = True
    numeric: bool = True
    rules: tuple[Rule, ...] = ("answer_tag", "boxed", "phrase")
    fallback: Fallback = "whole"
    max_chars: int = 200_000

    def __post_init__(self) -> None:
        if not (0 < self.threshold <= 1 and self.beta > 0):
            raise UsageError(
                f"verifier 'set': threshold {self.threshold} must be in (0, 1] and beta {self.beta} above 0"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = reference_items(task.reference, self.separator)
        if wanted is None:
            return Verdict.abstain(f"task {task.id}: reference is no list of items")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if not answer and wanted:
            return Verdict.wrong("an empty answer")
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        given = [self._key(item) for item in read_items(answer, self.separator)]
        target = [self._key(item) for item in wanted]
        found = overlap(given, target, self.repeats)
        exact = found.common == found.given == found.wanted
        parts: dict[str, float | None] = {
            "precision": found.precision,
            "recall": found.recall,
            "f": found.f(self.beta),
            "jaccard": found.jaccard,
            "exact": float(exact),
        }
        score = parts[self.measure] or 0.0
        return Verdict(score, score >= self.threshold, parts, "" if exact else self._difference(given, target))

    def _key(self, text: str) -> Key:
        return item_key(text, self.ignore_case, self.numeric)

    def _difference(self, given: list[Key], wanted: list[Key]) -> str:
        missing, extra = (Counter(a) - Counter(b) for a, b in ((wanted, given), (given, wanted)))
        said = [
            f"{what} {shorten(_show(next(iter(some))))!r}"
            for what, some in (("misses", missing), ("adds", extra))
            if some
        ]
        return ", ".join(said)


def _show(key: Key) -> str:
    if isinstance(key, str):
        return key
    return str(key) if key.numerator.bit_length() + key.denominator.bit_length() < 400 else "a huge number"
