"""What an agent is to do in each turn of a recorded dialogue, in items that can be told to be met or not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.tasks.files.dialogues import plan_of, told
from assay.tasks.making.work import Dropped, Here, Want, Work, noted
from assay.types import Task
from assay.verify.rubric.checklist import read_checklist

ASK = """Below is a dialogue in which an assistant used tools well. Write down, for each turn of it, what an assistant \
has to do in that turn, in items of which anybody who sees what was done can say whether each is met.

An item is one thing, without an "and", and says when it is met. It holds for every good way to do it, and not only \
for the words and the order on record. It rests on evidence: words that stand in the dialogue, in its turn or an \
earlier one.

Reply with a JSON list and nothing else, one table for each turn, in order:
[{"turn": 1, "items": [{"id": "looked_up", "text": "The assistant looks up order 17; met when the call names 17.",
  "failures": ["No call was made.", "Another order was looked up."], "evidence": [{"turn": 1, "snippet": "order 17"}],
  "focus": "tools", "after": [], "strict": false, "weight": 0.5}]}]

- failures are ways not to meet it;
- focus is "tools" for calls and what they return, "reply" for what the assistant says or thinks;
- after has the ids of items of the same turn, with focus "tools", without whose results this one cannot be met;
- strict is true where the user would not go on with what he says next unless it is met;
- weight says what share of the turn it is; those of a turn sum to 1.

Tools:
{tools}

{dialogue}"""
AGAIN = """{before}

Your last reply cannot be used: {why}. Write the whole list again."""


def read_items(reply: str, turns: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the items of each turn as environment ``checklist`` reads them.

    Every turn has items; each rests on evidence that stands in its turn or before, and comes after items about tools
    alone.

    Args:
        reply: with a JSON list, whatever stands around it.
        turns: of the dialogue.

    Raises:
        UsageError: it is not so; says where.
    """
    start, end = reply.find("["), reply.rfind("]")
    try:
        said = json.loads(reply[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, list):
        raise UsageError("there is no JSON list in it")
    shown = [" ".join(told(turn).split()) for turn in turns]
    found: dict[int, list[dict[str, Any]]] = {}
    for block in said:
        number = block.get("turn") if isinstance(block, Mapping) else None
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(turns) or number in found:
            raise UsageError(f"its tables are for the turns 1 to {len(turns)}, each once")
        rows = block.get("items")
        if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
            raise UsageError(f"turn {number} has no items")
        found[number] = [_item(row, number, shown) for row in rows]
        items = read_checklist(found[number], f"turn {number}")
        about = {item.id: item.focus for item in items}
        for item in items:
            for name in item.after:
                if about[name] != "tools":
                    raise UsageError(f"turn {number}: item {item.id!r} is after {name!r}, which is not about tools")
    if missing := [number for number in range(1, len(turns) + 1) if number not in found]:
        raise UsageError(f"turn {missing[0]} has no items")
    return [found[number] for number in range(1, len(turns) + 1)]


def _item(row: Mapping[str, Any], number: int, shown: Sequence[str]) -> dict[str, Any]:
    """Return what a checklist has of an item, if its evidence is there."""
    name, evidence = str(row.get("id", "")), row.get("evidence")
    where = f"turn {number}, item {name!r}"
    if not name or not isinstance(evidence, list) or not evidence:
        raise UsageError(f"{where} has no id or no evidence")
    for one in evidence:
        at, words = (one.get("turn"), one.get("snippet")) if isinstance(one, Mapping) else (None, None)
        if isinstance(at, bool) or not isinstance(at, int) or not 1 <= at <= number:
            raise UsageError(f"{where}: evidence is of a turn from 1 to {number}")
        plain = " ".join(words.split()) if isinstance(words, str) else ""
        if not plain or plain not in shown[at - 1]:
            raise UsageError(f"{where}: {str(words)[:60]!r} does not stand in turn {at}")
    after = row.get("after") or []
    if not isinstance(after, list):
        raise UsageError(f"{where}: after is a list of ids")
    kept = {key: row[key] for key in ("text", "focus", "weight", "failures") if key in row}
    shown_by = [one["snippet"] for one in evidence]
    return {
        **kept,
        "id": name,
        "after": [str(x) for x in after],
        "strict": row.get("strict") is True,
        "reference": shown_by,
    }


@dataclass(frozen=True, slots=True)
class DialogueChecklists:
    """Gives a recorded dialogue (tasks ``recorded_dialogues``) a checklist for each of its turns, as a model writes it.

    A reply that cannot be used is asked for again with the reason, ``tries`` times in all; then the dialogue is left
    out. What it makes is a dialogue of environment ``checklist``: ``turns`` with ``user`` and ``items``, ``tools``,
    ``recorded`` calls with what they returned, and the recorded steps as ``plan``.

    Args:
        tries: replies, at least 1.
        template: of the request, with ``{tools}`` and ``{dialogue}``.
        by: role of who writes.
        sampling: of the replies.

    Raises:
        UsageError: ``tries`` below 1; of tasks, that they are no recorded dialogues.

    Source: CM2, checklist rewards for multi-turn tool agents, and its authors' code.
    """

    tries: int = 3
    template: str = ASK
    by: str = "writer"
    sampling: Sampling = Sampling(8192, 0.6)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UsageError(f"step checklists: tries {self.tries} must be at least 1")

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for tasks that are no recorded dialogues."""
        for task in tasks:
            if not task.meta.get("turns") or "steps" not in task.meta["turns"][0]:
                raise UsageError(
                    f"checklists are of recorded dialogues, and task {task.id} is none: --seeds "
                    '"recorded_dialogues(path=dialogues.jsonl)"'
                )

    def __call__(self, task: Task, here: Here) -> Work:
        turns = task.meta["turns"]
        dialogue = "\n\n".join(f"Turn {k}\n{told(turn)}" for k, turn in enumerate(turns, 1))
        tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in task.meta["tools"]) or "none"
        first = asked = filled(self.template, tools=tools, dialogue=dialogue)
        for _ in range(self.tries):
            [[reply]] = yield [Want(asked, 1, self.sampling, self.by)]
            try:
                if reply.stop not in ("eos", "stop"):
                    raise UsageError("it was cut off")
                items = read_items(reply.text, turns)
            except UsageError as error:
                asked = filled(AGAIN, before=first, why=str(error))
                continue
            calls = [call for turn in turns for step in turn["steps"] for call in step.get("calls", ())]
            made = [{"user": turn["user"], "items": rows} for turn, rows in zip(turns, items, strict=True)]
            return noted(task, turns=made, recorded=calls, plan=plan_of(turns))
        return Dropped("no checklist could be read")
