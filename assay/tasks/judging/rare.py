r"""Judged answers of rare kinds, intervals, matrices, quantities and so on, made from those that are there.

Each kind has its own other writings and its own slips: sets in another order, brackets of intervals exchanged, units
converted. A verifier without a model has the last word on each.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from assay.errors import UsageError
from assay.tasks.judging.formulas import altered, rewritten
from assay.tasks.judging.ternary import Item
from assay.types import Task
from assay.verify.number.computed import Computed
from assay.verify.number.quantity import read

_OPTION = re.compile(r"\(?([A-J])\)?\.?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FRACTION = re.compile(r"-?(?:\d+\s*/\s*\d+|\\[dt]?frac\{-?\d+\}\{-?\d+\})")
_RATIO = re.compile(r"(\d+)\s*:\s*(\d+)")
_INTERVAL = re.compile(r"([\[(])([^()\[\],]+),([^()\[\],]+)([\])])")
_SET = re.compile(r"(\\?\{)(.+?)(\\?\})")
_TUPLE = re.compile(r"([\[(])(.+,.+)([\])])")
_MATRIX = re.compile(r"\\begin\{([pb])matrix\}(.+)\\end\{\1matrix\}", re.DOTALL)
_RELATION = re.compile(r"\\leq?|\\geq?|[<>≤≥=]")
_ELEMENT = "A[glru]|B[aer]?|C[aloru]?|Fe?|H[eg]?|I|K|Li|M[gn]|N[aei]?|O|P[bt]?|S[in]?|Ti|U|V|W|Zn"
_COMPOUND = re.compile(rf"(?:(?:{_ELEMENT})\d{{0,3}}){{2,}}|(?:{_ELEMENT})\d{{1,3}}")
_MEASURED = re.compile(r"(-?\d+(?:\.\d+)?)\s*([^\d\s].*)")
_TRUTH = {"true": "yes", "yes": "true", "false": "no", "no": "false"}
_OTHER_WAY = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", r"\leq": r"\geq", r"\geq": r"\leq", "=": "="}
_OTHER_WAY |= {"≤": "≥", "≥": "≤"}
_STRICT = {"<": r"\le", ">": r"\ge", r"\le": "<", r"\ge": ">", r"\leq": "<", r"\geq": ">", "≤": "<", "≥": ">"}
_UNITS: dict[str, tuple[str, Fraction]] = {
    "km": ("m", Fraction(1000)), "m": ("cm", Fraction(100)), "cm": ("m", Fraction(1, 100)),
    "kg": ("g", Fraction(1000)), "g": ("kg", Fraction(1, 1000)), "h": ("min", Fraction(60)),
    "min": ("s", Fraction(60)), "s": ("ms", Fraction(1000)), "m/s": ("km/h", Fraction(18, 5)),
    "km/h": ("m/s", Fraction(5, 18)), "J": ("kJ", Fraction(1, 1000)), "kJ": ("J", Fraction(1000)),
    "L": ("mL", Fraction(1000)), "V": ("mV", Fraction(1000)), "N": ("kN", Fraction(1, 1000)),
}  # fmt: skip
"""Another unit for each, and how many of it one is."""
_PLAIN = ("option", "truth", "compound", "percentage", "quantity", "words")


def answer_kind(reference: str) -> str:
    """Return what kind of answer a reference is by its form.

    ``option``, ``truth``, ``matrix``, ``interval``, ``set``, ``tuple``, ``list``, ``inequality``, ``equation``,
    ``ratio``, ``percentage``, ``number``, ``fraction``, ``compound`` (of chemistry), ``quantity`` (with a unit),
    ``expression``, else ``words``.
    """
    text = bare(reference)
    ends = _INTERVAL.fullmatch(text)
    tests: tuple[tuple[str, object], ...] = (
        ("option", _OPTION.fullmatch(text)),
        ("truth", text.lower() in _TRUTH),
        ("matrix", r"\begin{" in text and "matrix}" in text),
        ("interval", ends and (ends[1] + ends[4] != "()" or "infty" in text)),
        ("set", _SET.fullmatch(text)),
        ("tuple", _TUPLE.fullmatch(text)),
        ("list", "," in text and any(c.isdigit() for c in text)),
        ("inequality", any(m[0] != "=" for m in _RELATION.finditer(text))),
        ("equation", "=" in text),
        ("ratio", _RATIO.fullmatch(text)),
        ("percentage", text.endswith("%")),
        ("number", _NUMBER.fullmatch(text)),
        ("fraction", _FRACTION.fullmatch(text)),
        ("compound", _COMPOUND.fullmatch(text)),
        ("quantity", (found := read(text)) is not None and found.readings),
        ("expression", re.search(r"[\d\\^+*/]", text) or re.fullmatch("[a-z]", text)),
    )
    return next((kind for kind, met in tests if met), "words")


def bare(reference: str) -> str:
    """Return an answer without the signs that it stands between."""
    return reference.strip().strip("$").strip().replace(r"\%", "%")


def rare_items(items: Sequence[Item], rng: np.random.Generator, share: float) -> list[Item]:
    """Return items of the kinds of answers that are rare, so many that each comes to ``share`` of the commonest.

    Kinds are of answers within a domain. What is made is of questions that are there, with the reference in another
    writing, or with what is nearly it, so that right and wrong ones come to be as many; a kind of which no more can be
    made stays rarer.

    Args:
        items: judged ones, right A or wrong B; a kind that they do not name is :func:`answer_kind`.
        rng: of the lots which variants are taken.
        share: in [0, 1].

    Raises:
        UsageError: ``share`` is out of range.

    Source: the long-tail augmentation of CoSineVerifier (arXiv 2512.01224), by rules.
    """
    if not 0 <= share <= 1:
        raise UsageError(f"rare kinds of answers: share {share:g} must be in [0, 1]")
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        kind = item.kind or answer_kind(item.reference)
        kinds.setdefault((item.domain, kind), []).append(replace(item, kind=kind))
    wanted = math.ceil(share * max(map(len, kinds.values()), default=0))
    made = []
    for key in sorted(kinds):
        there = kinds[key]
        labels = Counter(item.label for item in there)
        if len(there) >= wanted:
            continue
        sources = dict.fromkeys((item.question, item.reference) for item in there)
        by_source = {(i.question, i.reference): i for i in reversed(there)}
        answers = [bare(item.reference) for item in there]
        pool = [v for source in sources for v in variants(by_source[source], answers)]
        seen = {(item.question, item.response) for item in there}
        pool = [pool[i] for i in rng.permutation(len(pool)).tolist()]
        while labels.total() < wanted and pool:
            rarer = "A" if labels["A"] <= labels["B"] else "B"
            item = pool.pop(next((i for i, v in enumerate(pool) if v.label == rarer), 0))
            if (item.question, item.response) not in seen:
                seen.add((item.question, item.response))
                labels[item.label] += 1
                made.append(item)
    return made


def variants(item: Item, others: Sequence[str] = ()) -> list[Item]:
    """Return items with the reference in other writings, labelled A, and with what is nearly it, labelled B.

    Words are near none: wrong are ``others``, the answers of other questions. Verifier ``computed`` has to agree with
    each label; what it judges otherwise, or cannot judge, is left out.
    """
    kind, text, out = item.kind or answer_kind(item.reference), bare(item.reference), []
    task, judge = Task("rare", item.question, item.reference, "computed"), Computed()
    same, near = WRITINGS.get(kind, (rewritten, altered))
    wrong = others if kind == "words" else [*near(text)]
    for label, texts in (("A", [text, *same(text)]), ("B", wrong)):
        for answer in dict.fromkeys(texts):
            if judge(task, rf"\boxed{{{answer}}}").passed is (label == "A"):
                shown = answer if kind in _PLAIN else f"${answer}$"
                pattern = f"{kind} {'in other writing' if label == 'A' else 'nearly the same'}"
                response = f"The answer is {shown}."
                out.append(replace(item, response=response, label=label, kind=kind, pattern=pattern))  # type: ignore[arg-type]
    return out


def _split(text: str) -> tuple[str, list[str], str]:
    """The opening bracket, the parts and the closing bracket of a set, tuple, interval or list."""
    match = _SET.fullmatch(text) or _TUPLE.fullmatch(text)
    opening, inner, closing = match.groups() if match else ("", text, "")
    return opening, [part.strip() for part in inner.split(",")], closing


def _joined(opening: str, parts: Sequence[str], closing: str) -> str:
    return f"{opening}{', '.join(parts)}{closing}"


def _turned(text: str) -> Iterator[str]:
    opening, parts, closing = _split(text)
    yield _joined(opening, parts[::-1], closing)
    yield _joined(opening, [*parts[1:], parts[0]], closing)


def _parts_altered(text: str) -> Iterator[str]:
    opening, parts, closing = _split(text)
    if len(parts) > 1:
        yield _joined(opening, parts[:-1], closing)
    for i, part in enumerate(parts):
        yield from (_joined(opening, [*parts[:i], x, *parts[i + 1 :]], closing) for x in altered(part))


def _tuples_altered(text: str) -> Iterator[str]:
    opening, parts, closing = _split(text)
    yield _joined(opening, parts[::-1], closing)
    yield from _parts_altered(text)


def _as_inequality(text: str) -> Iterator[str]:
    opening, (low, high), closing = _split(text)
    if "infty" not in text:
        first, second = ("<" if end in "()" else r"\le" for end in (opening, closing))
        yield f"{low} {first} x {second} {high}"


def _ends_altered(text: str) -> Iterator[str]:
    opening, parts, closing = _split(text)
    if "infty" not in parts[0]:
        yield _joined("(" if opening == "[" else "[", parts, closing)
    if "infty" not in parts[-1]:
        yield _joined(opening, parts, ")" if closing == "]" else "]")
    yield from (x for x in _parts_altered(text) if "," in x)


def _other_brackets(text: str) -> Iterator[str]:
    if match := _MATRIX.fullmatch(text):
        name = {"p": "b", "b": "p"}[match[1]]
        yield rf"\begin{{{name}matrix}}{match[2]}\end{{{name}matrix}}"


def _entries_altered(text: str) -> Iterator[str]:
    if match := _MATRIX.fullmatch(text):
        rows = [row.strip() for row in match[2].split(r"\\") if row.strip()]
        for inner in (r"\\".join(rows[::-1]), *altered(match[2])):
            yield rf"\begin{{{match[1]}matrix}}{inner}\end{{{match[1]}matrix}}"


def _sides_swapped(text: str) -> Iterator[str]:
    found = list(_RELATION.finditer(text))
    if len(found) == 1:
        left, right = text[: found[0].start()].strip(), text[found[0].end() :].strip()
        yield f"{right} {_OTHER_WAY[found[0][0]]} {left}"


def _relation_altered(text: str) -> Iterator[str]:
    for match in _RELATION.finditer(text):
        for changed in {_OTHER_WAY[match[0]]: 0, _STRICT.get(match[0], match[0]): 0}:
            if changed != match[0]:
                yield f"{text[: match.start()]}{changed} {text[match.end() :].strip()}"
    # Without its blanks a relation would run into the name after it.
    yield from (x for x in altered(text) if " " in x or " " not in text)


def _multiplied(text: str) -> Iterator[str]:
    if match := _RATIO.fullmatch(text):
        yield from (f"{k * int(match[1])}:{k * int(match[2])}" for k in (2, 3))


def _exchanged(text: str) -> Iterator[str]:
    if match := _RATIO.fullmatch(text):
        yield f"{match[2]}:{match[1]}"
    yield from altered(text)


def _set_upright(text: str) -> Iterator[str]:
    low = re.sub(r"(\d+)", r"_{\1}", text)
    yield from (low, rf"\mathrm{{{low}}}")


def _counts_altered(text: str) -> Iterator[str]:
    yield from (x for x in altered(text) if _COMPOUND.fullmatch(x) and not re.search(r"[A-Za-z][01](?!\d)", x))
    for single in re.finditer(rf"(?:{_ELEMENT})(?![a-z\d])", text):
        yield f"{text[: single.end()]}2{text[single.end() :]}"


def _converted(text: str) -> Iterator[str]:
    match = _MEASURED.fullmatch(text)
    if match and match[2] in _UNITS:
        unit, each = _UNITS[match[2]]
        yield f"{float(Fraction(match[1]) * each):.10g} {unit}"


def _measured_otherwise(text: str) -> Iterator[str]:
    if match := _MEASURED.fullmatch(text):
        yield f"{float(Fraction(match[1]) * 10):.10g} {match[2]}"
        if match[2] in _UNITS:
            yield f"{match[1]} {_UNITS[match[2]][0]}"
            yield from (f"{x.split()[0]}0 {x.split()[1]}" for x in _converted(text) if "." not in x)
        yield from (f"{x} {match[2]}" for x in altered(match[1]))


def _truth_in_other_words(text: str) -> Iterator[str]:
    yield _TRUTH[text.lower()].capitalize()


def _denied(text: str) -> Iterator[str]:
    right = text.lower() in ("true", "yes")
    yield from ("False", "No") if right else ("True", "Yes")


def _bracketed(text: str) -> Iterator[str]:
    if match := _OPTION.fullmatch(text):
        yield from (f"({match[1]})", match[1])


def _other_options(text: str) -> Iterator[str]:
    if match := _OPTION.fullmatch(text):
        yield from (x for x in "ABCD" if x != match[1])


def _nothing(text: str) -> Iterator[str]:
    yield from ()


Ways = Callable[[str], Iterator[str]]
WRITINGS: dict[str, tuple[Ways, Ways]] = {
    "set": (_turned, _parts_altered), "list": (_turned, _parts_altered), "tuple": (_nothing, _tuples_altered),
    "interval": (_as_inequality, _ends_altered), "matrix": (_other_brackets, _entries_altered),
    "equation": (_sides_swapped, altered), "inequality": (_sides_swapped, _relation_altered),
    "ratio": (_multiplied, _exchanged), "percentage": (_nothing, altered), "compound": (_set_upright, _counts_altered),
    "quantity": (_converted, _measured_otherwise), "truth": (_truth_in_other_words, _denied),
    "option": (_bracketed, _other_options), "words": (_nothing, _nothing),
}  # fmt: skip
"""By kind, how the same is written otherwise, and what is nearly it; of numbers and formulas, as in ``formulas``."""
