"""The apps as one environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from assay.environments.base import Action, Agreement
from assay.environments.lines import Interface, how
from assay.environments.screens.apps.calendar import Calendar
from assay.environments.screens.apps.mail import Mail
from assay.environments.screens.apps.settings import Settings
from assay.environments.screens.apps.shop import Shop
from assay.environments.screens.browser import Browser
from assay.environments.screens.matching import agreement
from assay.environments.screens.phone import App, Phone, Script, after, misfit, screen
from assay.environments.screens.picture import drawn
from assay.environments.screens.steps import StepTasks
from assay.environments.screens.widgets import Screen
from assay.environments.stated import State, Stated
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict
from assay.verify.gestures.gesture import USAGE, Gesture, read_gesture

Name = Literal["settings", "mail", "shop", "calendar"]
NAMES: tuple[Name, ...] = ("settings", "mail", "shop", "calendar")
APPS: dict[str, App] = {app.name: app for app in (Settings(), Mail(), Shop(), Calendar())}


@dataclass(frozen=True, slots=True)
class ScreenTasks:
    """Endless instructions for some apps, which take turns."""

    seed: int
    names: tuple[str, ...]
    interface: Interface

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        name = self.names[check_index(index, None) % len(self.names)]
        data, goal, wanted = APPS[name].setup(generator(self.seed, index))
        usage = (
            f"One gesture a turn, by {how(self.interface)}:\n{USAGE}\nX and Y are from 0 to 1, boxes in thousandths. "
            "Swiping up shows what is below. Typing replaces what a field holds."
        )
        return Task(
            id=f"screens/{self.seed}/{name}/{index}",
            prompt=f"{wanted}\n{usage}",
            reference={"goal": goal, "index": index},
            kind="none",
            meta={"app": name, "data": data, "goal": goal, "instruction": wanted},
        )


@part("environment", "screens")
class Screens(Stated):
    """Apps of a telephone as widget trees: settings, mail, a shop, a calendar, made from a seed.

    A turn is one gesture. What is seen is the page as XML: widgets with ids, texts, states and boxes in thousandths of
    the screen. Widgets are named by their ids, or clicked at a point. A gesture that cannot be read, or is made on
    what is not in sight, changes nothing and makes the turn invalid; a click on nothing is a click. ``terminate`` ends
    an episode.

    The verdict is of what the app has stored: it passes where that is what was asked for, and nothing else. The score
    is 1 then, else the share of the differences that were to be made, and 0 where something else was changed.

    Args:
        names: of the apps, which take turns.
        interface: ``text`` or ``tool``.
        pointing: whether the plan names widgets by points and not by ids.
        boxes: whether the XML tells them.
        browser: whether gestures are made in Chromium, without a window, on the same widgets as a page of HTML.
        gestures: of an episode, at most.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: no such app, no gestures, or no Chromium.
    """

    def __init__(
        self,
        names: Sequence[Name] = NAMES,
        interface: Interface = "text",
        pointing: bool = False,
        boxes: bool = True,
        browser: bool = False,
        gestures: int = 40,
        seed: int = 0,
    ):
        check_seed("environment 'screens'", seed)
        if not names or len(set(names)) < len(names) or gestures < 1:
            raise UsageError(
                f"environment 'screens': it needs apps, each once, not {list(names)}, and gestures {gestures} >= 1"
            )
        super().__init__(interface, gestures)
        self.pointing, self.boxes = pointing, boxes
        self.browser = Browser() if browser else None
        self._tasks = ScreenTasks(seed, tuple(names), interface)
        # Steps are lines of text, whatever is played by.
        self.again = partial(Screens, names, "text", pointing, gestures=gestures, seed=seed)

    def tasks(self) -> ScreenTasks:
        return self._tasks

    def steps(self) -> StepTasks:
        """Return single steps of the plans as tasks of one turn."""
        return StepTasks(self.again, self._tasks.seed)

    # What a state is

    def beginning(self, task: Task) -> State:
        name = str(task.meta.get("app", ""))
        if name not in self._tasks.names:
            raise UsageError(
                f"environment 'screens': task {task.id} is of {name!r}; it has {', '.join(self._tasks.names)}"
            )
        self.app = APPS[name]
        return _state(Phone(task.meta["data"]))

    def screen(self) -> Screen:
        """Return what is seen now."""
        return self._screen(self.state)

    def _screen(self, state: State) -> Screen:
        return screen(self.app, Phone(*state))

    def show(self, state: State) -> str:
        return self._screen(state).xml(self.boxes)

    def picture(self) -> bytes:
        """Return what is seen now as PNG, as Chromium shows it where that plays.

        Raises:
            UsageError: neither Chromium plays nor is resvg installed.
        """
        return drawn(self.screen()) if self.browser is None else self.browser.picture(self.screen())

    def key(self, state: State) -> str:
        phone = Phone(*state)
        kept = [phone.data, phone.pages, phone.drafts, phone.focus, phone.first, phone.ended]
        return f"{self.app.name}/{blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=12).hexdigest()}"

    # What can be done

    def written(self, line: str) -> str:
        return line.strip()

    def actions(self, state: State) -> Sequence[str]:
        """Every gesture by id; of texts those that the instruction quotes."""
        seen = self._screen(state)
        texts = re.findall(r'"([^"]*)"', self.task.meta.get("instruction", ""))
        made = [Gesture("click", w.id) for w in seen.widgets if w.enabled and w.kind != "text"]
        made += [Gesture("type", w.id, text=t) for w in seen.widgets if w.kind == "field" for t in texts]
        made += [Gesture("swipe", text=way) for way, there in zip(("down", "up"), seen.more, strict=True) if there]
        made += [Gesture("press", text="back"), Gesture("press", text="home"), Gesture("wait")]
        return [str(gesture) for gesture in (*made, Gesture("terminate", text="success"))]

    def problem(self, state: State, action: str) -> str:
        gesture = read_gesture(action)
        return gesture if isinstance(gesture, str) else misfit(self._screen(state), gesture)

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        gesture, phone = read_gesture(action), Phone(*state)
        assert isinstance(gesture, Gesture)
        seen = screen(self.app, phone)
        if self.browser is not None:
            gesture = self.browser.make(seen, gesture)
        return _state(after(self.app, phone, gesture, seen)), ""

    def over(self, state: State) -> bool:
        return bool(Phone(*state).ended)

    # What it is worth

    def judged(self, state: State) -> Verdict:
        data, goal = self.task.meta["data"], self.task.meta["goal"]
        return compared(data, Phone(*state).data, goal)

    def plan(self, state: State) -> Sequence[str]:
        """Return gestures that reach the goal; empty where what was done cannot be undone."""
        script = Script(self.app, Phone(*state), self.pointing)
        goal = self.task.meta["goal"]
        try:
            if script.phone.data != goal:
                script.home()
                self.app.plan(script, goal)
        except LookupError:
            return []
        if script.phone.data != goal:
            return []
        script.make(Gesture("terminate", text="success"))
        return [str(gesture) for gesture in script.gestures]

    def compare(self, action: Action, expert: Action) -> Agreement:
        """Return how far an action agrees with the expert's on the screen in sight."""
        return agreement(self.screen(), self._gesture(action), self._gesture(expert))

    def _gesture(self, action: Action) -> Gesture | None:
        line = self._read(action)[0]
        gesture = read_gesture(line) if line else ""
        return gesture if isinstance(gesture, Gesture) else None

    def close(self) -> None:
        super().close()
        if self.browser is not None:
            self.browser.close()


def _state(phone: Phone) -> State:
    return (phone.data, phone.pages, dict(phone.drafts), phone.focus, phone.first, phone.said, phone.ended)


def compared(before: Any, now: Any, goal: Any) -> Verdict:
    """Judge data by what it was and what it should be."""
    if now == goal:
        return Verdict.right()
    leaves: list[dict[str, Any]] = [dict(_leaves(data)) for data in (before, now, goal)]
    was, found, wanted = leaves
    places = {*was, *found, *wanted}
    due = {p for p in places if was.get(p) != wanted.get(p)}
    strays = sorted(p for p in places - due if found.get(p) != wanted.get(p))
    if strays:
        return Verdict.wrong(f"{strays[0]} was changed")
    done = sum(found.get(p) == wanted.get(p) for p in due)
    return Verdict(done / len(due), False, {}, f"{len(due) - done} of {len(due)} differences are left")


def _leaves(data: Any, path: str = "") -> Any:
    """Yield the path and value of everything in nested data; an empty container is a leaf."""
    inner = list(data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ())
    if not inner:
        yield path, data
    for key, value in inner:
        yield from _leaves(value, f"{path}.{key}" if path else str(key))
