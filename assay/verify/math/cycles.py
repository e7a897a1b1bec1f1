"""Permutations in cycle notation: ``(1 3 2)(4 5)``, ``(45)(132)``, ``(4,5)(2,1,3)``."""

from __future__ import annotations

import re

from assay.verify.math.context import Context

_SPACE = re.compile(r"\\[,;:! ]|\\(?:left|right|quad|circ|cdot)(?![a-z])|~|[$∘·]")
_CYCLES = re.compile(r"(?:\([0-9][0-9, ]*\)\s*)+")
_CYCLE = re.compile(r"\(([^()]*)\)")


def _mapping(text: str) -> dict[int, int] | None:
    """What a product of disjoint cycles moves where, ``None`` if ``text`` is none."""
    flat = _SPACE.sub(" ", text).strip(" .")
    _name, equals, right = flat.rpartition("=")
    flat = right.strip() if equals else flat
    if len(flat) > 400 or _CYCLES.fullmatch(flat) is None:
        return None
    moved: dict[int, int] = {}
    for inside in _CYCLE.findall(flat):
        parts = inside.replace(",", " ").split()
        points = [int(p) for p in (parts if len(parts) > 1 else parts[0])]  # "(132)": one digit each
        if len(set(points)) != len(points) or moved.keys() & set(points):
            return None
        moved |= dict(zip(points, [*points[1:], points[0]], strict=True))
    return {point: image for point, image in moved.items() if point != image}


def same_cycles(reference: str, answer: str, context: Context) -> bool:
    """Say whether two texts are the same permutation, where the question speaks of cycles or permutations."""
    asked = context.question
    if "(" not in reference or not ("ycle" in asked or "ermut" in asked or "zykl" in asked.lower()):
        return False
    wanted = _mapping(reference)
    return wanted is not None and wanted == _mapping(answer)
