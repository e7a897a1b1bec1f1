"""Two values put side by side without a word between them that chooses: ``41`` and ``42`` on lines, ``41 = 42``.

A response that is nothing but values commits to one only where they are the same. Work is something else: lines with a
computation or an equation lead to the last of them, and a label or a sentence says which value is meant.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from fractions import Fraction

from assay.verify.math.read import read
from assay.verify.math.spoken import in_digits
from assay.verify.math.unmarked import whole
from assay.verify.math.values import Items, RealSet, Scalar

MAX_LENGTH = 400
MAX_VALUE = 80
_BOX = re.compile(
    r"^\s*[-*+]\s\[[ xX]?\]\s*|^\s*(?:[*•+>-]|\(?[0-9]{1,2}[.)]|\(?[a-hA-H][.)])\s+|^\s*\[\^?[0-9]+\]:?\s*"
)
_NOTE = re.compile(r"\[\^?[0-9]+\]\s*$|[¹²³*†‡]+\s*$|^\s*(?:[¹²³†‡]|\*(?!\*))\s*")
_JOINS = re.compile(
    r"^\s*(?:or|and|also|alternatively|and also|or else|or maybe)\b[\s:,]*|"
    r"[\s,;]*\b(?:or|and also|or else|and)\s*[,:]?\s*$",
    re.IGNORECASE,
)
_WORK = re.compile(r"[0-9)}]\s*(?:[+×·÷*]|\s[-−/]\s)\s*[0-9(\\]|[<>≤≥]|\\(?:times|cdot|div)")
_RULE = re.compile(r"[\s|:-]+")
_EQUALS = re.compile(r"\s(?:=|≈|~|≃|≅)\s")
_ALSO = re.compile(
    r"^[\s.!;,)$*]*(?P<value>[^\n]{1,60}?)[*\s$]+(?:(?:is|are|would be|may be|can be|could be|might be|was) (?:\w+ )?"
    r"(?:also|another|too|as well|an? (?:\w+ )?(?:answer|solution|result|option|choice)|"
    r"equally|possible|fine|acceptable|correct|right|valid|ok)|also\b|works?\b|"
    r"too\b|as well\b|fits\b|is fine\b)",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"[$€£]?\s?-?[0-9][0-9.,:/]*\s?[%√π°]?[0-9]*(?:\s?[A-Za-z/]{1,12}[²³]?)?|[({\[][-0-9., ]+[)}\]]|\\\{[-0-9., ]+\\\}"
)
"""One plain value, which no variable, function or operation makes something to be worked out."""
_LISTED = re.compile(r"[({\[].*,.*[)}\]]|^[^,]*[0-9]\s?(?:,| and )\s?-?[0-9][^,]*$")
_LONG = re.compile(r"[^\W\d_]{3,}")
_DIGITS = re.compile(r"[0-9.]+")
_CLOSE = Fraction(1, 50)


def side_by_side(response: str, after: str, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """Return another value that stands beside the right one as its equal, ``None`` without any.

    Args:
        response: only a short one is looked at as a whole.
        after: what follows the answer in it.
        reference: what the answer is compared with; one of several values is looked for among such.
        agrees: whether a text is the reference.
    """
    another = functools.partial(_another, reference, agrees)
    spoken = any(map(str.isalpha, after[:80]))
    if spoken and (also := _ALSO.match(after)) is not None and another(also["value"]):
        return also["value"]
    lines = [line for line in response.split("\n") if line.strip()] if len(response) <= MAX_LENGTH else []
    if len(lines) == 1:
        return _equated(lines[0], another, agrees)
    if any(len(_LONG.findall(line)) > 6 for line in lines):
        return None
    values = _values(lines)
    if values is None or len(values) < 2 or not any(agrees(value) for value in values):
        return None
    return next((value for value in values if another(value)), None)


def _kind(reference: str) -> object:
    return next(iter(read(reference)), None)


def _another(reference: str, agrees: Callable[[str], bool], value: str) -> bool:
    """Say whether a text is a value, and another one; one of the several values of an answer is none."""
    raw, value = value.strip(), _undressed(value)  # a raised 2 may be a power, or the mark of a footnote
    if not value or agrees(raw) or len(value) > MAX_VALUE or agrees(value):
        return False
    said = value if any(map(str.isdigit, value)) else in_digits(value)
    if not any(map(str.isdigit, said)) or not whole(said) or agrees(said) or _WORK.search(said) is not None:
        return False
    kind = _kind(reference)
    several = isinstance(kind, Items) and len(kind.items) > 1
    return not (several or isinstance(kind, RealSet)) or _LISTED.search(said) is not None


def _undressed(text: str) -> str:
    text = _JOINS.sub("", text.strip())
    text = text.replace("**", "").replace("__", "").replace("`", "").strip()
    return _JOINS.sub("", _NOTE.sub("", _BOX.sub("", _NOTE.sub("", text)))).strip(" .,;*")


def _values(lines: list[str]) -> list[str] | None:
    """The lines and cells of a text where all are values; ``None`` where one is anything else."""
    found = []
    for place, line in enumerate(lines):
        if _RULE.fullmatch(line) is not None:
            continue
        cells = [cell for cell in line.strip().strip("|").split("|") if cell.strip()]
        if len(cells) != 1:
            return None
        value = _undressed(cells[0])
        if not value:
            continue
        if line.lstrip().startswith("|") and not place and not any(map(str.isdigit, value)):
            continue  # the head of a table
        if "=" in value and _EQUALS.search(value) is not None and not re.match(r"[a-z]\s?=", value):
            return None
        if (
            len(_LONG.findall(value)) > 3
            or _WORK.search(value) is not None
            or not (whole(value) or whole(in_digits(value)))
        ):
            return None
        found.append(value)
    return found


def _equated(line: str, another: Callable[[str], bool], agrees: Callable[[str], bool]) -> str | None:
    """The left of ``41 = 42``: two plain values that are set equal and are far from it."""
    parts = _EQUALS.split(line, maxsplit=1)
    if len(parts) != 2 or _PLAIN.fullmatch(left := parts[0].strip(" *")) is None:
        return None
    right = _undressed(parts[1])
    if not another(left) or not agrees(right):
        return None
    one, two = _kind(left), _kind(in_digits(right))
    if isinstance(one, Scalar) and isinstance(two, Scalar):
        a, b = one.node, two.node
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return left if one.unit == two.unit and abs(a - b) > _CLOSE * max(abs(a), abs(b)) else None
    return left if _DIGITS.sub("", left) == _DIGITS.sub("", right) else None


__all__ = ["side_by_side"]
