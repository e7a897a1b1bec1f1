"""A loop: the model calls tools, is shown what came of it, and goes on until it calls none."""

from __future__ import annotations

import json
from typing import Any

from assay.rollout.turns.harness.programs.chat import Spent, ask, given
from assay.rollout.turns.harness.programs.desk import Desk

ASKED = """{prompt}

The folder holds:
{listing}

Work with the tools. When all is done, say what you did without calling any."""


def called(message: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the calls of a message: id, name and arguments."""
    made = message.get("tool_calls") or []
    return [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in made]


def main() -> None:
    task, desk = given(), Desk()
    prompt = ASKED.format(prompt=task["prompt"], listing=desk.listing())
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    try:
        while calls := called(message := ask(messages, desk.tools)):
            messages.append(message)
            for id, name, arguments in calls:
                text, _ = desk.call(name, arguments)
                messages.append({"role": "tool", "tool_call_id": id, "name": name, "content": text})
        print(message["content"] or "")
    except Spent:
        return


if __name__ == "__main__":
    main()
