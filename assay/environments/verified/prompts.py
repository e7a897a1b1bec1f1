"""What a verifier of trajectories asks, and in which form it is answered."""

from __future__ import annotations

import json
import re
from typing import Any

RUBRIC = """Write a rubric for this task, by which what an agent does at a computer will be marked:
{task}

Each criterion is about one thing that the task asks for; no two overlap, and nothing is asked for that the task does
not ask for. A criterion that only matters under some condition names it. Points say how much depends on it.
Reply with a JSON list of tables {"text": ..., "points": ..., "condition": "" or when it applies}."""

RELEVANT = """Task: {task}

What the agent did, and what the screen showed then:
{shown}

For each criterion, how much does this tell about whether it is met, from 0 to 10?
{criteria}

Reply with a JSON list of numbers, one for each criterion in order."""

CLAIMED = """Task: {task}

What the agent says that it did, screens left out:
{account}

Taking it at its word, how many points would it earn of each criterion?
{criteria}

Reply with a JSON list of numbers, one for each criterion in order."""

SEEN = """Task: {task}

Criterion: {criterion}

All that the agent did:
{account}

What the screens that tell most about this criterion showed:
{shown}

By what the screens show, and not by what the agent says:
- does the criterion apply?
- how many points has the agent earned? What no screen shows was not done.
- if points are missing, could the agent have helped it? It could not if it was kept out, if something was down, sold
  out or does not exist; it could if it misread the task, reasoned wrongly, made something up or did not try again.
Reply with JSON {"applies": true or false, "points": ..., "controllable": true or false}."""

CASCADE = """Task: {task}

An agent has lost points of some criteria:
{lost}

All that it did:
{account}

An error is charged once, at the first criterion that it breaks. Which of the later ones are lost by the same error
alone, and how many points would each earn had that error not been made?
Reply with a JSON list of tables {"criterion": its number, "first": the number of the one that is charged, "points": \
...}; an empty list if there are none."""

OUTCOME = """Task: {task}

The agent's last words: {message}

What the screens showed:
{shown}

Has the user got what was asked for, whatever the way, and nothing that was not wanted? Go by the screens.
Reply with JSON {"success": true or false}."""


def read_json(text: str) -> Any:
    """Return the list or table that a reply ends with.

    Raises:
        ValueError: there is none.
    """
    found = re.search(r"[\[{]", text)
    end = max(text.rfind("]"), text.rfind("}"))
    if found is None or end < found.start():
        raise ValueError(f"no JSON in {text[-60:]!r}")
    try:
        return json.loads(text[found.start() : end + 1])
    except RecursionError:
        raise ValueError("JSON that is nested too deep") from None
