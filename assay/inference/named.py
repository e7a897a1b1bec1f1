"""Strategies by what a person writes: ``greedy,best_of_n(scorer=confidence),S043``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from assay import catalogue
from assay.errors import UsageError
from assay.from_file import is_reference
from assay.inference.base import Strategy
from assay.registry import build, call, names

_CALL = re.compile(r"(?P<name>[^(),=]*\.py:\w+|[\w.-]+)\s*(?:\((?P<options>.*)\))?", re.DOTALL)


def split_outside(text: str, separator: str = ",") -> list[str]:
    """Split at separators that stand outside brackets and quotes; empty parts are left out."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def value_of(text: str) -> Any:
    """Read an option's value as TOML; what is none is text."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def read_spec(text: str) -> dict[str, Any]:
    """Read ``name(key=value, ...)`` as a table with ``name``; keys may be dotted, ``scorer.n=4``.

    Raises:
        UsageError: it is not of that form.
    """
    match = _CALL.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"a strategy is written name or name(option=value, ...), not {text!r}")
    out: dict[str, Any] = {"name": match["name"]}
    for part in split_outside(match["options"] or ""):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"strategy {text!r}: {part!r} is not of the form option=value")
        table, *path = out, *key.strip().split(".")
        for step in path[:-1]:
            below = table.setdefault(step, {})
            # scorer=judge and scorer.n=4 mean the table {name = "judge", n = 4}.
            table[step] = below if isinstance(below, dict) else {"name": below}
            table = table[step]
        table[path[-1]] = value_of(value)
    return out


def make_strategy(spec: Any, **given: Any) -> Strategy:
    """Return the strategy of a name, of what :func:`read_spec` reads, of a table, or of a paper's id.

    Args:
        spec: see above; a strategy is returned as it is.
        given: options such as ``sampling`` for strategies that take them and whose ``spec`` does not name them.

    Raises:
        UsageError: there is no such strategy, or an option does not fit.
    """
    table = read_spec(spec) if isinstance(spec, str) else spec
    name = str(table.get("name", "")) if isinstance(table, dict) else ""
    if isinstance(table, dict) and not is_reference(name) and name not in names("inference"):
        if re.fullmatch(r"[sS]\d{3}", name):
            row = catalogue.find(name)
            if row.factory is None or "inference" not in row.seams:
                raise UsageError(
                    f"{row.id} ({row.name}) is no strategy at test time; its seams: {', '.join(row.seams)}"
                )
            options = {k: v for k, v in table.items() if k != "name"}
            made = call(row.factory, options, f"paper {row.id} ({row.name})", given)
            if not isinstance(made, Strategy) or hasattr(made, "credit"):
                rollout = getattr(made, "rollout", None)
                own = rollout.get("name") if isinstance(rollout, dict) else rollout
                its = f"its strategy is {own}" if own in names("inference") else f"see assay papers show {row.id}"
                raise UsageError(f"{row.id} ({row.name}) trains, and is no strategy at test time; {its}")
            return made
        catalogue.rows()  # a paper may register a strategy by name
    found: Strategy = build("inference", table, **given)
    return found


def make_strategies(specs: str | Sequence[Any], **given: Any) -> dict[str, Strategy]:
    """Return strategies by what they were called, e.g. of ``"greedy,majority,best_of_n(scorer=verifier)"``."""
    listed = split_outside(specs) if isinstance(specs, str) else list(specs)
    named = {s if isinstance(s, str) else str(s.get("name", s)): make_strategy(s, **given) for s in listed}
    if not named:
        raise UsageError("name at least one strategy, e.g. greedy,majority")
    if len(named) < len(listed):
        raise UsageError(f"two strategies are called the same: {', '.join(map(str, listed))}")
    return named
