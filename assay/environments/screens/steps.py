"""Single steps of the plans as tasks of one turn, and steps back after mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.environments.screens.widgets import Screen
from assay.environments.tools import say
from assay.tasks.seeded import check_index, generator
from assay.types import Task
from assay.verify.gestures.gesture import USAGE, Gesture, read_gesture

BACK = Gesture("press", text="back")
VERBS = {"off": "turn off", "switch": "turn on", "field": "select the field", "item": "open"}


@dataclass(frozen=True, slots=True)
class StepTasks:
    """Endless tasks: the i-th is a step, drawn from the seed, of the plan of the environment's i-th task.

    A task shows the instruction, the gestures before, and the screen; ``reference`` is what verifier ``gesture`` reads,
    ``meta["subgoal"]`` what the step is for, in words, and ``meta["episode"]``, ``meta["step"]`` where it is from.

    Args:
        make: makes the environment, one for each task that is made.
        seed: of which steps are drawn.
    """

    make: Callable[[], Any]
    seed: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        world = self.make()
        task = world.tasks()[check_index(index, None)]
        world.reset(task, 0)
        plan = list(world.gold())
        step = int(generator(self.seed, index, 1).integers(len(plan)))
        for action in plan[:step]:
            world.step(action)
        lines = [action.text for action in plan]
        made = _task(task, f"{step}", lines[:step], world.screen(), lines[step])
        return replace(made, meta={**made.meta, "episode": index, "step": step})

    def recovery(self, task: Task, wrong: str) -> list[Task]:
        """Return the two tasks that come of a wrong gesture at a step; none where it could not be made.

        The first shows the screen that the gesture has led to, and wants ``press back``; the second the step's own
        screen with both gestures in the history, and wants what the step wanted.

        Args:
            task: of this source.
            wrong: the gesture, as a line.
        """
        world, episode, step = self.make(), task.meta["episode"], task.meta["step"]
        whole = world.tasks()[episode]
        world.reset(whole, 0)
        plan = [action.text for action in world.gold()]
        for line in plan[:step]:
            world.step(say(line))
        before = world.screen()
        if not world.step(say(wrong)).valid:
            return []
        made = [
            _task(whole, f"{step}/escape/{wrong}", [*plan[:step], wrong], world.screen(), str(BACK)),
            _task(whole, f"{step}/again/{wrong}", [*plan[:step], wrong, str(BACK)], before, plan[step]),
        ]
        return [
            replace(t, meta={**t.meta, "recovery": kind}) for t, kind in zip(made, ("escape", "again"), strict=True)
        ]


def _task(whole: Task, name: str, history: Sequence[str], seen: Screen, line: str) -> Task:
    gesture = read_gesture(line)
    assert isinstance(gesture, Gesture)
    target = seen.find(gesture.id) if gesture.point is None else seen.at(*gesture.point)
    spec: dict[str, Any] = {"gesture": line, "focus": seen.focus}
    if target is not None:
        spec |= {"box": list(target.box), "target": target.id}
    done = "\n".join(history) or "nothing"
    asked = f"{whole.meta['instruction']}\nDone so far:\n{done}\nOn the screen:\n{seen.xml()}"
    prompt = f"{asked}\nWhat is next? One of:\n{USAGE}"
    goal = subgoal(gesture, seen)
    return Task(f"{whole.id}/step/{name}", prompt, spec, "gesture", hints=(f"Next: {goal}",), meta={"subgoal": goal})


def subgoal(gesture: Gesture, seen: Screen) -> str:
    """Return what a gesture on a screen is for, in words."""
    target = seen.find(gesture.id) if gesture.point is None else seen.at(*gesture.point)
    name = "nothing" if target is None else target.text or target.id
    if gesture.kind == "click":
        kind = "" if target is None else "off" if target.on else target.kind
        return f"{VERBS.get(kind, 'press')} {name}"
    if gesture.kind == "type":
        return f"enter {gesture.text} into {gesture.id or seen.focus}"
    if gesture.kind == "swipe":
        return f"look further {'down' if gesture.text == 'up' else 'up'} the page {seen.title}"
    if gesture.kind == "press":
        return "go back to the page before" if gesture.text == "back" else "go back to the first page"
    return "say that the task is done" if gesture.kind == "terminate" else "wait"
