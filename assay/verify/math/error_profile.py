"""What is wrong with a solution, on six axes and without a model: answer, distance, arithmetic, algebra, structure,
form; and how absurd its answer is."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from assay.registry import build, part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, extract
from assay.verify.answer.spans import Span
from assay.verify.base import Verifier, answer_place
from assay.verify.math.expressions.evaluate import ARITHMETIC, evaluate, floats
from assay.verify.math.expressions.identity import ratio
from assay.verify.math.expressions.nodes import Node, add, neg, variables
from assay.verify.math.expressions.values import Scalar
from assay.verify.math.read.reading import number, read
from assay.verify.text.compare import last_number, parse_number

AXES = ("answer", "distance", "arithmetic", "algebra", "structure", "form")
WEIGHTS = (0.3, 0.2, 0.15, 0.15, 0.1, 0.1)
ORDERS = 3.0
"""Orders of magnitude by which an answer has to be off to be wholly absurd."""
KIND = 0.5
"""How absurd it is that a sign is wrong, or that a number is broken where a whole one is asked for."""
NGRAM = 4
MOST, LONGEST = 2000, 400
"""Pieces of a solution that are looked at for equations, and characters of one, at most."""
_RUN = re.compile(r"[0-9A-Za-z+\-*/×÷·^().,% $=]*=[0-9A-Za-z+\-*/×÷·^().,% $=]*")
_CUT = re.compile(
    r"[;:\n]|\.(?=\s|$)|,(?=\s)|<<|>>|\b(?:so|then|thus|hence|and|therefore|we|get|gives?|which|means|is)\b|=>"
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Profile:
    """How wrong a solution is.

    Attributes:
        errors: one number in [0, 1] per axis of :data:`AXES`, 0 where nothing is wrong.
        absurdity: in [0, 1]: how implausible its answer or its form is, whatever the question.
    """

    errors: tuple[float, ...]
    absurdity: float

    def wrongness(self, weights: Sequence[float] = WEIGHTS) -> float:
        """Return sum_j w_j e_j."""
        return math.fsum(w * e for w, e in zip(weights, self.errors, strict=True))


def profile(task: Task, response: str, right: bool, answer: str | None, truncated: bool = False) -> Profile:
    """Return the profile of a solution.

    answer: 1 if it is not right. distance: min(1, |a - b| / max(|b|, 1)) of a wrong answer a from the reference b, 1
    where either is no number. arithmetic: share of its stated equations without letters that do not hold, to the
    decimals that are written. algebra: share of its steps from one equation in a letter to the next in the same that
    do not follow: the second is no multiple of the first, nor a value of the letter for which the first holds.
    structure: mean of: no equation and fewer than two lines or sentences; the share of the question's numbers that it
    does not use; an answer that none of it comes to. form: 1 without an answer or if cut short, else the share of
    4-grams of words that are said again.

    Absurdity is the largest of: a wrong numeric answer's orders of magnitude from the reference, over 3; 1/2 for a
    wrong sign or a broken number for a whole one; 1 for words in place of a number; the form's error.

    Args:
        task, response: the solution and what of.
        right: what its verifier says.
        answer: what it commits to; ``None`` or blank for nothing.
        truncated: whether it was cut short.

    Source: "Hard Negative Sample-Augmented DPO" (arXiv 2512.19728), whose abstract names six dimensions, wrongness and
    absurdity; the axes and their formulas are choices.
    """
    told, wanted = (None if x is None else _value(x) for x in (answer, task.reference))
    arithmetic, algebra, results = _equations(response)
    empty = truncated or not (answer or "").strip()
    form = 1.0 if empty else _repeated(response)
    distance = 0.0
    if not right:
        distance = 1.0
        if told is not None and wanted is not None:
            distance = min(1.0, float(abs(told - wanted) / max(abs(wanted), Fraction(1))))
    structure = (_bare(response) + _unused(task.question, response) + _underived(response, answer, told, results)) / 3
    absurd = max(form, 0.0 if right else _absurd(told, wanted))
    return Profile((float(not right), distance, arithmetic, algebra, structure, form), absurd)


def _value(text: Any) -> Fraction | None:
    """The number that an answer or a reference is, or ends in."""
    found = number(str(text))
    if found is not None:
        return found
    last = last_number(str(text)) if isinstance(text, int | float | str) else None
    return None if last is None or _WORD.search(str(text).replace("text", "")) else parse_number(last)


def _absurd(told: Fraction | None, wanted: Fraction | None) -> float:
    if wanted is None:
        return 0.0
    if told is None:
        return 1.0
    odd = KIND * ((told < 0) != (wanted < 0) or (told.denominator > 1 and wanted.denominator == 1))
    apart = abs(math.log10(max(abs(float(told)), 1e-9) / max(abs(float(wanted)), 1e-9))) if told and wanted else 0.0
    return max(odd, min(1.0, apart / ORDERS))


def _equations(response: str) -> tuple[float, float, list[Fraction]]:
    """Return the shares of false sums and of steps that do not follow, and what sums are said to come to."""
    sums, letters, results = list[bool](), list[tuple[str, Node]](), list[Fraction]()
    for sides in _stated(response):
        for left, right in pairwise(sides):
            names = variables(left.node) | variables(right.node)
            if not names:
                sums.append(_holds(left, right))
                if isinstance(right.node, Fraction):
                    results.append(right.node)
            elif len(names) == 1:
                letters.append((min(names), add([left.node, neg(right.node)])))
                if isinstance(right.node, Fraction) and left.node == ("v", min(names)):
                    results.append(right.node)
    steps = [
        _follows(first, second, name)
        for (name, first), (other, second) in pairwise(letters)
        if name == other and variables(first)
    ]
    return _share(sums), _share(steps), results


def _stated(response: str) -> Iterator[list[Scalar]]:
    """Yield the sides of each stated equation, or chain of them, that can be read."""
    for piece in _CUT.split(response)[:MOST]:
        for run in _RUN.findall(piece) if "=" in piece and len(piece) <= LONGEST else ():
            sides = [_side(text, first=i == 0) for i, text in enumerate(run.split("="))]
            if all(side is not None for side in sides):
                yield [side for side in sides if side is not None]


def _side(text: str, first: bool) -> Scalar | None:
    """Read one side; prose stands before the first side of an equation, and behind any."""
    words = [(m.start(), m.end()) for m in _WORD.finditer(text)]
    if words:
        text = text[words[-1][1] :] if first else text[: words[0][0]]
    text = text.strip(" .,$")
    if not text or len(text) > 120:
        return None
    found = next((v for v in read(text) if isinstance(v, Scalar)), None)
    return found if found is not None and found.unit is None else None


def _holds(left: Scalar, right: Scalar) -> bool:
    """Whether two numbers are equal to the decimals that either is written with."""
    a, b = (evaluate_or_none(side.node) for side in (left, right))
    if a is None or b is None:
        return True
    places = max((s.decimals for s in (left, right) if s.decimals), default=None)
    allowed = 1e-9 * max(1.0, abs(a)) if places is None else 0.5 * 10.0**-places * (1 + 1e-9)
    return abs(a - b) <= allowed


def _follows(first: Node, second: Node, name: str) -> bool:
    """Whether ``second = 0`` follows from ``first = 0``: a multiple of it, or a value of the letter that solves it."""
    if ratio(first, second) is not None:
        return True
    if not variables(second):
        return False
    # second = letter - value: the value is what solves it.
    at = evaluate_or_none(second, {name: 0.0})
    slope = evaluate_or_none(add([second, neg(("v", name))]), {name: 1.0})
    if at is None or slope is None or abs(at - slope) > 1e-9:
        return False
    found = evaluate_or_none(first, {name: -at})
    return found is not None and abs(found) <= 1e-6 * max(1.0, abs(at))


def evaluate_or_none(node: Node, point: Mapping[str, complex] | None = None) -> complex | None:
    """Return the value of an expression at a point, ``None`` if it has none."""
    try:
        return complex(evaluate(node, point or {}, floats(False)))
    except (KeyError, *ARITHMETIC):
        return None


def _share(good: Sequence[bool]) -> float:
    return 1 - sum(good) / len(good) if good else 0.0


def _bare(response: str) -> float:
    """Whether nothing leads to the answer."""
    lines = [x for x in re.split(r"[\n]|(?<=[.!?])\s", response.strip()) if x.strip()]
    return float("=" not in response and len(lines) < 2)


def _unused(question: str, response: str) -> float:
    """Share of the distinct numbers of a question that a response does not have."""
    asked = {parse_number(x.rstrip(",")) for x in _NUMBER.findall(question)} - {None}
    used = {parse_number(x.rstrip(",")) for x in _NUMBER.findall(response)}
    return len(asked - used) / len(asked) if asked else 0.0


def _underived(response: str, answer: str | None, told: Fraction | None, results: Sequence[Fraction]) -> float:
    """Whether the answer is nowhere come to: no equation ends in it and it stands nowhere else."""
    if told is not None:
        every = [parse_number(x.rstrip(",")) for x in _NUMBER.findall(response)]
        return float(told not in results and every.count(told) < 2)
    return float(not answer or response.count(answer) < 2)


def _repeated(response: str) -> float:
    """Share of runs of :data:`NGRAM` words that were there before."""
    words = response.split()
    runs = Counter(tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1))
    return 1 - len(runs) / runs.total() if runs else 0.0


def committed(verifier: Verifier, task: Task, response: str) -> str | None:
    """Return the answer that a verifier reads in a response; what is marked or its last line where it says nothing."""
    span: Span | None = answer_place(verifier, task, response)
    return extract(response, RULES, "line") if span is None else response[span.start : span.end].strip()


@part("verify", "error_profile")
@dataclass(frozen=True, slots=True)
class ErrorProfile:
    """The verdict of another verifier, with what is wrong with the solution in its parts.

    The parts ``answer``, ``distance``, ``arithmetic``, ``algebra``, ``structure`` and ``form`` are 1 minus the errors
    of :func:`profile`; ``wrongness | weighted`` and ``absurdity | at most 1`` are notes.

    Args:
        verifier: says whether the answer is right.
    """

    verifier: Any = "math"
    _inner: Verifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inner", build("verify", self.verifier))

    def __call__(self, task: Task, response: str) -> Verdict:
        found = self._inner(task, response)
        if found.passed is None:
            return found
        made = profile(task, response, found.passed, committed(self._inner, task, response))
        parts = {name: 1 - e for name, e in zip(AXES, made.errors, strict=True)}
        notes = {"wrongness | weighted": made.wrongness(), "absurdity | at most 1": made.absurdity}
        return Verdict(found.score, found.passed, {**parts, **notes}, found.feedback, found.fault)

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: where the other verifier reads it."""
        return answer_place(self._inner, task, response)
