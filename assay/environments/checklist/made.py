"""Dialogues: made up, whose items are checked by rules, or read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.tasks.listed import Listed
from assay.tasks.seeded import check_index, generator
from assay.types import Task
from assay.verify.rubric.checklist import read_checklist

_TOWNS = ("Lyon", "Turin", "Porto", "Ghent", "Malmo", "Bergen")


def _tool(name: str, what: str, argument: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"name": name, "description": what, "parameters": {**schema, "additionalProperties": False}}


TOOLS = [
    _tool("order", "Looks up an order: its state and its parcel.", "number"),
    _tool("parcel", "Says where a parcel is.", "id"),
    _tool("refund", "Refunds an order.", "number"),
]


@dataclass(frozen=True, slots=True)
class Made:
    """Endless dialogues of a customer who asks where an order is, and wants it refunded where it is lost."""

    seed: int
    turns: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        turns, recorded, plan = [], [], []
        for k in range(self.turns):
            number, parcel = str(int(rng.integers(1000, 9999))), f"P{int(rng.integers(100, 999))}"
            town, lost = str(rng.choice(_TOWNS)), bool(rng.random() < 0.5)
            state = "lost near" if lost else "in"
            recorded += [
                {"name": "order", "arguments": {"number": number}, "output": f"order {number}: sent, parcel {parcel}"},
                {
                    "name": "parcel",
                    "arguments": {"id": parcel},
                    "output": f"{parcel}: {state} {town}",
                },
                {"name": "refund", "arguments": {"number": number}, "output": f"order {number}: refunded"},
            ]
            items = [
                _called("order", "looks the order up", {"number": number}, ()),
                _called("parcel", "asks where the parcel is", {"id": parcel}, ("order",)),
            ]
            steps: list[dict[str, Any]] = [{"name": r["name"], "arguments": r["arguments"]} for r in recorded[-3:-1]]
            if lost:
                items.append(_called("refund", "refunds an order that is lost", {"number": number}, ("parcel",)))
                steps.append({"name": "refund", "arguments": {"number": number}})
            where = {"says": rf"\b{town}\b"}
            items.append(
                {"text": "tells where it is", "id": "tells", "after": ["parcel"], "strict": True, "check": where}
            )
            asks = "Where is" if k == 0 else "And where is"
            turns.append({"user": f"{asks} order {number}? If it is lost, refund it.", "items": items})
            plan.append([*steps, {"say": f"It is near {town}."}])
        meta = {"turns": turns, "recorded": recorded, "tools": TOOLS, "plan": plan}
        return Task(f"dialogue/{self.seed}/{index}", str(turns[0]["user"]), meta=meta)


def _called(name: str, text: str, arguments: Mapping[str, str], after: tuple[str, ...]) -> dict[str, Any]:
    check = {"called": name, "arguments": dict(arguments)}
    return {"text": f"The assistant {text}.", "id": name, "after": list(after), "focus": "tools", "check": check}


def read_dialogues(rows: Path | str | Sequence[Mapping[str, Any]]) -> Listed:
    """Read dialogues, rows of a file or a list, one each.

    A row has ``turns``, a list of ``{"user", "items"}``; ``tools``, with ``name``, ``description`` and ``parameters``;
    ``recorded``, calls ``{"name", "arguments", "output"}``; if wanted ``id`` and ``plan``, of each turn steps
    ``{"name", "arguments"}`` or ``{"say"}``. All of this may stand in ``meta``, as ``assay tasks make S020`` writes it.

    Raises:
        UsageError: no such file, no rows, or a row that lacks something, with its line.
    """
    tasks = []
    given = read_rows(Path(rows)) if isinstance(rows, Path | str) else enumerate(rows)
    for place, each in given:
        row: Any = each
        where = place if isinstance(place, str) else f"dialogue {place}"
        name = row.get("id", where) if isinstance(row, Mapping) else where
        if isinstance(row, Mapping) and "turns" not in row and isinstance(row.get("meta"), Mapping):
            row = row["meta"]
        turns = row.get("turns") if isinstance(row, Mapping) else None
        if not turns or not all(isinstance(t, Mapping) and str(t.get("user", "")).strip() for t in turns):
            raise UsageError(f"{where}: a dialogue has turns, each with what the user says and items")
        for k, turn in enumerate(turns, 1):
            read_checklist(turn.get("items"), f"{where}, turn {k}")
        meta = {key: row.get(key) or [] for key in ("turns", "tools", "recorded", "plan")}
        tasks.append(Task(str(name), str(turns[0]["user"]), meta=meta))
    if not tasks:
        raise UsageError("environment 'checklist' was given no dialogues")
    return Listed(tasks)
