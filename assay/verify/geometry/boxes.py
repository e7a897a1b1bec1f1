"""Boxes in a picture: intersection over union, alone and in sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from assay.verify.lists.matching import best_pairs

Format = Literal["xyxy", "xywh", "cxcywh"]
Units = Literal["same", "relative", "per_mille"]
Box = tuple[float, float, float, float]

SCALE: Mapping[Units, float] = {"relative": 1.0, "per_mille": 1000.0}


def to_corners(numbers: Sequence[float], form: Format = "xyxy") -> Box | None:
    """Return ``(left, top, right, bottom)``; ``None`` for a box without area, or with numbers that are not finite.

    ``xyxy`` are two corners, ``xywh`` the upper left corner, width and height, ``cxcywh`` centre, width and height.
    """
    a, b, c, d = numbers
    if form == "xywh":
        c, d = a + c, b + d
    elif form == "cxcywh":
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    if not all(math.isfinite(x) and abs(x) < 1e12 for x in (a, b, c, d)) or c <= a or d <= b:
        return None
    return a, b, c, d


def area(box: Box) -> float:
    """Width times height."""
    return (box[2] - box[0]) * (box[3] - box[1])


def intersection(a: Box, b: Box) -> float:
    """Area that two boxes share."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def iou(a: Box, b: Box) -> float:
    """Intersection over union, in [0, 1]."""
    common = intersection(a, b)
    union = area(a) + area(b) - common
    return common / union if union > 0 else 0.0


def giou(a: Box, b: Box) -> float:
    """IoU - (C - U) / C, in (-1, 1], where U is the union and C the least box around both (Rezatofighi et al. 2019)."""
    common = intersection(a, b)
    union = area(a) + area(b) - common
    hull = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    return common / union - (hull - union) / hull if union > 0 and hull > 0 else -1.0


def matched_ious(given: Sequence[Box], wanted: Sequence[Box]) -> list[float]:
    """IoU of each pair of the one-to-one assignment of greatest total IoU; pairs that do not touch are left out."""
    if not given or not wanted:
        return []
    table = np.array([[iou(a, b) for b in wanted] for a in given])
    return [float(table[pair]) for pair in best_pairs(table)]


def most_above(given: Sequence[Box], wanted: Sequence[Box], threshold: float) -> int:
    """Number of pairs with IoU >= threshold in the one-to-one assignment that has most of them."""
    if not given or not wanted:
        return 0
    return len(best_pairs(np.array([[float(iou(a, b) >= threshold) for b in wanted] for a in given])))
