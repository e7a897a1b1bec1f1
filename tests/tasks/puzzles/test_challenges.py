"""Challenges in folders: what is wrong with them, and how they are played."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sandbox.support import needs_sandbox

from assay.environments.shell.environment import Shell
from assay.environments.tools import call
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.puzzles.challenges import Challenge, draw_flag, flawed, laid_out, puzzles, read_challenge

pytestmark = needs_sandbox

HIDE = 'mkdir box; printf %s "$FLAG" | base64 > "box/$NAME"'
SOLVE = "base64 -d box/*"
GOOD: dict[str, Any] = {
    "name": "boxed",
    "competition": "demo 2024",
    "description": "A flag in a box.",
    "hide": HIDE,
    "solve": SOLVE,
}


def challenge(**other: Any) -> Challenge:
    about = {**GOOD, **other}
    return Challenge(files={"note.txt": b"look"}, **about)


def written(folder: Path, files: dict[str, str] | None = None, **other: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "challenge.json").write_text(json.dumps({**GOOD, **other}))
    for name, text in {"note.txt": "look", **(files or {})}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_is_flawed() -> None:
    sha = hashlib.sha256(b"flag{fixed}").hexdigest()
    assert flawed(challenge()) == []
    assert flawed(challenge(hide="", solve="echo 'flag{fixed}'", digest=sha)) == []
    for other, why in (
        ({"description": "Beat the checker."}, "mentions what judges"),
        ({"hide": ""}, "neither flag.sha256 nor"),
        ({"flag": "flag{placeholder????????}"}, "a pattern with 8 letters"),
        ({"flag": "flag{???????}"}, "a pattern with 8 letters"),
        ({"hide": 'echo "$FLAG" > flag.txt'}, "the flag stands in the files as it is"),
        ({"hide": "false"}, "hiding the flag failed"),
        ({"solve": "echo flag{x}"}, "the solution prints 'flag{x}'"),
        ({"hide": "", "digest": "abc"}, "no SHA-256"),
        ({"hide": "", "digest": sha, "solve": "echo no"}, "the solution prints 'no'"),
        ({"recipe": "FROM debian\nCOPY gone /\n"}, "COPY gone: there is no such file"),
        ({"recipe": "FROM debian\nEXPOSE 1\n"}, "no start command"),
        ({"recipe": "FROM debian\nCOPY . /\n", "digest": sha, "hide": "", "solve": ""}, "flag.sha256: must not be"),
    ):
        [found] = flawed(challenge(**other))
        assert why in found
    assert flawed(challenge(recipe="FROM debian\nCOPY note.txt /\n")) == []
    assert flawed(challenge(recipe="FROM debian\nCOPY note.txt /\n"), server=True) != []


def test_folders(tmp_path: Path) -> None:
    place = written(tmp_path / "a", {"sub/x.txt": "1", "Dockerfile": "FROM x", "flag.sha256": "AB12  flag\n"})
    found = read_challenge(place)
    assert set(found.files) == {"note.txt", "sub/x.txt"} and found.recipe == "FROM x" and found.digest == "ab12"
    for text in ("{", "[]", '{"name": "x"}'):
        (place / "challenge.json").write_text(text)
        with pytest.raises(UsageError, match="name and description"):
            read_challenge(place)


def test_the_tasks(tmp_path: Path) -> None:
    written(tmp_path / "c" / "one")
    written(tmp_path / "c" / "two", hide="false")
    notes = tmp_path / "notes.jsonl"
    notes.write_text(json.dumps({"competition": "demo 2024", "task": "boxed", "text": "Look into the box."}) + "\n")
    with pytest.raises(UsageError, match=r"two: hiding the flag failed"):
        puzzles(tmp_path / "c")
    source = build("tasks", {"name": "puzzles", "path": str(tmp_path / "c"), "writeups": str(notes), "skip": True})
    assert source.size == 1 and source[0].hints == ("Look into the box.",) and source[0].id == "puzzles/one"
    with pytest.raises(UsageError, match="no challenge"):
        puzzles(tmp_path)
    notes.write_text('{"competition": "x"}\n')
    with pytest.raises(UsageError, match="a row is"):
        puzzles(tmp_path / "c", notes)


def test_a_challenge_is_played(tmp_path: Path) -> None:
    """Each episode has a flag and a file name of its own; the one of another episode is wrong."""
    written(tmp_path / "one")
    task, world = puzzles(tmp_path)[0], Shell()
    seen = []
    for seed in (0, 1, 0):
        opened = world.reset(task, seed).messages[0]["content"]
        assert "A flag in a box." in opened and "note.txt (4 bytes)" in opened
        seen.append((sorted(world.space.files), world.gold()[1].calls[0].arguments["flag"]))
        assert b"flag{" not in b"".join(world.space.files.values())
    assert seen[0] == seen[2] != seen[1] and seen[0][1] != seen[1][1]
    for (_, flag), passed in ((seen[0], True), (seen[1], False)):
        world.reset(task, 0)
        world.step(call("submit", flag=f" {flag}\n"))
        assert world.verdict().passed is passed and world.verdict().parts == {"shown": 0.0}
    world.reset(task, 0)
    for action in world.gold():
        assert world.step(action).valid
    assert world.verdict().passed and world.verdict().parts == {"shown": 1.0}


def test_flags_and_layouts() -> None:
    rng = np.random.default_rng(0)
    assert draw_flag("ctf{}", rng) == "ctf{}" and len(draw_flag("a?b?", rng)) == 4
    assert draw_flag("????????????", rng) != draw_flag("????????????", rng)
    space, failed = laid_out({"a": b"1"}, 'echo "$FLAG" > "$NAME"', "f", "n")
    assert not failed and space.files == {"a": b"1", "n": b"f\n"}
    assert laid_out({"a": b"1"}, "", "f", "n")[0].files == {"a": b"1"}
    assert "2" in laid_out({}, "exit 2", "f", "n")[1]
