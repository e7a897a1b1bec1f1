"""Notations of other schools: ``]-∞; 2[``, ``{0, ±2}``, ``3i - 4j``, ``1/5 (3, -4)``, ``|x| >= 3``, ``0{,}5``."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = r"[^\[\];()]{1,40}"
_REVERSED = re.compile(rf"([\[\]])\s?({_END})\s?[;,]\s?({_END})\s?([\[\]])")
_UNION = re.compile(r"\s?(?:∪|\bU\b|\\cup|\bor\b|\bou\b)\s?")
_BRACED = re.compile(r"(?P<head>(?:[a-z]\s?(?:∈|=)\s?)?[{⦃])(?P<inside>[^{}⦃⦄]{1,120})(?P<tail>[}⦄])")
_COEFFICIENT = r"[-+]?\s?(?:\\frac\s?\{[^{}]{1,20}\}\{[^{}]{1,20}\}|\(?[0-9./√]*\)?)\s?\*?\s?"
_HAT = r"(?:\\(?:hat|vec|mathbf|bf|boldsymbol)\s?\{?\s?\\?)?"
_BASIS = re.compile(
    rf"(?P<i>{_COEFFICIENT}){_HAT}[i𝐢î]\}}?\s?(?P<j>[-+]{_COEFFICIENT}){_HAT}[j𝐣ĵ]\}}?"
    rf"(?:\s?(?P<k>[-+]{_COEFFICIENT}){_HAT}[k𝐤]\}}?)?"
)
_SCALED = re.compile(
    r"(?P<scale>-?\s?(?:\\frac\s?\{[^{}]{1,40}\}\{[^{}]{1,40}\}|\(?[0-9]{1,9}(?:/[0-9√]{1,9})?\)?))\s?(?:\*|·|"
    r"\\cdot)?\s?"
    r"[(⟨\[](?P<inside>[^()⟨⟩\[\]]{1,80},[^()⟨⟩\[\]]{1,80})[)⟩\]]|"
    r"[(⟨\[](?P<above>[^()⟨⟩\[\]]{1,80},[^()⟨⟩\[\]]{1,80})[)⟩\]]\s?/\s?(?P<under>√?[0-9]{1,9})"
)
_ABSOLUTE = re.compile(r"\|\s?([a-z])\s?\|\s?(<=?|>=?)\s?([0-9][0-9./]*|\\frac\{[0-9]+\}\{[0-9]+\}|√[0-9]+)")
_SUMS = re.compile(r"[-+*/·×÷()=€$%\s0-9.,]+")
_DECIMAL = re.compile(r"(?<![0-9,.])([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9,])")
_CALLED = re.compile(r"(?P<left>[^=<>]{1,60}?)\s?=\s?(?P<right>-?[^=<>]{1,60})")
_FUNCTION = re.compile(r"(?:\\?[A-Za-zσφτμωπ]{1,8}\s?\([^()]{1,30}\)|\|[A-Z]\||\\?det\s?\(?[A-Z]\)?)")
_UPRIGHT = re.compile(r"\\(?:mathrm|rm|mathit|textrm)\s?(?:\{\s?([a-z])\s?\}|(?=[a-z](?![a-z])))")
_TENS = re.compile(r"\s?\((?:in )?(?:base (?:10|ten)|decimal)\)$", re.IGNORECASE)
_CONSTANT = re.compile(
    r"(?P<letter>[CKc])(?:,|\s?\()?\s(?:where|with|for|and)\s(?:an?\s|any\s)?(?:(?:arbitrary|real|"
    r"any)\s)*(?:constant\s)?(?P=letter)?"
    r"(?:\sis)?(?:\s(?:an?|any))?(?:\s(?:arbitrary|real))*(?:\sconstant)?\)?$"
)


def unreversed(text: str) -> str | None:
    """Return ``]-∞; 2[ ∪ [3; 5[`` with round brackets, ``None`` if it is no union of intervals of that kind."""
    if "]" not in text or len(text) > 300:
        return None
    name, _in, rest = text.rpartition("∈")
    said = []
    for piece in _UNION.split(rest.strip()):
        match = _REVERSED.fullmatch(piece.strip())
        if match is None:
            return None
        opening, low, high, closing = match.groups()
        said.append(f"{'[' if opening == '[' else '('}{low.strip()}, {high.strip()}{']' if closing == ']' else ')'}")
    found = " ∪ ".join(said)
    return found if found != text and not (name and len(name.strip()) > 1) else None


def both_signs(text: str) -> str | None:
    """Return ``{0, ±2}`` as ``{0, 2, -2}``, ``None`` if it is nothing like it."""
    match = _BRACED.fullmatch(text) if "±" in text else None
    if match is None or "," not in match["inside"]:
        return None
    listed = []
    for one in match["inside"].split(","):
        value = one.strip()
        listed += [value[1:].strip(), f"-{value[1:].strip()}"] if value.startswith("±") else [value]
    return f"{match['head']}{', '.join(listed)}{match['tail']}"


def notations(wanted: str, answer: str, said: str, question: str) -> Iterator[str]:
    """Yield other spellings of an answer, given as it stands and in plain spelling."""
    if "{,}" in answer or "{-}" in answer or "{+}" in answer:
        yield answer.replace("{,}", ".").replace("{-}", "-").replace("{+}", "+").replace("\\mid", ",")
    if "\\mathrm" in answer or "\\rm" in answer:
        yield _UPRIGHT.sub(r"\1", answer)
    if said.endswith(")") and (base := _TENS.search(said)) is not None and base.start():
        yield said[: base.start()]
    if wanted[:1] in "(⟨[" or "matrix" in wanted:
        if (vector := _BASIS.fullmatch(said)) is not None:
            yield f"({', '.join(_component(part) for part in vector.groups() if part is not None)})"
        if (scaled := _SCALED.fullmatch(said)) is not None:
            factor = f"({scaled['scale']})*" if scaled["scale"] else ""
            under = f"/({scaled['under']})" if scaled["under"] else ""
            parts = (scaled["inside"] or scaled["above"]).split(",")
            yield f"({', '.join(f'{factor}({part.strip()}){under}' for part in parts)})"
    if (
        said[:1] == "|"
        and (absolute := _ABSOLUTE.fullmatch(said)) is not None
        and "".join(said.split()) not in "".join(question.split())
    ):
        name, sign, end = absolute.groups()
        yield (
            f"-{end} {sign} {name} {sign} {end}"
            if sign[0] == "<"
            else f"{name} {_LESS[sign]} -{end} or {name} {sign} {end}"
        )
    if "," in said and "=" in said and _SUMS.fullmatch(said) is not None:
        yield _DECIMAL.sub(r"\1.\2", said)
    if (
        "=" in said
        and "=" not in wanted
        and any(map(str.isdigit, wanted[:12]))
        and (named := _CALLED.fullmatch(said)) is not None
    ):
        left, asked = _spelled(named["left"]), _spelled(question)
        known = len(left) > 2 and left in asked and _spelled(said) not in asked
        if known or _FUNCTION.fullmatch(named["left"].strip()):
            yield named["right"]
    if wanted.endswith("C") and (constant := _CONSTANT.search(said)) is not None:
        yield said[: constant.end("letter")]


_LESS = {">": "<", ">=": "<="}


def _component(part: str) -> str:
    part = part.replace(" ", "").rstrip("*")
    return f"{part}1" if part in ("", "+", "-") else part


def _spelled(text: str) -> str:
    return "".join(text.split()).replace("²", "^2").replace("{", "").replace("}", "")
