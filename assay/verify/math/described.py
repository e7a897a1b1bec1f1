"""Sets of real numbers in words: ``all real numbers greater than or equal to 2`` as ``x >= 2``."""

from __future__ import annotations

import re

_SUBJECT = re.compile(
    r"(?:the set of )?(?:all|any|every|each)(?: possible)?(?: the)?(?: real)?(?: numbers?| values?| reals?)?(?: of)?"
    r"(?:\s(?P<name>[a-z])\b)?,?\s?(?:such that|with|where|for which|so that|satisfying|that are|which are|"
    r"that is|if|:|\|)?\s?"
    r"|(?:real )?(?:numbers|values|reals)\s(?:of )?(?:(?P<plural>[a-z])\b\s?)?(?:such that|with|that are|which are)?\s?"
    r"|(?P<alone>[a-z])\s(?:is|must be|has to be|can be|lies|belongs to|in)\s|(?P<bare>[a-z])\s(?=at |less|"
    r"greater|more|strictly|between)",
)
_NUMBER = (
    r"(-?(?:[0-9]{1,15}(?:\.[0-9]{1,15})?(?:/[0-9]{1,15})?|[0-9]{0,9}√[0-9]{1,9}|"
    r"\\frac\{[0-9]{1,9}\}\{[0-9]{1,9}\}|π|e))"
)
_RELATIONS = (
    (r"(?:greater|more|larger|bigger) than or equal to|at least|no less than|not less than|no smaller than", ">="),
    (r"(?:less|smaller) than or equal to|at most|no (?:more|greater|larger) than|not (?:more|greater) than", "<="),
    (r"(?:strictly )?(?:greater|more|larger|bigger) than|above", ">"),
    (r"(?:strictly )?(?:less|smaller|fewer) than|below", "<"),
)
_CLAUSES = tuple(
    (re.compile(rf"(?:(?:[a-z]\s)?(?:is|are|be|lies)\s)?(?:{words})\s{_NUMBER}"), sign) for words, sign in _RELATIONS
)
_COMPARED = re.compile(r"than|least|most|above|below")
_BETWEEN = re.compile(rf"(?:is |lies |are |numbers )?(strictly )?(?:between|from) {_NUMBER} (?:and|to) {_NUMBER},?(.*)")
_INCLUSIVE = re.compile(
    r"\s?\(?(?:both )?(?:(?:ends?|endpoints|bounds|both) )?(?:are )?(?:inclusive|included|inclusively)\)?"
)
_EXCLUSIVE = re.compile(
    r"\s?\(?(?:both )?(?:(?:ends?|endpoints|bounds|both) )?(?:are )?(?:exclusive|excluded|not included|"
    r"not inclusive)\)?"
)
_EXCEPT = re.compile(
    r"(?:all|any|every|each)(?: the)?(?: real)?(?: numbers?| values?| reals?)?(?: of)?(?:\s(?P<name>[a-z]))?,?\s"
    r"(?:except|excluding|other than|but|but not|apart from|besides|different from|not equal to|without)(?: for|"
    r" when| at| where)?\s(?P<points>.+)"
)
_POINT = re.compile(rf"(?:[a-z] ?= ?)?{_NUMBER}")
_INTERVAL = re.compile(rf"(?:the )?(open|closed|half[- ]open) interval (?:from|between) {_NUMBER} (?:to|and) {_NUMBER}")
_WITHOUT = re.compile(r"(?:[a-z] ?∈ ?)?[Rℝ] ?[\\∖-] ?(?=[\[{(⦃])")
_REST = re.compile(r"[-0-9a-z\s<>=!./√π{}\\∞^|,]+")


_LESS = re.compile(
    r"(?P<base>.{3,90}?),?\s(?:except|excluding|other than|but not|but|apart from|besides|without)(?: for| "
    r"when| at| where)?\s"
    r"(?P<points>[^<>]{1,40})"
)


def _without_points(text: str, match: re.Match[str]) -> str | None:
    """``x >= 2 except x = 3`` and ``[2, ∞) without 3``."""
    points = [_POINT.fullmatch(p.strip()) for p in re.split(r"\sand\s|\sor\s|,", match["points"]) if p.strip()]
    base = text[: match.end("base")]
    if not points or not all(points):
        return None
    if base[:1] in "[(" and "," in base:
        return f"{base} ∖ ⦃{', '.join(p[1] for p in points if p)}⦄"
    said = real_set(base) or base
    name = re.search(r"\b[a-z]\b(?=\s?[<>≤≥])", said)
    if name is None or not re.search("[<>≤≥]", said):
        return None
    return f"{said} and " + " and ".join(f"{name[0]} != {p[1]}" for p in points if p)


def real_set(text: str) -> str | None:
    """Return relations or an interval for the words of ``text``, ``None`` if they describe no set of real numbers."""
    if len(text) > 160:
        return None
    if (match := _WITHOUT.match(text)) is not None:
        return f"ℝ∖{text[match.end() :]}"
    low = text.casefold()
    if (match := _INTERVAL.fullmatch(low)) is not None and not match[1].startswith("half"):
        return f"[{match[2]}, {match[3]}]" if match[1] == "closed" else f"x > {match[2]} and x < {match[3]}"
    if (match := _EXCEPT.fullmatch(low)) is not None:
        name = match["name"] or "x"
        points = [_POINT.fullmatch(p.strip()) for p in re.split(r"\sand\s|\sor\s|,", match["points"]) if p.strip()]
        return " and ".join(f"{name} != {p[1]}" for p in points if p) if points and all(points) else None
    if (match := _LESS.fullmatch(low)) is not None and (reduced := _without_points(text, match)) is not None:
        return reduced
    subject = _SUBJECT.match(low)
    rest = low[subject.end() :].strip() if subject is not None else low
    name = next((g for g in subject.groups() if g), "x") if subject is not None else "x"
    if (match := _BETWEEN.fullmatch(rest)) is not None:
        strictly, a, b, end = match.groups()
        if not strictly and _INCLUSIVE.fullmatch(end):
            return f"{a} <= {name} <= {b}"
        return f"{a} < {name} < {b}" if (strictly and not end) or _EXCLUSIVE.fullmatch(end) else None
    said = f"{name} {rest}" if rest[:1] in "<>!" else rest
    if _COMPARED.search(said) is not None:
        for pattern, sign in _CLAUSES:
            said = pattern.sub(rf"{name} {sign} \1", said)
    if said == low or not re.search("[<>]|!=", said) or not _REST.fullmatch(said):
        return None
    return said
