"""Residue classes: ``x ≡ 3 (mod 7)``, ``3 mod 7``, ``x = 7k + 3 with k an integer``."""

from __future__ import annotations

import re
from fractions import Fraction

from assay.verify.math.expressions.nodes import Node, variables
from assay.verify.math.expressions.values import Residue

_CLASS = re.compile(
    r"(?:([a-z])\s?(?:=|is congruent to|congruent to|is|≡)\s?)?"
    r"(-?[0-9]{1,30}(?:\s?(?:,|or|and|, or|, and)\s?(?:[a-z]\s?=\s?)?-?[0-9]{1,30}){0,20})"
    r"\s?,?\s?\(?\s?\\?p?mod(?:ulo|ulus)?\s?[({]?\s?([0-9]{1,30})\s?[)}]?\s?\)?"
)
_UNDER = re.compile(r"([a-z])\s?=\s?_\s?\{?([0-9]{1,30})\}?\s?(-?[0-9]{1,30})")
_INTEGER = re.compile(r"-?[0-9]{1,30}")
_PARAMETER = re.compile(
    r"\s?[,;]?\s?\(?(?:where |for (?:any |all |some |every |each )?|with |and )?(?:an? |any |some |"
    r"all )?(?:integers? )?"
    r"([a-z])(?:\s?∈\s?(?:ℤ|Z|ℕ|N)|\s(?:is|being|in|are|an?|any|=)\s(?:an? |any |"
    r"the )?(?:arbitrary )?(?:integers?|ℤ|Z)|"
    r"\s?=\s?0,\s?(?:\+-|±)?\s?1,.{0,20}|\s(?:integer|an integer|any integer))?\)?"
)
_FREE = re.compile(r"(?:∈|integer|ℤ|\bfor\b|0,\s?(?:±|\+-)?\s?1)")


def residue(text: str) -> Residue | None:
    """Return the class that the whole of ``text`` names, ``None`` if it is none."""
    if "mod" not in text and "_" not in text:
        return None
    match = _CLASS.fullmatch(text)
    if match is not None:
        values, modulus = [int(n) for n in _INTEGER.findall(match[2])], int(match[3])
    elif (match := _UNDER.fullmatch(text)) is not None:
        values, modulus = [int(match[3])], int(match[2])
    else:
        return None
    return Residue(match[1] or "", frozenset(v % modulus for v in values), modulus) if modulus > 0 else None


def without_parameter(text: str) -> str | None:
    """Return ``text`` without a last clause that lets a letter be any integer, ``None`` if it has none."""
    place = max(
        text.rfind(","), text.rfind(";"), text.rfind("where"), text.rfind("for "), text.rfind("with"), text.rfind("(")
    )
    if place < 1 or _FREE.search(text, place) is None or _PARAMETER.fullmatch(text, place) is None:
        return None
    return text[:place].rstrip(" ,;")


def progression(node: Node) -> Residue | None:
    """Return the class of the values of ``7k + 3`` for integers k, ``None`` if ``node`` is nothing like it."""
    names = variables(node)
    if isinstance(node, Fraction) or node[0] != "+" or len(names) != 1:
        return None
    constant, step = Fraction(0), Fraction(0)
    for term in node[1]:
        if isinstance(term, Fraction):
            constant += term
        elif term[0] == "v":
            step += 1
        elif term[0] == "*" and len(term[1]) == 2 and term[1][0][0] == "v" and isinstance(term[1][1], Fraction):
            step += term[1][1]
        else:
            return None
    if constant.denominator != 1 or step.denominator != 1 or not step:
        return None
    modulus = abs(int(step))
    return Residue("", frozenset([int(constant) % modulus]), modulus)
