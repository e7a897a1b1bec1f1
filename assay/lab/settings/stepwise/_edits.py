"""What edits make of a file of two functions, and the errors that mypy finds in each."""

from __future__ import annotations

import functools

from assay.verify.diagnostics.check import check

HEADS = {"total": "def total(prices: list[int]) -> int:", "label": "def label(name: str, count: int) -> str:"}
LINES = {
    "total": {"start": "sum(price)", "right": "sum(prices)", "wrong": "len(prices)", "broken": "prices"},
    "label": {"start": "name + count", "right": "name + str(count)", "wrong": "name", "broken": "count"},
}
"""What each function may return: errors at the start, as it should be, what only the checker takes for right, and
another error."""
EDITS = ("right", "wrong", "broken", "ignore", "delete")
IGNORE = "  # type: ignore"
State = tuple[str, str]
"""Of each function the line it has, with ``+`` where the checker is told to look away, or ``gone``."""
START: State = ("start", "start")


def edited(now: str, edit: str) -> str:
    """Return what an edit makes of a function. One that is gone comes back with a line, and without a comment."""
    if edit == "ignore":
        return now if now == "gone" else now.rstrip("+") + "+"
    return "gone" if edit == "delete" else edit


def source(state: State) -> str:
    """Return the file."""
    parts = []
    for name, now in zip(HEADS, state, strict=True):
        if now != "gone":
            line = LINES[name][now.rstrip("+")]
            parts.append(f"{HEADS[name]}\n    return {line}{IGNORE if now.endswith('+') else ''}\n")
    return "\n\n".join(parts)


@functools.cache
def found() -> dict[State, int]:
    """Return how many errors the checker finds in each file there can be: all in one call, for it takes seconds."""
    lines = [f"{now}{mark}" for now in LINES["total"] for mark in ("", "+")]
    now = [*lines, "gone"]
    states: list[State] = [(first, second) for first in now for second in now]
    files = {f"s{i}.py": source(state) for i, state in enumerate(states)}
    errors = [one.path for one in check(files, "mypy") if one.severity == "error"]
    return {state: errors.count(f"s{i}.py") for i, state in enumerate(states)}
