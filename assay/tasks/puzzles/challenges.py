"""Challenges in folders, each with its files and ``challenge.json``, checked and made tasks for ``shell``."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.sandbox.workspace import Workspace
from assay.tasks.listed import Listed
from assay.tasks.puzzles.recipe import issues
from assay.tasks.puzzles.writeups import Writeup, matched
from assay.types import Task

ABOUT, RECIPE, DIGEST = "challenge.json", "Dockerfile", "flag.sha256"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
TOLD = re.compile(r"checker|flag\.sha256|check_flag", re.IGNORECASE)
"""What a description must not say: who judges the flag, and by what."""
PLACEHOLDER = re.compile(r"placeholder|example|redacted|fake|your_?flag|dummy|\.\.\.|x{4}", re.IGNORECASE)
LEAST = 8
"""Letters of a flag that are drawn, at least."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a folder says.

    Attributes:
        name, competition, description: of the challenge.
        files: its own, by relative path.
        hide: a command of sh that puts the flag, ``$FLAG``, into the files, with names that may be made of ``$NAME``,
            which is drawn too; empty where the files have a flag of their own.
        flag: how a flag looks, each ``?`` of it a letter that is drawn.
        digest: SHA-256 of a flag that the files have themselves.
        solve: a command that prints the flag; empty where none is known.
        recipe: of a container; empty for none.
    """

    name: str
    competition: str
    description: str
    files: Mapping[str, bytes]
    hide: str = ""
    flag: str = "flag{????????????}"
    digest: str = ""
    solve: str = ""
    recipe: str = ""


def read_challenge(folder: Path) -> Challenge:
    """Return the challenge of a folder.

    Raises:
        UsageError: it has no ``challenge.json`` that can be read.
    """
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        name, description = str(about["name"]), str(about["description"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / ABOUT}: no object with name and description ({error})") from None
    own = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
    paths = {p.relative_to(folder).as_posix(): p for p in own}
    files = {path: place.read_bytes() for path, place in paths.items() if path not in (ABOUT, RECIPE, DIGEST)}
    digest = paths[DIGEST].read_text(encoding="utf-8").split()[:1] if DIGEST in paths else []
    return Challenge(
        name,
        str(about.get("competition", "")),
        description,
        files,
        **{key: str(about[key]) for key in ("hide", "flag", "solve") if key in about},
        digest=digest[0].lower() if digest else "",
        recipe=paths[RECIPE].read_text(encoding="utf-8") if RECIPE in paths else "",
    )


def draw_flag(template: str, rng: np.random.Generator) -> str:
    """Return a flag: the template with every ``?`` drawn."""
    return re.sub(r"\?", lambda _: LETTERS[int(rng.integers(len(LETTERS)))], template)


def flawed(challenge: Challenge, server: bool | None = None) -> list[str]:
    """Return what is wrong with a challenge, by its text and by trying it in the sandbox; empty if it can be played.

    It is set twice: the flags must differ, stand nowhere in the files as they are, and be what ``solve`` prints.

    Args:
        server: whether its recipe has to offer a service; by default if it exposes a port or starts something.

    Raises:
        SandboxUnavailable: this machine cannot run programs in isolation.
    """
    found = []
    if TOLD.search(challenge.description):
        found.append("the description mentions what judges the flag")
    if challenge.recipe:
        wants = bool(re.search(r"(?im)^\s*(EXPOSE|CMD|ENTRYPOINT)\b", challenge.recipe)) if server is None else server
        found += issues(challenge.recipe, {**challenge.files, **({DIGEST: b""} if challenge.digest else {})}, wants)
    if challenge.digest:
        if not re.fullmatch(r"[0-9a-f]{64}", challenge.digest):
            return [*found, f"{DIGEST} holds no SHA-256"]
        return found + (_tried(challenge, "") if challenge.solve else [])
    if not challenge.hide:
        return [*found, f"neither {DIGEST} nor a command that hides a flag"]
    if challenge.flag.count("?") < LEAST or PLACEHOLDER.search(challenge.flag):
        return [*found, f"flag {challenge.flag!r}: a pattern with {LEAST} letters to be drawn, ?, is wanted"]
    for seed in range(2):
        found += _tried(challenge, draw_flag(challenge.flag, np.random.default_rng([seed, 7])), f"n{seed}")
    return list(dict.fromkeys(found))


def _tried(challenge: Challenge, flag: str, name: str = "") -> list[str]:
    space, failed = laid_out(challenge.files, challenge.hide, flag, name)
    if failed:
        return [f"hiding the flag failed: {failed}"]
    if flag and any(flag.encode() in data for data in space.files.values()):
        return ["the flag stands in the files as it is"]
    if challenge.solve:
        told = space.run(["sh", "-c", challenge.solve]).stdout.decode("utf-8", "replace").strip()
        wanted = hashlib.sha256(flag.encode()).hexdigest() if flag else challenge.digest
        if hashlib.sha256(told.encode()).hexdigest() != wanted:
            return [f"the solution prints {told[:80]!r}, which is not the flag"]
    return []


def laid_out(files: Mapping[str, bytes], hide: str, flag: str, name: str) -> tuple[Workspace, str]:
    """Return the folder of a challenge with the flag in it, and why it could not be made, if so."""
    space = Workspace(files)
    if not hide:
        return space, ""
    outcome = space.run(["sh", "-e", "-c", hide], environment={"FLAG": flag, "NAME": name})
    said = outcome.stderr.decode("utf-8", "replace")[-200:]
    return space, "" if outcome.status == "ok" else f"{outcome.reason} {said}".strip()


@part("tasks", "puzzles")
def puzzles(path: Path, writeups: Path | None = None, threshold: float = 0.9, skip: bool = False) -> Listed:
    """Return the challenges of a folder's subfolders, to be played in the environment ``shell``.

    Each is checked first, see :func:`flawed`. Its write-ups are hints, which a curriculum may show while episodes are
    collected. A challenge that hides its flag by a command gets another one, and another ``$NAME``, in every episode.

    Args:
        path: of the folder.
        writeups: a file of rows ``{"competition", "task", "text"}``.
        threshold: of their score, 0.4 similarity of the competitions' names + 0.6 of the tasks'.
        skip: leave out what is flawed, rather than refuse all.

    Raises:
        UsageError: nothing there, or a challenge that is flawed.
    """
    folders = sorted(place.parent for place in Path(path).glob(f"*/{ABOUT}"))
    known = [_writeup(row, where) for where, row in read_rows(writeups)] if writeups is not None else []
    tasks = []
    for folder in folders:
        challenge = read_challenge(folder)
        found = flawed(challenge)
        if found and not skip:
            raise UsageError(f"{folder}: {'; '.join(found)}")
        if not found:
            hints = [w.text for w in matched(challenge.competition, challenge.name, known, threshold)]
            tasks.append(_task(challenge, folder.name, hints))
    if not tasks:
        raise UsageError(f"{path}: no challenge that can be played, a subfolder with {ABOUT}")
    return Listed(tasks)


def _writeup(row: Any, where: str) -> Writeup:
    if not isinstance(row, dict) or not {"competition", "task", "text"} <= set(row):
        raise UsageError(f"{where}: a row is {{'competition', 'task', 'text'}}")
    return Writeup(str(row["competition"]), str(row["task"]), str(row["text"]))


def asked_of(description: str, service: bool = False) -> str:
    """Return what a player is told."""
    how = "Visit the service with the tool visit" if service else "Look around with the tool run"
    return f"{description}\n\n{how}, find the flag and submit it."


def encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return files as a task's meta has them."""
    return {name: base64.b64encode(data).decode() for name, data in files.items()}


def _task(challenge: Challenge, id: str, hints: list[str]) -> Task:
    return Task(
        id=f"puzzles/{id}",
        prompt=asked_of(challenge.description),
        reference={"name": challenge.name, "competition": challenge.competition},
        kind="none",
        hints=tuple(hints),
        meta={
            "job": "given",
            "files": encoded(challenge.files),
            "hide": challenge.hide,
            "flag": challenge.flag,
            "digest": challenge.digest,
            "solve": challenge.solve,
        },
    )
