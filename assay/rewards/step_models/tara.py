"""Comparisons as TARA's files have them: two answers, each with calls of tools, what these returned, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TURN = re.compile(
    r"Action:[ \t]*(?P<name>.*?)[ \t]*\nAction Input:[ \t]*(?P<given>.*?)\s*\nObservation:[ \t]*(?P<output>.*?)\s*"
    r"(?=\nThought:|\Z)",
    re.DOTALL,
)
NOTHING = ("", "none", "n/a", "no")
"""What stands for a tool where none is called."""


def traced(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with ``question``, ``pos_answer`` and ``neg_answer`` as a preference, and nothing where one of them
    is blank; other rows as they are.

    Each answer is a table of ``answer``, ``actions`` (turns of Thought, Action, Action Input and Observation, as a text
    or as the table of one) and ``score_agent`` with its ``explanation``. Calls are those of environment ``consulting``
    that do the same, each with the ``output`` that is on record; what cannot be one of these, such as a date that is
    none, is left out.
    """
    if "pos_answer" not in row or "neg_answer" not in row:
        return row
    sides = {"chosen": row["pos_answer"], "rejected": row["neg_answer"]}
    if not all(str(side["answer"]).strip() for side in sides.values()):
        return {}
    told = {name: _side(side) for name, side in sides.items()}
    return {"id": str(row.get("id", row["question"])), "prompt": row["question"], **told}


def _side(side: Mapping[str, Any]) -> dict[str, Any]:
    actions, scored = side.get("actions"), side.get("score_agent")
    if isinstance(actions, Mapping):
        turns = [tuple(str(actions.get(key, "")) for key in ("Action", "Action Input", "Observation"))]
    else:
        turns = [(m["name"], m["given"], m["output"]) for m in _TURN.finditer(actions or "")]
    calls = [
        {**made, "output": output}
        for name, given, output in turns
        if name.strip().casefold() not in NOTHING and (made := _call(name.strip(), given.strip())) is not None
    ]
    why = str(scored.get("explanation", "")) if isinstance(scored, Mapping) else ""
    return {"answer": side["answer"], "calls": calls, "rationale": why.strip()}


def _call(name: str, given: str) -> dict[str, Any] | None:
    if name not in TOOLS:
        raise ValueError(f"the action {name!r} is none of {', '.join(TOOLS)}")
    ours, read = TOOLS[name]
    arguments = read(given)
    return None if arguments is None else {"name": ours, "arguments": arguments}


def _two(first: str, second: str, number: bool = False) -> Callable[[str], dict[str, Any] | None]:
    """Read two arguments that a comma stands between, the last one if there are several."""

    def read(given: str) -> dict[str, Any] | None:
        left, comma, right = (x.strip(" '\"") for x in given.rpartition(","))
        if not comma or (number and not re.fullmatch(r"[+-]?\d+", right)):
            return None
        return {first: left, second: int(right) if number else right}

    return read


def _one(name: str) -> Callable[[str], dict[str, Any] | None]:
    return lambda given: {name: given}


TOOLS: dict[str, tuple[str, Callable[[str], dict[str, Any] | None]]] = {
    "calculator": ("calculator", _one("expression")),
    "code_run": ("python_interpreter", _one("code")),
    "Calendar.week_day": ("weekday", _one("date")),
    "Calendar.target_day": ("date_after", _two("date", "days", number=True)),
    "Calendar.day_difference": ("days_between", _two("first", "second")),
    "history_weather": ("weather", _two("place", "date")),
    "translate": ("translate", _one("text")),
    "wiki_search": ("wiki", _one("title")),
    "google_serper": ("search", _one("query")),
}
"""TARA's tools, and those of environment ``consulting`` with what they read of an input."""
