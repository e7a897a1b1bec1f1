"""Where something is in a picture, as one box or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Rule, extract
from assay.verify.geometry.boxes import SCALE, Box, Format, Units, giou, iou, matched_ious, most_above, to_corners
from assay.verify.geometry.read import finite_tuple, read_coordinates
from assay.verify.lists.matching import f_beta

KEYS = ("bbox_2d", "bbox", "box_2d", "box", "boxes", "bboxes")


@dataclass(frozen=True, slots=True)
class Spec:
    """The boxes of a reference, and the width and height of the picture, if they are told."""

    boxes: list[Box]
    size: tuple[float, ...] | None


def read_spec(reference: Any, form: Format) -> Spec | None:
    """Return what ``{"box": [...]}`` or ``{"boxes": [[...], ...]}``, with ``"size": [w, h]``, or bare lists mean."""
    spec = reference if isinstance(reference, Mapping) else {"boxes": reference}
    listed = [spec["box"]] if "box" in spec else spec.get("boxes")
    if finite_tuple(listed, 4) is not None:
        listed = [listed]
    size = finite_tuple(spec["size"], 2) if spec.get("size") is not None else None
    if not isinstance(listed, list | tuple) or (spec.get("size") is not None and (size is None or min(size) <= 0)):
        return None
    boxes: list[Box] = []
    for numbers in listed:
        checked = finite_tuple(numbers, 4)
        corners = None if checked is None else to_corners(checked, form)
        if corners is None:
            return None
        boxes.append(corners)
    return Spec(boxes, size)


def scaled(numbers: tuple[float, ...], units: Units, size: tuple[float, ...] | None) -> tuple[float, ...]:
    """Return coordinates in the reference's units: x, y, x, y, ... times the picture's size where they are relative."""
    if units == "same" or size is None:
        return numbers
    return tuple(n / SCALE[units] * size[i % 2] for i, n in enumerate(numbers))


@part("verify", "box")
@dataclass(frozen=True, slots=True)
class BoxVerifier:
    """How well the last box of the answer covers the one asked for.

    ``task.reference`` is ``[x, y, x, y]`` or ``{"box": [...], "size": [width, height]}``. The score is IoU, or
    (GIoU + 1) / 2, or, with ``ramp``, IoU / threshold but at most 1; passed iff IoU >= threshold. A box without area,
    or with numbers that are not finite, is wrong. ``parts``: ``iou``, ``giou`` as (GIoU + 1) / 2.

    Args:
        score: what the score is.
        threshold: least IoU that passes, in (0, 1].
        form: what the four numbers of the answer are.
        reference_form: what those of the reference are; ``form`` unless given.
        units: of the answer: those of the reference (``same``), or shares or thousandths of the picture's size, which
            the reference then has to tell.
        rules: markers that narrow where to look, see :func:`~assay.verify.answer.extract.extract`.
        max_chars: a longer answer is wrong.
    """

    score: Literal["iou", "giou", "ramp"] = "iou"
    threshold: float = 0.5
    form: Format = "xyxy"
    reference_form: Format | None = None
    units: Units = "same"
    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    max_chars: int = 200_000

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise UsageError(f"verifier 'box': threshold {self.threshold} must be in (0, 1]")

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = read_spec(task.reference, self.reference_form or self.form)
        if spec is None or len(spec.boxes) != 1 or (self.units != "same" and spec.size is None):
            return Verdict.abstain(f"task {task.id}: reference is no box, or lacks the picture's size")
        answer = extract(response, self.rules, "whole") or ""
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        groups = read_coordinates(answer, 4, KEYS)
        if not groups:
            return Verdict.wrong("no box found")
        box = to_corners(scaled(groups[-1], self.units, spec.size), self.form)
        if box is None:
            return Verdict.wrong("a box without area")
        overlap, general = iou(box, spec.boxes[0]), (giou(box, spec.boxes[0]) + 1) / 2
        score = {"iou": overlap, "giou": general, "ramp": min(overlap / self.threshold, 1.0)}[self.score]
        passed = overlap >= self.threshold
        feedback = "" if passed else f"IoU {overlap:.3f} is below {self.threshold:g}"
        return Verdict(score, passed, {"iou": overlap, "giou": general}, feedback)


@part("verify", "boxes")
@dataclass(frozen=True, slots=True)
class BoxesVerifier:
    """How well the boxes of the answer cover those asked for, paired one to one.

    ``task.reference`` is a list of boxes or ``{"boxes": [...], "size": [w, h]}``; an empty list asks for none.
    ``parts``: ``precision``, ``recall`` and ``f1`` of pairs with IoU >= threshold, ``iou`` = 2 sum of paired IoU /
    (m + n). The score is ``f1`` or ``iou``; passed iff ``f1`` is 1. A box without area matches none.

    Args:
        score: what the score is.
        threshold: least IoU of a pair, in (0, 1].
        form, reference_form, units, rules, max_chars: as for ``box``.
        max_boxes: more boxes than this are wrong.
    """

    score: Literal["f1", "iou"] = "f1"
    threshold: float = 0.5
    form: Format = "xyxy"
    reference_form: Format | None = None
    units: Units = "same"
    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    max_chars: int = 200_000
    max_boxes: int = 300

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise UsageError(f"verifier 'boxes': threshold {self.threshold} must be in (0, 1]")

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = read_spec(task.reference, self.reference_form or self.form)
        if spec is None or (self.units != "same" and spec.size is None):
            return Verdict.abstain(f"task {task.id}: reference is no list of boxes, or lacks the picture's size")
        answer = extract(response, self.rules, "whole") or ""
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        groups = read_coordinates(answer, 4, KEYS)
        if len(groups) > self.max_boxes:
            return Verdict.wrong(f"{len(groups)} boxes, more than {self.max_boxes}")
        read = [to_corners(scaled(g, self.units, spec.size), self.form) for g in groups]
        given = [box for box in read if box is not None]
        m, n = len(read), len(spec.boxes)
        hits = most_above(given, spec.boxes, self.threshold)
        precision = hits / m if m else float(n == 0)
        recall = hits / n if n else 1.0
        f1 = f_beta(precision, recall)
        paired = 2 * sum(matched_ious(given, spec.boxes)) / (m + n) if m + n else 1.0
        parts: dict[str, float | None] = {"precision": precision, "recall": recall, "f1": f1, "iou": min(paired, 1.0)}
        passed = hits == m == n
        return Verdict(parts[self.score] or 0.0, passed, parts, "" if passed else f"{hits} of {n} found with {m} boxes")
