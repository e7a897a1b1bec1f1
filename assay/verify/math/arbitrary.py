"""Arbitrary constants, whatever they are called: ``C_1 e^x + C_2 e^{-x}`` and ``Ae^x + Be^{-x}``."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations

_CONSTANT = re.compile(r"(?<![A-Za-z\\])(?:[CcKk]_?\{?[1-4]\}?)(?![0-9])")
_OTHER = re.compile(
    r"(?<![A-Za-z\\])(?:[CcKkAaBbD]_?\{?[1-4]\}?|[A-DKabcdk])(?![a-zA-Z(_0-9])|(?<![A-Za-z\\])[A-DK](?=[a-z](?![a-z]))"
)
_CLAUSE = re.compile(
    r"\$?,?\s*(?:for|with|where)\s+(?:any |all |some |an? )?(?:\$?[A-Za-z_0-9{}, ]{1,20}\$?\s(?:is|are)\s(?:an? )?)?"
    r"(?:arbitrary|real|free|any)?\s?(?:real )?constants?\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERED = re.compile(r"[CcKk][1-4]")
_FUNCTION = re.compile(r"^\s*([a-z])\s?\(\s?[a-z]\s?\)\s*=")


def same_constants(reference: str, answer: str, agrees: Callable[[str, str], bool]) -> bool:
    """Say whether ``answer`` is the reference but for the names of two or more arbitrary constants."""
    if "_" not in reference and not _NUMBERED.search(reference):
        return False
    ours = sorted(set(_CONSTANT.findall(reference)))
    if not 2 <= len(ours) <= 3 or len(answer) > 400:
        return False
    bare = _FUNCTION.sub(r"\1 =", _CLAUSE.sub("", answer).strip(" $."))
    theirs = sorted({name for name in _OTHER.findall(bare) if name != "e"})
    if len(theirs) != len(ours):
        return False
    shared = [f"({letter})" for letter in "uvw"]
    plain = _renamed(reference, ours, shared)
    return any(agrees(plain, _renamed(bare, list(order), shared)) for order in permutations(theirs))


def _renamed(text: str, names: list[str], others: list[str]) -> str:
    table = dict(zip(names, others, strict=False))
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z\\])(?:{pattern})(?![0-9])", lambda m: table[m.group()], text)
