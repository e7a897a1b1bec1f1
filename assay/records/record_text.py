"""Records as JSON that a person and ``git diff`` can read: a member a line, an element of a list a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as JSON text: each member on a line, each element of a list of objects on one of its own.

    A long mapping that holds others has a line for each of its members, too.
    """
    plain = json.loads(json.dumps(record))  # read again it is laid out the same: a tuple is a list by then
    members = ",\n".join(f"{json.dumps(key)}: {_member(value)}" for key, value in plain.items())
    return f"{{\n{members}\n}}\n"


def _member(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return "[\n" + ",\n".join(f"  {json.dumps(one)}" for one in value) + "\n]"
    if (
        isinstance(value, dict)
        and any(isinstance(one, list | dict) for one in value.values())
        and len(str(value)) > 200
    ):
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items()) + "\n}"
    return json.dumps(value)
