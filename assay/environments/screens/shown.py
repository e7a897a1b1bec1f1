"""What screens that are cited show of a goal: a judge that sees nothing but them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.environments.opinion import Cited, Opinion, admits_failure
from assay.environments.screens.environment import APPS
from assay.environments.screens.phone import App, Page, Phone
from assay.environments.screens.widgets import Widget
from assay.types import Task

Sight = tuple[str, str, str, bool | None]
"""A page's title, and of a widget on it its id, text and whether it is on."""


class ScreenJudge:
    """Derives from a task what screens would look like once it is done, and looks for that in the screens cited.

    A task is done where each difference between the app's data at the beginning and as it should be is shown by a
    widget that it makes look different. Screens that show such a widget, as it was or as it is, are evidence for a
    verdict. Where cited screens contradict each other the last one counts.
    """

    def __call__(self, task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
        app, before, goal = APPS[task.meta["app"]], task.meta["data"], task.meta["goal"]
        seen: dict[tuple[str, str], Sight] = {}
        for evidence in cited:
            seen |= {(sight[0], sight[1]): sight for sight in sights_of(evidence.observation)}
        was = _sights(app, before)
        shown, told = True, True
        for data in _steps(before, goal):
            then = _sights(app, data)
            due = {place: sight for place, sight in then.items() if was.get(place) != sight}
            shown = shown and any(seen.get(place) == sight for place, sight in due.items())
            told = told and any(place in seen for place in due)
        return Opinion(valid=told, success=told and shown and not admits_failure(message))


def sights_of(observation: str) -> Iterator[Sight]:
    """Yield what the screen in an observation shows; nothing for text without one."""
    start, end = observation.find("<screen "), observation.rfind("</screen>")
    if start < 0 or end < 0:
        return
    try:
        root = ET.fromstring(observation[start : end + len("</screen>")])
    except ET.ParseError:
        return
    for widget in root:
        on = widget.get("on")
        yield root.get("title", ""), widget.get("id", ""), widget.text or "", None if on is None else on == "true"


def _steps(before: Mapping[str, Any], goal: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the data with one of the differences made, for each of them; a list that differs is one."""
    for key, wanted in goal.items():
        now = before[key]
        if isinstance(now, Mapping):
            for inner, value in wanted.items():
                if now.get(inner) != value:
                    yield {**before, key: {**now, inner: value}}
        elif now != wanted:
            yield {**before, key: wanted}


def _sights(app: App, data: Mapping[str, Any]) -> dict[tuple[str, str], Sight]:
    """Return all that can be seen without changing anything."""
    found: dict[tuple[str, str], Sight] = {}
    start = Phone(data)
    pages: dict[Page, Phone] = {start.page: start}
    for phone in (queue := [start]):
        title, rows = app.view(phone)
        for widget in (w for row in rows for w in row):
            found[title, widget.id] = (title, widget.id, widget.text, widget.on)
            there = _opened(widget, phone)
            if there is not None and there.page not in pages:
                pages[there.page] = there
                queue.append(there)
    return found


def _opened(widget: Widget, phone: Phone) -> Phone | None:
    """Return the phone with the page that a widget opens, ``None`` for one that does something else."""
    if widget.do is None or not widget.enabled:
        return None
    after: Phone = widget.do(phone)
    return after if after.data == phone.data and len(after.pages) > len(phone.pages) else None
