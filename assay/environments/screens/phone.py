"""A telephone with one app open: its data, where one is in it, and what gestures do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from assay.environments.screens.widgets import FITTING, Row, Screen, Widget, placed
from assay.verify.gestures.gesture import Gesture

Page = tuple[str | int, ...]
"""A page's name and what it is of."""


@dataclass(frozen=True, slots=True)
class Phone:
    """The state, all of it plain data.

    Attributes:
        data: what the app has stored; goals are of this alone.
        pages: how one has come here, the page in sight last.
        drafts: what stands in the fields of the page and is not stored yet.
        focus: the field that takes what is typed.
        first: the first row in sight.
        said: what the app says, until the next gesture.
        ended: what the episode was ended with.
    """

    data: Mapping[str, Any]
    pages: tuple[Page, ...] = (("home",),)
    drafts: Mapping[str, str] = field(default_factory=dict)
    focus: str = ""
    first: int = 0
    said: str = ""
    ended: str = ""

    @property
    def page(self) -> Page:
        return self.pages[-1]

    def draft(self, id: str) -> str:
        """Return what stands in a field."""
        return self.drafts.get(id, "")

    def stored(self, said: str = "", **data: Any) -> Phone:
        """Return the phone once the app has stored something."""
        return replace(self, data={**self.data, **data}, said=said, first=0 if said else self.first)

    def drafted(self, id: str, text: str) -> Phone:
        """Return the phone with something in a field."""
        return replace(self, drafts={**self.drafts, id: text})

    def go(self, *page: str | int) -> Phone:
        """Return the phone with another page in sight, its fields empty."""
        return replace(self, pages=(*self.pages, page), drafts={}, focus="", first=0)

    def back(self) -> Phone:
        """Return the phone with the page before in sight; on the first one nothing happens."""
        return replace(self, pages=self.pages[:-1] or self.pages, drafts={}, focus="", first=0) if self.deep else self

    @property
    def deep(self) -> bool:
        """Whether there is a page before."""
        return len(self.pages) > 1

    def home(self) -> Phone:
        return replace(self, pages=self.pages[:1], drafts={}, focus="", first=0)


class App(Protocol):
    """An app; all methods are pure.

    Attributes:
        name: of the app.
    """

    name: str

    def setup(self, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Draw what is stored at the beginning, what is to be stored in the end, and the instruction."""
        ...

    def view(self, phone: Phone) -> tuple[str, list[Row]]:
        """Return the title and the rows of the page in sight."""
        ...

    def plan(self, at: Script, goal: Mapping[str, Any]) -> None:
        """Do by gestures, from the home page, what brings the data to the goal."""
        ...


def drafted(id: str, text: str) -> Callable[[Phone], Phone]:
    """Return what puts something into a field."""
    return lambda phone: phone.drafted(id, text)


def go(*page: str | int) -> Callable[[Phone], Phone]:
    """Return what opens a page."""
    return lambda phone: phone.go(*page)


def screen(app: App, phone: Phone) -> Screen:
    """Return what is seen."""
    title, rows = app.view(phone)
    rows = [*([(Widget("said", "text", phone.said),)] if phone.said else []), *rows]
    back = Widget("back", "button", "Back", do=Phone.back) if phone.deep else None
    widgets, more = placed(rows, phone.first, back)
    return Screen(app.name, title, widgets, phone.focus, more)


def after(app: App, phone: Phone, gesture: Gesture, seen: Screen | None = None) -> Phone:
    """Return the phone after a gesture that :func:`misfit` has nothing against."""
    seen = seen or screen(app, phone)
    phone = replace(phone, said="")
    if gesture.kind == "click":
        widget = touched(seen, gesture)
        if widget is None or not widget.enabled:
            return replace(phone, focus="")
        if widget.kind == "field":
            return replace(phone, focus=widget.id)
        phone = replace(phone, focus="")
        return phone if widget.do is None else widget.do(phone)
    if gesture.kind == "type":
        into = gesture.id or phone.focus
        return replace(phone, focus=into, drafts={**phone.drafts, into: gesture.text})
    if gesture.kind == "swipe":
        step = {"up": FITTING - 1, "down": 1 - FITTING}.get(gesture.text, 0)
        last = max(0, len(app.view(phone)[1]) - FITTING)
        return replace(phone, first=min(max(phone.first + step, 0), last))
    if gesture.kind == "press":
        return phone.home() if gesture.text == "home" else phone.back()
    if gesture.kind == "terminate":
        return replace(phone, ended=gesture.text)
    return phone


def touched(seen: Screen, gesture: Gesture) -> Widget | None:
    """Return the widget that a click is on."""
    return seen.find(gesture.id) if gesture.point is None else seen.at(*gesture.point)


def misfit(seen: Screen, gesture: Gesture) -> str:
    """Return why a gesture cannot be made on a screen, empty where it can."""
    if gesture.id:
        widget = seen.find(gesture.id)
        if widget is None:
            return f"{gesture.id[:40]!r} is not in sight"
        if not widget.enabled:
            return f"{gesture.id} cannot be used now"
        if gesture.kind == "type" and widget.kind != "field":
            return f"{gesture.id} is no field"
    elif gesture.kind == "type" and not seen.focus:
        return "no field has the focus; click one, or name it"
    return ""


class Script:
    """Gestures being written, from a phone on: each is made, so that the next is written for what it leads to.

    Args:
        app, phone: where it begins.
        pointing: whether widgets are named by their ids or by the points in their middles.
    """

    def __init__(self, app: App, phone: Phone, pointing: bool = False):
        self.app, self.phone, self.pointing = app, phone, pointing
        self.gestures: list[Gesture] = []

    def make(self, gesture: Gesture) -> None:
        seen = screen(self.app, self.phone)
        if gesture.id and self.pointing:
            widget = seen.find(gesture.id)
            assert widget is not None
            click = Gesture("click", point=widget.centre)
            if gesture.kind == "click":
                gesture = click
            else:
                self.gestures.append(click)
                self.phone = after(self.app, self.phone, click, seen)
                gesture, seen = replace(gesture, id=""), screen(self.app, self.phone)
        self.gestures.append(gesture)
        self.phone = after(self.app, self.phone, gesture, seen)

    def click(self, *ids: str) -> None:
        """Click widgets one after the other, each scrolled into sight."""
        for id in ids:
            self._seek(id)
            self.make(Gesture("click", id))

    def type(self, id: str, text: str) -> None:
        self._seek(id)
        self.make(Gesture("type", id, text=text))

    def home(self) -> None:
        if self.phone.deep or self.phone.first:
            self.make(Gesture("press", text="home"))

    def _seek(self, id: str) -> None:
        """Swipe until a widget is in sight, down first where there is more below.

        Raises:
            LookupError: the page has none of this id.
        """
        _, rows = self.app.view(self.phone)
        where: Sequence[int] = [i for i, row in enumerate(rows) if any(w.id == id for w in row)]
        if id != "back" and not where:
            raise LookupError(f"{self.app.name}, page {self.phone.page}: no {id!r}")
        while screen(self.app, self.phone).find(id) is None:
            self.make(Gesture("swipe", text="up" if where[0] >= self.phone.first else "down"))
