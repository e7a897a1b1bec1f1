# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Formulas and numbers between the words of any language, as they stand: ``Denn 2x + 1 = 7``, ``得(1, 6)``."""

from __future__ import annotations

import re

_FRAMED = re.compile(
    r"\$\$?([^$\n]{1,300})\$\$?|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]|"
    r"\$?\\boxed\s?\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}\$?"
)
_TOKEN = re.compile(
    r"(?P<command>\\[a-zA-Z]+|\\[,;!|%$])|(?P<number>[0-9]+(?:[.,:][0-9]+)*)|(?P<sign>[π∞√](?![α-ωΑ-Ωά-ώ]))|"
    r"(?P<word>[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff]|['’-](?=[^\W\d_]))*)|"
    r"(?P<binary>[-−+*/×·⋅÷^=≈<>≤≥:_]+)|(?P<open>\\?[(\[{])|(?P<close>\\?[)\]}])|(?P<mark>[|²³°%€$£¥!,;])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_FUNCTIONS = frozenset(
    "sin cos tan cot log ln lg exp lim mod max min gcd lcm ggT kgV pgcd ppcm mcd mcm mdc mmc NWD NWW".split()
)
_MATH = frozenset(("command", "number", "sign", "binary", "open", "close", "mark"))
_BULLET = re.compile(r"^[-−]\s+(?=[0-9])")
_EDGES = " .,;:!"
MAX_TOKENS = 400


def values_in(text: str) -> tuple[str, list[str]]:
    """Return ``text`` with ``#`` for every formula or number, and those."""
    values: list[str] = []

    def framed(match: re.Match[str]) -> str:
        values.append(next(group for group in match.groups() if group is not None).strip())
        return f"\0{len(values) - 1}\0"

    return _bare(_FRAMED.sub(framed, text), values)


def _bare(text: str, framed: list[str]) -> tuple[str, list[str]]:
    out: list[str] = []
    values: list[str] = []
    for place, piece in enumerate(re.split(r"\0([0-9]+)\0", text)):
        if place % 2:
            values.append(framed[int(piece)])
            out.append(" # ")
            continue
        tokens = list(_TOKEN.finditer(piece))[:MAX_TOKENS]
        start = 0
        while start < len(tokens):
            end = _run(tokens, start)
            said = piece[tokens[start].start() : tokens[end - 1].end()] if end > start else ""
            if end > start and _is_value(tokens[start:end]):
                values.append(_BULLET.sub("", said.strip(_EDGES)))
                out.append(" # ")
                start = end
            else:
                out.append(tokens[start].group())
                start += 1
    return "".join(out), values


def _run(tokens: list[re.Match[str]], start: int) -> int:
    """The end of the formula that begins at a token, the same place if none does."""
    end, depth, place = start, 0, start
    while place < len(tokens):
        kind = tokens[place].lastgroup
        if kind == "space":
            if place == start or not _joins(tokens, place, depth):
                break
        elif kind == "word":
            if not _in_formula(tokens, place):
                break
            end = place + 1
        elif kind in _MATH:
            depth += {"open": 1, "close": -1}.get(kind, 0)
            if depth < 0:
                break
            end = place + 1
        else:
            break
        place += 1
    while end > start and (
        tokens[end - 1].lastgroup in ("space", "binary", "open") or tokens[end - 1].group() in (",", ";", "!")
    ):
        end -= 1
    return end


def _joins(tokens: list[re.Match[str]], place: int, depth: int) -> bool:
    before, after = tokens[place - 1], tokens[place + 1] if place + 1 < len(tokens) else None
    if after is None:
        return False
    if depth > 0:
        return after.lastgroup != "word" or _in_formula(tokens, place + 1)
    if "binary" in (before.lastgroup, after.lastgroup):
        return after.lastgroup in _MATH or _in_formula(tokens, place + 1)
    if before.lastgroup in ("number", "sign") and after.group() in ("%", "€", "°", "$", "£"):
        return True
    return before.lastgroup == "number" and re.fullmatch(r"[0-9]{3}(?:[.,][0-9]+)?", after.group()) is not None


def _in_formula(tokens: list[re.Match[str]], place: int) -> bool:
    """Say whether a word is a letter of a formula or a function."""
    word = tokens[place].group()
    if word in _FUNCTIONS:
        return True
    if len(word) > 1 or not ("a" <= word.lower() <= "z" or "α" <= word.lower() <= "ω"):
        return False
    before, after = (tokens[place - 1] if place else None), (tokens[place + 1] if place + 1 < len(tokens) else None)
    if any(near is not None and near.lastgroup in ("number", "command", "binary", "sign") for near in (before, after)):
        return True
    if (before is not None and before.lastgroup == "open") or (after is not None and after.group() == "("):
        return True
    for step in (-2, 2):
        far = tokens[place + step] if 0 <= place + step < len(tokens) else None
        if far is None or far.lastgroup != "binary" or tokens[place + step // 2].lastgroup != "space":
            continue
        if far.group() != ":" and (step > 0 or far.group() != "-"):
            return True
    return False


def _is_value(run: list[re.Match[str]]) -> bool:
    return any(token.lastgroup in ("number", "sign") or token.group() in ("\\infty", "\\pi") for token in run) or (
        any(token.lastgroup == "word" for token in run) and any("=" in token.group() for token in run)
    )


__all__ = ["values_in"]
