"""The final answers of two sets of samples of a task: which are the same, how spread they are, which right ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from assay.records.sample import Sample
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.text.compare import normalise, parse_number


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one task's samples from two models.

    Attributes:
        before, after: for each sample the number of its answer, the same for equal ones; -1 for no answer.
        right: numbers of the answers that at least one sample was judged right with.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    right: tuple[int, ...]

    def reach(self) -> list[tuple[bool, bool]]:
        """Say of each right answer whether it is among those before, and among those after."""
        return [(r in self.before, r in self.after) for r in self.right]


def answers_of(
    before: Sequence[Sample], after: Sequence[Sample], rules: tuple[Rule, ...] = RULES, fallback: Fallback = "line"
) -> Answers:
    """Read the final answers of one task's samples and number those that say the same alike.

    Answers are equal as :func:`assay.verify.text.compare.same` has it: as texts without regard to case and spacing, or
    as exact numbers.

    Args:
        before, after: samples of one task.
        rules, fallback: where an answer stands, see :func:`assay.verify.answer.extract.extract`, in samples of which
            none says so itself (:attr:`~assay.records.sample.Sample.answer`).
    """
    samples = [*before, *after]
    texts = [
        s.answer if known else extract(s.response, rules, fallback)
        for side in (before, after)
        for known in [any(s.answer is not None for s in side)]
        for s in side
    ]
    # One key for all that are the same, where comparing each with each would take the square of their number.
    keys = [_key(t) if t else None for t in texts]
    number = {key: i for i, key in enumerate(dict.fromkeys(k for k in keys if k is not None))}
    found = [-1 if key is None else number[key] for key in keys]
    right = sorted({n for s, n in zip(samples, found, strict=True) if s.passed and n >= 0})
    return Answers(tuple(found[: len(before)]), tuple(found[len(before) :]), tuple(right))


def _key(answer: str) -> Fraction | str:
    """What is equal for two answers iff :func:`assay.verify.text.compare.same` says they are."""
    plain = normalise(answer)
    value = parse_number(plain)
    return plain if value is None else value


def answer_entropy(answers: Sequence[int]) -> float:
    """Return the Shannon entropy in nats of how often each answer was given; NaN where there are no samples.

    To have no answer (-1) is an answer of its own, as in The Invisible Leash (arXiv 2507.14843), so that two models are
    compared over as many samples. Of the sample, which is lower than the policy's own by about (answers - 1) / 2n.
    """
    total = len(answers)
    # Not negative: a single answer gives 0, not -0.
    return abs(sum(c / total * math.log(total / c) for c in Counter(answers).values())) if total else math.nan
