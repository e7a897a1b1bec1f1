"""Is it the gesture that was to be made?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.gestures.gesture import Gesture, inside, read_gesture

_MARKED = re.compile(r"<action>(.*?)</action>", re.DOTALL)


@part("verify", "gesture")
@dataclass(frozen=True, slots=True)
class GestureVerifier:
    """Right iff the response's gesture is the one asked for, with all its parameters.

    The gesture is what the last ``<action>`` after the thought holds, else the last line. ``task.reference`` is
    ``{"gesture": line}`` with, for a gesture on a widget, its ``box`` in thousandths and its id in ``target``, and for
    a text into the field that has the focus that field's id in ``focus``. A click is right on the same widget or at a
    point in the box, a text if it is the same but for blanks at its ends, anything else if it is the same.

    ``parts``: ``read``; ``type``, whether it is of the same kind; ``param``, whether it is right, which is the score.

    Source: the action rewards of InfiGUI-R1 (arXiv 2504.14239).
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = task.reference if isinstance(task.reference, Mapping) else {}
        wanted = read_gesture(str(spec.get("gesture", "")))
        if not isinstance(wanted, Gesture):
            return Verdict.abstain(f"task {task.id}: the reference has no gesture", "tests")
        text = response.rpartition("</think>")[2]
        lines = [x.strip() for x in _MARKED.findall(text)[-1:] or text.strip().splitlines()[-1:]]
        found = read_gesture(lines[0]) if lines else "no gesture"
        if not isinstance(found, Gesture):
            return Verdict(0.0, False, {"read": 0.0, "type": 0.0, "param": 0.0}, found)
        same = found.kind == wanted.kind
        right = same and _same(found, wanted, spec)
        parts: dict[str, float | None] = {"read": 1.0, "type": float(same), "param": float(right)}
        return Verdict(float(right), right, parts, "" if right else f"not {wanted}")


def _same(found: Gesture, wanted: Gesture, spec: Mapping[str, object]) -> bool:
    if wanted.kind == "click":
        box = spec.get("box")
        if found.point is None:
            return found.id == (wanted.id or spec.get("target"))
        return isinstance(box, list | tuple) and len(box) == 4 and inside(found.point, tuple(box))
    if wanted.kind == "type":
        focus = str(spec.get("focus", ""))
        return found.text.strip() == wanted.text.strip() and (found.id or focus) == (wanted.id or focus)
    return found.text == wanted.text
