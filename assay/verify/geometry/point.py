"""Where to point at in a picture: in a box, near a point, and how near."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.geometry.box import scaled
from assay.verify.geometry.boxes import Format, Units, to_corners
from assay.verify.geometry.read import finite_tuple, read_coordinates

KEYS = ("point_2d", "point", "coordinate", "coordinates", "click", "position")


def gaussian_proximity(dx: float, dy: float, sx: float, sy: float) -> float:
    """exp(-((dx / sx)^2 + (dy / sy)^2) / 2), in [0, 1] (Sweet Spot Learning)."""
    try:
        return math.exp(-0.5 * ((dx / sx) ** 2 + (dy / sy) ** 2))
    except OverflowError:
        return 0.0


def zone(q: float, zones: int) -> float:
    """Return k / (zones - 1) of the zone k = floor(q zones) that q in [0, 1] is in; ``q`` itself for 0 zones.

    One zone is worth nothing: whatever is outside of the target is equally wrong.
    """
    if zones == 0:
        return q
    return min(math.floor(q * zones), zones - 1) / (zones - 1) if zones > 1 else 0.0


@part("verify", "point")
@dataclass(frozen=True, slots=True)
class Point(Marked):
    """Right iff the last point of the answer is in the target box, or near enough to the target point.

    ``task.reference`` is ``{"box": [...]}``, ``{"point": [x, y]}``, or both, with ``"size": [width, height]`` where
    ``units`` need it. With a box, being in it (its edge included) is right; with a point alone, being within
    ``tolerance``. A wrong point scores by how near it is to the target point or the box's centre, times ``partial``:

    - ``none``: 0;
    - ``tiers``: the score of the first of ``tiers`` = ((distance, score), ...) that reaches as far, 0 beyond the last;
    - ``gaussian``: exp(-((dx / sx)^2 + (dy / sy)^2) / 2), in ``zones`` equal steps, where sx and sy are ``spread``
      times the width and height of the box, or ``tolerance`` (1 if that is 0) without one (Sweet Spot Learning, tiered
      rewards).

    ``parts``: ``hit``, ``near`` (that proximity).

    Args:
        proximity: how a miss is scored.
        tiers: distances in the reference's units, growing, with scores in [0, 1], falling.
        zones: steps of the Gaussian proximity; 0 leaves it continuous.
        spread: standard deviation as a multiple of the box's width and height.
        partial: what the best miss is worth, in [0, 1).
        tolerance: greatest distance of a right point from a target point, in the reference's units.
        form: of the reference's box.
        units, rules, max_chars: as for ``box``.
    """

    proximity: Literal["none", "tiers", "gaussian"] = "none"
    tiers: tuple[tuple[float, float], ...] = ()
    zones: int = 4
    spread: float = 1.0
    partial: float = 0.5
    tolerance: float = 0.0
    form: Format = "xyxy"
    units: Units = "same"
    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    fallback: ClassVar[Fallback] = "whole"
    max_chars: int = 200_000

    def __post_init__(self) -> None:
        far, worth = [d for d, _ in self.tiers], [s for _, s in self.tiers]
        if far != sorted(far) or worth != sorted(worth, reverse=True) or not all(0 <= s <= 1 for s in worth):
            raise UsageError(
                f"verifier 'point': tiers {self.tiers} must grow in distance and fall in score within [0, 1]"
            )
        if not (0 <= self.partial < 1 and self.zones >= 0 and self.spread > 0 and self.tolerance >= 0):
            raise UsageError(
                "verifier 'point': partial must be in [0, 1), zones and tolerance at least 0, spread above 0"
            )
        if self.proximity == "tiers" and not self.tiers:
            raise UsageError("verifier 'point': proximity 'tiers' needs tiers = [[distance, score], ...]")

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = task.reference if isinstance(task.reference, Mapping) else {"point": task.reference}
        numbers, target, size = (finite_tuple(spec.get(k), n) for k, n in (("box", 4), ("point", 2), ("size", 2)))
        box = None if numbers is None else to_corners(numbers, self.form)
        bad_box = box is None and spec.get("box") is not None
        if bad_box or (box is None and target is None) or (self.units != "same" and (size is None or min(size) <= 0)):
            return Verdict.abstain(f"task {task.id}: reference has no box or point, or lacks the picture's size")
        answer = extract(response, self.rules, self.fallback) or ""
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        groups = read_coordinates(answer, 2, KEYS)
        if not groups:
            return Verdict.wrong("no point found")
        x, y = scaled(groups[-1], self.units, size)
        if not (math.isfinite(x) and math.isfinite(y)):
            return Verdict.wrong("a point that is not finite")
        if target is None:
            assert box is not None
            target = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        dx, dy = x - target[0], y - target[1]
        distance = math.hypot(dx, dy)
        hit = distance <= self.tolerance if box is None else box[0] <= x <= box[2] and box[1] <= y <= box[3]
        if self.proximity == "none":
            near = 0.0
        elif self.proximity == "tiers":
            near = next((score for far, score in self.tiers if distance <= far), 0.0)
        else:
            width, height = (box[2] - box[0], box[3] - box[1]) if box else (self.tolerance or 1.0,) * 2
            near = zone(gaussian_proximity(dx, dy, self.spread * width, self.spread * height), self.zones)
        score = 1.0 if hit else self.partial * near
        return Verdict(score, hit, {"hit": float(hit), "near": near}, "" if hit else f"{distance:.4g} from the target")
