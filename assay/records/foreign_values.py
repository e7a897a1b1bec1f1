"""Values of rows that something else wrote, read for what they are to tell or refused with their line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError
from assay.records.messages import message
from assay.types import Prompt


def walk(row: Any, name: str) -> Any:
    """The value at a field's name, with dots into tables and numbers into lists."""
    if isinstance(row, Mapping) and name in row:
        return row[name]
    for key in name.split("."):
        if isinstance(row, Mapping) and key in row:
            row = row[key]
        elif isinstance(row, list) and key.isdigit() and int(key) < len(row):
            row = row[int(key)]
        else:
            return None
    return row


def texts_of(value: Any, where: str, row: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The completions of a row, and whether it had a list of them."""
    if value is None:
        raise UsageError(
            f"{where} has no completion, such as response, completion, output, generation, text "
            f"(fields present: {', '.join(map(str, row))}); map it with "
            "--fields response=NAME"
        )
    if isinstance(value, str):
        return [value], False
    if isinstance(value, list) and value and all(isinstance(m, Mapping) and "content" in m for m in value):
        try:
            last = {"role": "assistant", **value[-1], "content": value[-1]["content"] or ""}  # null says nothing
            return [message(last)["content"]], False
        except ValueError as wrong:
            raise UsageError(f"{where}: its completion holds {wrong}") from None
    if isinstance(value, list):
        # Requests that were repeated are a list in a list.
        flat = [t for v in value for t in (v if isinstance(v, list) and all(isinstance(x, str) for x in v) else [v])]
        return [texts_of(v, where, row)[0][0] for v in flat], True
    raise UsageError(f"{where}: its completion is a {type(value).__name__}, not text, messages or a list of them")


def prompt_of(value: Any, where: str) -> Prompt:
    if isinstance(value, list) and all(isinstance(m, Mapping) for m in value):
        try:
            return tuple(message({"role": "user", **m}) for m in value)
        except ValueError as wrong:
            raise UsageError(f"{where}: its prompt holds {wrong}") from None
    if value is not None and not isinstance(value, str | int | float):
        raise UsageError(f"{where}: its prompt is a {type(value).__name__}, not text or chat messages")
    return "" if value is None else str(value)


def number_of(value: Any, role: str, where: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{where}: its {role} {value!r} is no number") from None
    if not math.isfinite(found):
        raise UsageError(
            f"{where}: its {role} {value!r} is no finite number; leave it out, or null, where none is known"
        )
    if not math.isfinite(found):
        raise UsageError(f"{where}: its {role} {value!r} is not finite")
    return found


TRUTHS = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False, "0.0": False}


def truth_of(value: Any, role: str, where: str) -> bool | None:
    if value is None or value == "":
        return None
    found = TRUTHS.get(str(value).strip().lower())
    if found is None:
        raise UsageError(f"{where}: its {role} {value!r} is neither true, false nor null")
    return found
