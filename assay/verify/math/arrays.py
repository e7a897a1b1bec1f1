"""Tuples, vectors and matrices as programs, calculators and schools of other countries write them."""

from __future__ import annotations

import re

_LIBRARY = re.compile(r"\b(?:math|cmath|np|numpy|sp|sympy|torch|scipy|fractions|decimal)\.(?:linalg\.)?(?=[A-Za-z])")
_CONSTRUCTOR = re.compile(
    r"(?:[a-z] ?= ?)?(?:array|matrix|Matrix|ImmutableMatrix|tensor|Tensor|vector|Vector|Point|Point2D|Point3D|"
    r"list|tuple|asarray|"
    r"c)\s?\((.*)\)",
    re.DOTALL,
)
_COLLECTION = re.compile(
    r"(?:[a-z] ?= ?|[a-z] ?∈ ?)?(?:set|frozenset|FiniteSet)\s?\(\s?[\[{⦃(]?([^\[\](){}⦃⦄]{1,400})[\]}⦄)]?\s?\)"
)
_QUOTIENT = re.compile(r"\b(?:Fraction|Rational)\s?\(\s?(-?[0-9]{1,200})\s?,\s?(-?[0-9]{1,200})\s?\)")
_POW = re.compile(r"\bpow\s?\(\s?([^(),]{1,60}),\s?([^(),]{1,60})\)")
_DECIMAL = re.compile(r"\b(?:Decimal|float|int|Integer|complex|Float)\s?\(\s?['\"]?([^()'\"]{1,60})['\"]?\s?\)")
_COMPLEX = re.compile(r"(?<=[0-9)])\s?\*?\s?[jI]\b(?!\s?[=*])")
_INTERVAL = re.compile(r"Interval(\.open)?\s?\(([^(),]{1,40}),([^(),]{1,40})\)")
_BARS = re.compile(r"\(([^()|]{1,60}(?:\|[^()|]{1,60}){1,4})\)")
_ANGLES = re.compile(r"<(\s?[^<>=,]{1,60}(?:,[^<>=,]{1,60}){1,9})>")
_SPACED = re.compile(r"[\[(]\s*(-?[0-9][0-9./]*(?:\s+-?[0-9][0-9./]*){1,19})\s*[\])]")
_ROWS = re.compile(r"[\[(]\s*([^\[\](){};\n]{1,200}(?:;\s*[^\[\](){};\n]{1,200}){1,9})\s*[\])]")
_NESTED = re.compile(r"[({⦃]\s*((?:[({⦃]\s*[^(){}⦃⦄\[\]]{1,200}[)}⦄]\s*,?\s*){2,10})[)}⦄]")
_ROW = re.compile(r"[({⦃]([^(){}⦃⦄]{1,200})[)}⦄]")
_STACKED = re.compile(r"\[[^\[\],]{1,200}\](?:\s*,?\s*\[[^\[\],]{1,200}\]){1,9}")
_HEAD = re.compile(r"(?:[A-Za-z](?:_?[0-9])? ?= ?)?")


def in_brackets(text: str) -> str | None:
    """Return ``text`` with lists in brackets and commas, ``None`` if there is nothing to change."""
    if len(text) > 1000:
        return None
    said = _LIBRARY.sub("", text) if "." in text else text
    if "(" in said:
        if (match := _CONSTRUCTOR.fullmatch(said)) is not None:
            said = match[1].strip()
        elif (match := _COLLECTION.fullmatch(said)) is not None:
            said = f"⦃{match[1]}⦄"
    if "(" in said:
        said = _POW.sub(r"(\1)^{\2}", _QUOTIENT.sub(r"(\1)/(\2)", said))
        said = _DECIMAL.sub(r"\1", said)
        said = _INTERVAL.sub(lambda m: f"{m[2]} < x < {m[3]}" if m[1] else f"{m[2]} <= x <= {m[3]}", said)
        if "|" in said:
            said = _BARS.sub(lambda m: f"({m[1].replace('|', ',')})", said)
    if "<" in said:
        said = _ANGLES.sub(r"⟨\1⟩", said)
    body = said[_HEAD.match(said).end() :] if "=" in said[:6] else said  # type: ignore[union-attr]
    if body[:1] in ("[", "(", "{", "⦃"):
        said = _in_commas(body) or said
    if said == text and ("j" in said or "I" in said) and (body := _COMPLEX.sub("i", said)) != said:
        said = body
    return said if said != text else None


def _in_commas(body: str) -> str | None:
    """Rows and columns that are set apart by blanks, semicolons or brackets, as rows in square ones."""
    if (match := _SPACED.fullmatch(body)) is not None:
        return "[" + ", ".join(match[1].split()) + "]"
    if (match := _ROWS.fullmatch(body)) is not None:
        rows = [re.split(r"\s*,\s*|\s+", row.strip()) for row in match[1].split(";")]
        return _listed(rows) if len(rows[0]) > 1 else None
    if (match := _NESTED.fullmatch(body)) is not None:
        return "[" + ", ".join(f"[{row}]" for row in _ROW.findall(match[1])) + "]"
    if body.startswith("[[") and body.endswith("]]") and _STACKED.fullmatch(body[1:-1]):
        # NumPy prints no commas.
        return _listed([row.split() for row in re.findall(r"\[([^\[\]]*)\]", body[1:-1])])
    return None


def _listed(rows: list[list[str]]) -> str:
    return "[" + ", ".join("[" + ", ".join(row) + "]" for row in rows) + "]"
