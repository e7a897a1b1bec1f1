"""Is a gesture what the expert does?"""

from __future__ import annotations

from assay.environments.base import Agreement
from assay.environments.screens.widgets import Screen
from assay.verify.gestures.gesture import Gesture, inside, near

LARGER, NEAR = 1.2, 0.04
"""How much larger than the target's box what counts as on it is; and how near to the expert's point is near enough."""


def agreement(
    seen: Screen, gesture: Gesture | None, expert: Gesture | None, larger: float = LARGER, within: float = NEAR
) -> Agreement:
    """Return how far a gesture agrees with the expert's on a screen.

    A click agrees on the same widget, within its box made ``larger`` about its centre, or within ``within`` of the
    expert's point (in shares of the screen); a text if one of both contains the other, case and blanks at the ends
    apart, and goes into the same field; a swipe in the same direction; a key if it is the same. Waiting and ending
    agree by their kind. A gesture that is ``None`` could not be read.

    Source: the action matching of UI-S1 (arXiv 2509.11543); that an empty text agrees with none but itself is ours, as
    every text contains it.
    """
    if gesture is None or expert is None:
        return Agreement(False, False, False)
    if gesture.kind != expert.kind:
        return Agreement(True, False, False)
    if gesture.kind == "click":
        same = _clicks(seen, gesture, expert, larger, within)
    elif gesture.kind == "type":
        one, other = gesture.text.strip().lower(), expert.text.strip().lower()
        alike = one == other if not one or not other else one in other or other in one
        same = alike and (gesture.id or seen.focus) == (expert.id or seen.focus)
    else:
        same = gesture.kind in ("wait", "terminate") or gesture.text == expert.text
    return Agreement(True, True, same)


def _clicks(seen: Screen, gesture: Gesture, expert: Gesture, larger: float, within: float) -> bool:
    target = seen.find(expert.id) if expert.point is None else seen.at(*expert.point)
    if gesture.point is None:
        return target is not None and gesture.id == target.id
    if target is not None and inside(gesture.point, target.box, larger):
        return True
    point = expert.point or (target.centre if target else None)
    return point is not None and near(gesture.point, point, within)
