"""Weighted checks on the files that are left: each looks at artefacts, none at what was said."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import UsageError, nearest
from assay.sandbox.workspace import LIMITS, Workspace

Files = Mapping[str, bytes]
Wrong = Literal["", "missing", "format", "content"]
"""What is wrong with an artefact: it is not there, it is not what it should be read as, or it says something else."""
Look = Callable[[Any, Files, Files], Wrong]
"""Of a check's description, the files that are left and those there were: what is wrong."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked for.

    Attributes:
        id: its name among the task's checks.
        weight: of it, > 0; a task's weights sum to 1.
        kind: what is looked at, of :data:`KINDS`, or one that the caller has.
        what: its description, with ``kind`` among its keys.
        needs: ids of checks that must hold for this one to count.
        beside: it counts only where another check counts that does not say so: what holds before anything is done is
            worth nothing by itself.
        guard: what must not be done: where it does not hold the run was unsafe.
    """

    id: str
    weight: float
    kind: str
    what: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    beside: bool = False
    guard: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: whether it counts as passed, and what is wrong with what it looked at, which a check that
    holds and does not count has empty."""

    check: Check
    passed: bool
    wrong: Wrong


def graded(
    checks: Sequence[Check], files: Files, start: Files, kinds: Mapping[str, Look] | None = None
) -> tuple[Finding, ...]:
    """Return what each check finds.

    Args:
        checks: of a task.
        files: that are left.
        start: that there were.
        kinds: more kinds of checks than :data:`KINDS`.

    Raises:
        SandboxUnavailable: a check runs a command, and this machine cannot run programs in isolation.
    """
    looks = {**KINDS, **(kinds or {})}
    wrong: dict[str, Wrong] = {c.id: looks[c.kind](c.what, files, start) for c in checks}
    holds = {c.id: not wrong[c.id] and not any(wrong[other] for other in c.needs) for c in checks}
    acted = any(holds[c.id] for c in checks if not c.beside)
    return tuple(Finding(c, holds[c.id] and (acted or not c.beside), wrong[c.id]) for c in checks)


def outcome(findings: Sequence[Finding]) -> float:
    """Return the sum of the weights of what passed, exactly 1 where all did."""
    if all(f.passed for f in findings):
        return 1.0
    return math.fsum(f.check.weight for f in findings if f.passed)


def read_checks(given: Any, where: str, kinds: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks that a task's description lists.

    Each is an object of ``id``, ``weight``, perhaps ``needs``, ``beside`` and ``guard``, and one of::

        {"file": PATH, "is": TEXT}              its text, blanks at the ends apart
        {"file": PATH, "sha256": DIGEST}        its bytes
        {"file": PATH, "json": [KEY, ...], "is": VALUE}   what stands in a JSON file under these keys
        {"file": PATH, "matches": PATTERN}      a regular expression that its text has somewhere
        {"gone": [PATH, ...]}                   none of them is there
        {"kept": [PATH, ...]}                   each is as it was
        {"command": TEXT}                       a command of sh in a copy of the folder, in the sandbox, ends with 0

    Raises:
        UsageError: they cannot be read, or their weights do not sum to 1.
    """
    known = [*KINDS, *kinds]
    made: list[Check] = []
    if not isinstance(given, list) or not given:
        raise UsageError(f"{where}: checks must be a list of objects")
    for row in given:
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise UsageError(f"{where}: a check is an object with an id, not {str(row)[:80]}")
        named = ["json"] if "json" in row else [kind for kind in known if kind in row]
        if len(named) != 1:
            close = nearest(next(iter(set(row) - {"id", "weight", "file"}), ""), known)
            raise UsageError(f"{where}: check {row['id']!r} looks at nothing there is: {', '.join(known)}{close}")
        weight = row.get("weight")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
            raise UsageError(f"{where}: check {row['id']!r} needs a weight above 0, not {weight!r}")
        _fits(named[0], row, where)
        needs = tuple(map(str, row.get("needs", ())))
        made.append(
            Check(row["id"], float(weight), named[0], row, needs, bool(row.get("beside")), bool(row.get("guard")))
        )
    ids = [c.id for c in made]
    if len(set(ids)) < len(ids) or any(need not in ids for c in made for need in c.needs):
        raise UsageError(f"{where}: checks need ids of their own, and need only what there is; got {', '.join(ids)}")
    if abs(math.fsum(c.weight for c in made) - 1) > 1e-9:
        raise UsageError(f"{where}: the weights sum to {math.fsum(c.weight for c in made):g}, not to 1")
    return tuple(made)


def _fits(kind: str, row: Mapping[str, Any], where: str) -> None:
    texts = {"sha256": ("file", "sha256"), "json": ("file",), "matches": ("file", "matches"), "is": ("file", "is")}
    texts["command"] = ("command",)
    right = all(isinstance(row.get(key), str) for key in texts.get(kind, ()))
    if kind in ("gone", "kept", "json"):
        right = right and isinstance(row[kind], list)
    if kind == "json":
        right = right and "is" in row
    if kind == "matches" and right:
        try:
            re.compile(row["matches"])
        except re.error as error:
            raise UsageError(f"{where}: check {row['id']!r}: no pattern: {error}") from None
    if not right:
        raise UsageError(f"{where}: check {row['id']!r} of kind {kind!r} cannot be read")


def _text(what: Any, files: Files) -> str | None:
    data = files.get(what["file"])
    return None if data is None else data.decode("utf-8", "replace")


def _is(what: Any, files: Files, start: Files) -> Wrong:
    text = _text(what, files)
    return "missing" if text is None else "" if text.strip() == what["is"].strip() else "content"


def _digest(what: Any, files: Files, start: Files) -> Wrong:
    data = files.get(what["file"])
    if data is None:
        return "missing"
    return "" if hashlib.sha256(data).hexdigest() == what["sha256"].lower() else "content"


def _json(what: Any, files: Files, start: Files) -> Wrong:
    text = _text(what, files)
    if text is None:
        return "missing"
    try:
        value = json.loads(text)
        for key in what["json"]:
            value = value[key]
    except (ValueError, RecursionError, LookupError, TypeError):
        return "format"
    same = value == what["is"] and isinstance(value, bool) == isinstance(what["is"], bool)
    return "" if same else "content"


def _matches(what: Any, files: Files, start: Files) -> Wrong:
    text = _text(what, files)
    return "missing" if text is None else "" if re.search(what["matches"], text) else "content"


def _gone(what: Any, files: Files, start: Files) -> Wrong:
    return "content" if any(name in files for name in what["gone"]) else ""


def _kept(what: Any, files: Files, start: Files) -> Wrong:
    return "" if all(name in files and files[name] == start.get(name) for name in what["kept"]) else "content"


def _command(what: Any, files: Files, start: Files) -> Wrong:
    ran = Workspace(files, LIMITS).run(["sh", "-c", what["command"]])
    if ran.failed_here:
        raise RuntimeError(f"a check could not be made: {ran.reason}")
    return "" if ran.status == "ok" else "content"


KINDS: dict[str, Look] = {
    "is": _is,
    "sha256": _digest,
    "json": _json,
    "matches": _matches,
    "gone": _gone,
    "kept": _kept,
    "command": _command,
}
