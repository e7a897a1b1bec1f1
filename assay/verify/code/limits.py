"""What a program may use: the verifier's limits, a task's own, and a test's own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.sandbox import Limits

MIB = 1 << 20
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3}
_MEBIBYTES = {"": 1.0, "mb": 1.0, "mib": 1.0, "megabyte": 1.0, "megabytes": 1.0, "kb": 2**-10, "kib": 2**-10}
_MEBIBYTES |= {"kilobytes": 2**-10, "gb": 1024.0, "gib": 1024.0, "gigabytes": 1024.0}


def task_limits(limits: Limits, given: Mapping[str, Any], factor: float) -> Limits:
    """Return ``limits`` with what a reference, or one of its tests, says instead.

    ``time_limit`` is in seconds, or a text such as ``2.0 seconds`` (TACO), or ``{seconds, nanos}`` (CodeContests);
    ``memory_limit``, ``stack_limit`` and ``output_limit`` in MiB or a text such as ``256 megabytes``;
    ``memory_limit_bytes`` in bytes. 0 or ``None`` says nothing. ``factor`` is the language's: a ``time_limit`` times it
    is the program's. Raises ValueError or UsageError.
    """
    changed: dict[str, Any] = {}
    if seconds := _seconds(given.get("time_limit")):
        changed["cpu_seconds"] = seconds * factor
        changed["wall_seconds"] = min(3 * seconds * factor, 3600)
    if given.get("memory_limit_bytes"):
        changed["memory"] = int(given["memory_limit_bytes"])
    for key, name in (("memory_limit", "memory"), ("stack_limit", "stack"), ("output_limit", "output")):
        if amount := _amount(given.get(key), _MEBIBYTES, key):
            changed[name] = int(amount * MIB)
    if given.get("process_limit"):
        changed["processes"] = int(given["process_limit"])
    return replace(limits, **changed) if changed else limits


def _seconds(value: Any) -> float:
    if isinstance(value, Mapping):
        return float(value.get("seconds") or 0) + float(value.get("nanos") or 0) / 1e9
    return _amount(value, _SECONDS, "time_limit")


def _amount(value: Any, units: Mapping[str, float], key: str) -> float:
    if value is None or value == "":
        return 0.0
    if isinstance(value, str):
        match = _AMOUNT.fullmatch(value)
        if match is None or match[2].lower() not in units:
            raise ValueError(f"its {key} is {value[:40]!r}, not a number")
        return float(match[1]) * units[match[2].lower()]
    if isinstance(value, bool) or not math.isfinite(float(value)) or float(value) < 0:
        raise ValueError(f"its {key} is {value!r}, not a number of at least 0")
    return float(value)
