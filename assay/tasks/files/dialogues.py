"""Dialogues with tools on record, in the messages that chat servers have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.seeded import check_index
from assay.types import Task


@part("tasks", "recorded_dialogues")
class RecordedDialogues:
    """What users said in turn, and in each turn the assistant's steps: calls of tools with what they returned, and its
    reply. To be given checklists (``assay tasks make S020``) and then played in environment ``checklist``.

    Rows have ``messages`` and ``tools``, in the form of chat servers: an assistant's message may have ``tool_calls``,
    each with ``function``, its ``name`` and ``arguments``, as a table or in JSON; messages of role ``tool`` answer them
    in order, or by ``tool_call_id``. System messages are left out. ``meta`` of a task has ``turns``, each ``user`` and
    ``steps``, a step ``calls``, tables of ``name``, ``arguments`` and ``output``, or ``say``; and ``tools``.

    Args:
        path: a JSONL or JSON file, or Parquet.

    Raises:
        UsageError: no such file, no rows, or a row of another form, with its line.
    """

    def __init__(self, path: Path):
        self.tasks: list[Task] = []
        for where, row in read_rows(Path(path)):
            try:
                turns, tools = _read(row)
            except (KeyError, TypeError, ValueError) as wrong:
                why = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
                raise UsageError(
                    f"{where}: {why}; a dialogue has messages, a reply to each of the user's, and tools"
                ) from None
            name = str(row.get("id", row.get("uuid", f"{Path(path).name}/{len(self.tasks)}")))
            self.tasks.append(Task(name, turns[0]["user"], kind="none", meta={"turns": turns, "tools": tools}))
        if not self.tasks:
            raise UsageError(f"{path} has no rows")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _read(row: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if not isinstance(row, Mapping):
        raise TypeError("is no record")
    turns: list[dict[str, Any]] = []
    open_: list[dict[str, Any]] = []
    for message in row["messages"]:
        role, said = str(message["role"]), str(message.get("content") or "")
        if role == "system":
            continue
        if open_ and role != "tool":
            raise ValueError(f"a call of {open_[0]['name']} has no answer")
        if role == "user":
            if turns and (not turns[-1]["steps"] or "say" not in turns[-1]["steps"][-1]):
                raise ValueError("the user speaks twice without a reply")
            turns.append({"user": said, "steps": []})
        elif not turns:
            raise ValueError("the first to speak is the user")
        elif role == "tool":
            call = next((c for c in open_ if c["id"] is not None and c["id"] == message.get("tool_call_id")), None)
            call = call or next(iter(open_), None)
            if call is None:
                raise ValueError("a tool answers and was not called")
            call["output"] = said
            open_.remove(call)
        elif role == "assistant":
            calls = [_call(each) for each in message.get("tool_calls") or ()]
            open_ += calls
            turns[-1]["steps"].append({"calls": calls} if calls else {"say": said})
        else:
            raise ValueError(f"{role!r} is no role")
    if not turns or open_ or not turns[-1]["steps"] or "say" not in turns[-1]["steps"][-1]:
        raise ValueError("it ends without a reply")
    for turn in turns:
        for step in turn["steps"]:
            for call in step.get("calls", ()):
                del call["id"]
    return turns, [_tool(each) for each in row.get("tools") or ()]


def _call(said: Mapping[str, Any]) -> dict[str, Any]:
    function = said["function"]
    arguments = function["arguments"]
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(arguments, Mapping):
        raise ValueError(f"the arguments of {function['name']} are no table")
    return {"id": said.get("id"), "name": str(function["name"]), "arguments": dict(arguments), "output": ""}


def _tool(said: Mapping[str, Any]) -> dict[str, Any]:
    table = said["function"] if isinstance(said.get("function"), Mapping) else said
    schema = table.get("parameters") or {"type": "object", "properties": {}}
    return {"name": str(table["name"]), "description": str(table.get("description") or ""), "parameters": schema}


def told(turn: Mapping[str, Any]) -> str:
    """Return a recorded turn as it is shown to a reader."""
    lines = [f"user: {turn['user']}"]
    for step in turn["steps"]:
        if "say" in step:
            lines.append(f"assistant: {step['say']}")
        for call in step.get("calls", ()):
            lines.append(f"assistant calls {call['name']}({json.dumps(call['arguments'], ensure_ascii=False)})")
            lines.append(f"tool: {call['output']}")
    return "\n".join(lines)


def plan_of(turns: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the steps of each turn as environment ``checklist`` has a plan."""
    return [
        [
            made
            for step in turn["steps"]
            for made in (
                [{"say": step["say"]}]
                if "say" in step
                else [{"name": c["name"], "arguments": c["arguments"]} for c in step["calls"]]
            )
        ]
        for turn in turns
    ]
