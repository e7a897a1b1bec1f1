"""A calendar: days, events, and a form with choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.environments.screens.phone import Phone, Script, drafted, go
from assay.environments.screens.widgets import Row, Widget

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TITLES = ("Dentist", "Yoga", "Piano lesson", "Team lunch", "Haircut", "Library", "Swimming", "Choir", "Car service")
FIRST, LAST = 8, 20
"""Hours that events begin at."""


class Calendar:
    """One event an hour. A new one has a title, a day and an hour; an event can be deleted, or moved by hours."""

    name = "calendar"

    def setup(self, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], str]:
        slots = rng.choice(len(DAYS) * (LAST - FIRST), 8, replace=False).tolist()
        times = [(DAYS[k % len(DAYS)], FIRST + k // len(DAYS)) for k in slots]
        titles = rng.choice(TITLES, len(times), replace=False)
        events = [{"title": str(t), "day": d, "hour": h} for t, (d, h) in zip(titles, times[:-1], strict=False)]
        event = events[int(rng.integers(len(events)))]
        others = [e for e in events if e is not event]
        what = str(rng.choice(["new", "delete", "move"]))
        if what == "new":
            day, hour = times[-1]
            made = {"title": str(titles[-1]), "day": day, "hour": hour}
            text = f'Enter "{made["title"]}" for {day} at {hour}:00.'
            return _data(events), _data([*events, made]), text
        if what == "delete":
            return _data(events), _data(others), f'Delete "{event["title"]}".'
        taken = {e["hour"] for e in events if e["day"] == event["day"]}
        free = [h for h in range(FIRST, LAST + 1) if h not in taken and abs(h - event["hour"]) <= 4]
        moved = {**event, "hour": int(rng.choice(free))}
        return _data(events), _data([*others, moved]), f'Move "{event["title"]}" to {moved["hour"]}:00 of the same day.'

    def view(self, phone: Phone) -> tuple[str, list[Row]]:
        kind, *of = phone.page
        events = phone.data["events"]
        if kind == "home":
            new = Widget("new", "button", "New event", do=go("new"))
            rows: list[Row] = [(new,)]
            for day in DAYS:
                n = sum(e["day"] == day for e in events)
                rows.append(
                    (
                        Widget(
                            day.lower(), "item", f"{day}: {n or 'no'} event{'' if n == 1 else 's'}", do=go("day", day)
                        ),
                    )
                )
            return "Calendar", rows
        if kind == "day":
            today = [e for e in events if e["day"] == of[0]]
            return str(of[0]), [
                (
                    Widget(
                        f"at_{e['hour']}", "item", f"{e['hour']}:00 {e['title']}", do=go("event", e["day"], e["hour"])
                    ),
                )
                for e in today
            ]
        if kind == "event":
            event = next(e for e in events if (e["day"], e["hour"]) == tuple(of))
            when = Widget("when", "text", f"{event['day']}, {event['hour']}:00")
            earlier, later = (_move(events, event, by) for by in (-1, 1))
            before = Widget("earlier", "button", "Earlier", do=earlier, enabled=earlier is not None)
            behind = Widget("later", "button", "Later", do=later, enabled=later is not None)
            gone = Widget("delete", "button", "Delete", do=_deleted(event))
            return event["title"], [(before, when, behind), (gone,)]
        hour, day = int(phone.draft("hour") or 12), phone.draft("day")
        days = [
            tuple(Widget(d.lower(), "switch", d, d == day, drafted("day", d)) for d in some)
            for some in (DAYS[:4], DAYS[4:])
        ]
        hours = (
            Widget("earlier", "button", "Earlier", do=drafted("hour", str(hour - 1)), enabled=hour > FIRST),
            Widget("when", "text", f"{hour}:00"),
            Widget("later", "button", "Later", do=drafted("hour", str(hour + 1)), enabled=hour < LAST),
        )
        title = (Widget("of_title", "text", "Title"), Widget("title", "field", phone.draft("title")))
        return "New event", [title, *days, hours, (Widget("save", "button", "Save", do=_saved),)]

    def plan(self, at: Script, goal: Mapping[str, Any]) -> None:
        now = {e["title"]: e for e in at.phone.data["events"]}
        then = {e["title"]: e for e in goal["events"]}
        for title, event in now.items():
            wanted = then.get(title)
            if wanted == event:
                continue
            at.home()
            at.click(event["day"].lower(), f"at_{event['hour']}")
            if wanted is None or wanted["day"] != event["day"]:
                at.click("delete")
                continue
            at.click(
                *["later" if wanted["hour"] > event["hour"] else "earlier"]
                * _presses(at.phone.data["events"], event, wanted)
            )
        for title, wanted in then.items():
            if title not in {e["title"] for e in at.phone.data["events"]}:
                at.home()
                at.click("new", wanted["day"].lower())
                at.type("title", title)
                at.click(*["later" if wanted["hour"] > 12 else "earlier"] * abs(wanted["hour"] - 12), "save")


Event = dict[str, Any]


def _data(events: list[Event]) -> dict[str, Any]:
    """Return the data with its events in the order of the week."""
    return {"events": sorted(events, key=lambda e: (DAYS.index(e["day"]), e["hour"]))}


def _free(events: list[Event], day: str, hour: int) -> bool:
    return FIRST <= hour <= LAST and not any((e["day"], e["hour"]) == (day, hour) for e in events)


def _next(events: list[Event], event: Event, by: int) -> int | None:
    """Return the next free hour of the event's day in a direction."""
    hours = range(event["hour"] + by, LAST + 1 if by > 0 else FIRST - 1, by)
    return next((h for h in hours if _free(events, event["day"], h)), None)


def _presses(events: list[Event], event: Event, wanted: Event) -> int:
    """Return how many free hours there are from where an event is to where it is wanted."""
    low, high = sorted((event["hour"], wanted["hour"]))
    return sum(_free(events, event["day"], h) for h in range(low, high + 1))


def _move(events: list[Event], event: Event, by: int) -> Callable[[Phone], Phone] | None:
    hour = _next(events, event, by)
    if hour is None:
        return None
    moved = {**event, "hour": hour}

    def move(phone: Phone) -> Phone:
        rest = [e for e in events if e is not event]
        return phone.back().go("event", event["day"], hour).stored(**_data([*rest, moved]))

    return move


def _deleted(event: Event) -> Callable[[Phone], Phone]:
    return lambda p: p.back().stored("Deleted", events=[e for e in p.data["events"] if e != event])


def _saved(phone: Phone) -> Phone:
    title, day, hour = phone.draft("title").strip(), phone.draft("day"), int(phone.draft("hour") or 12)
    events = phone.data["events"]
    if not title or not day or not _free(events, day, hour):
        wrong = "no title" if not title else "no day" if not day else f"{day} at {hour}:00 is taken"
        return phone.stored(f"Not saved: {wrong}")
    return phone.back().stored("Saved", **_data([*events, {"title": title, "day": day, "hour": hour}]))
