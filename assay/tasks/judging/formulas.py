r"""The same formula in other writing, and formulas that are nearly it, told apart by the verifier of mathematics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from assay.tasks.judging.ternary import Item
from assay.types import Task
from assay.verify.math.verifier import Math

_INTEGER = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_RATIO = re.compile(r"(?P<sign>-?)(?:\\d?frac\{(?P<above>\d+)\}\{(?P<below>\d+)\}|(?P<over>\d+)\s*/\s*(?P<under>\d+))")
_FORM = re.compile(r"(?i)simplif|expand|factor|lowest|decimal|fraction|round|\bform\b|\bas an?\b|write|express")
_EQUAL = Math()


def formula_variants(item: Item, rng: np.random.Generator, most: int = 3) -> list[Item]:
    """Return up to ``most`` items whose answer is the reference in other writing, and as many with one that is near it.

    A text is labelled by :class:`~assay.verify.math.verifier.Math`; one that it cannot judge is left out. Where the
    question may demand a form there is no other writing. Which ones are returned, of more, is by lot.

    Args:
        item: whose question and reference they are of.
        rng: of the lots.
        most: see above; 1 to 3 in the paper.

    Source: CompassVerifier (arXiv 2508.03686), its formula augmentation.
    """
    reference = item.reference.strip().strip("$").strip()
    task, found = Task("formula", item.question, item.reference, "math"), {True: list[str](), False: list[str]()}
    if not any(c.isdigit() for c in reference):
        return []  # a word, not a formula
    other = () if _FORM.search(item.question) else rewritten(reference)
    for text in dict.fromkeys([*other, *altered(reference)]):
        passed = _EQUAL(task, rf"\boxed{{{text}}}").passed
        if text != reference and passed is not None:
            found[passed].append(text)
    out = []
    for passed, texts in found.items():
        for k in rng.permutation(len(texts))[:most].tolist():
            name = "formula in other writing" if passed else "formula nearly the same"
            made = replace(item, response=f"The answer is ${texts[k]}$.", label="A" if passed else "B")
            out.append(replace(made, kind="formula", pattern=name))
    return out


def rewritten(text: str) -> Iterator[str]:
    """Yield writings that should have the value of a formula: as fraction and decimal, with terms in another order."""
    value = _value(text)
    if value is not None:
        yield rf"{'-' * (value < 0)}\frac{{{2 * abs(value.numerator)}}}{{{2 * value.denominator}}}"
        yield f"{value.numerator}/{value.denominator}"
        if (exact := _finite(value)) is not None:
            yield exact
            yield exact + ("0" if "." in exact else ".0")
    terms = _terms(text)
    if len(terms) > 1:
        yield "".join(reversed([t if t[0] in "+-" else f"+{t}" for t in terms])).removeprefix("+")
        yield f"-({''.join(_negated(t) for t in terms).removeprefix('+')})"


def altered(text: str) -> Iterator[str]:
    """Yield formulas near one: a number one more or less, a sign changed, numerator and denominator exchanged."""
    for number in _INTEGER.finditer(text):
        for more in (-1, 1):
            yield text[: number.start()] + str(int(number[0]) + more) + text[number.end() :]
    terms = _terms(text)
    for k in range(len(terms)):
        yield "".join([*terms[:k], _negated(terms[k]), *terms[k + 1 :]]).removeprefix("+")
    value = _value(text)
    if value:
        yield f"{value.denominator}/{value.numerator}"


def _value(text: str) -> Fraction | None:
    if _INTEGER.fullmatch(text) or _DECIMAL.fullmatch(text):
        return Fraction(text)
    ratio = _RATIO.fullmatch(text)
    if ratio is None or not int(ratio["below"] or ratio["under"]):
        return None
    value = Fraction(int(ratio["above"] or ratio["over"]), int(ratio["below"] or ratio["under"]))
    return -value if ratio["sign"] else value


def _finite(value: Fraction) -> str | None:
    """The digits of a number that has finitely many, so that no precision is lost."""
    rest, places = value.denominator, 0
    while rest % 10 == 0 or rest % 5 == 0 or rest % 2 == 0:
        rest, places = next(rest // d for d in (10, 5, 2) if rest % d == 0), places + 1
    return f"{float(value):.{places}f}" if rest == 1 and places <= 12 else None


def _terms(text: str) -> list[str]:
    """The summands of a formula with their signs; those in brackets and exponents stay together."""
    out, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c in "+-" and depth == 0 and text[start:k].strip() and text[:k].rstrip()[-1] not in "^*/=,<>":
            out.append(text[start:k])
            start = k
    return [t.replace(" ", "") for t in (*out, text[start:])]


def _negated(term: str) -> str:
    return term.replace("-", "+", 1) if term[0] == "-" else "-" + term.removeprefix("+")
