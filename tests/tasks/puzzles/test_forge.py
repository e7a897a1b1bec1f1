"""Challenges that models make: what they say is tried, what is wrong goes back, and what is made is played."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from sandbox.support import needs_sandbox
from tasks.making.told import Told
from tasks.puzzles.test_image import FILES, RECIPE

from assay.audit.environment import audit_environment
from assay.environments.hosted.worlds import Worlds
from assay.environments.shell.service import Challenges
from assay.environments.tools import call
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.making.maker import Made, Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import write_tasks
from assay.tasks.making.work import Pipeline
from assay.tasks.puzzles.challenges import Challenge
from assay.tasks.puzzles.forge import Forge, served_wrong
from assay.tasks.puzzles.image import built
from assay.types import Task

pytestmark = needs_sandbox
DOOR = {"description": "A door.", "service": True, "flag": "flag{????????}", "solve": "sesame"}
BOX = {
    "description": "A flag in a box.",
    "service": False,
    "flag": "flag{????????????}",
    "hide": 'printf %s "$FLAG" | base64 > box',
    "solve": "base64 -d box",
}


def left(digest: str = "", **files: bytes) -> Task:
    known = {name: base64.b64encode(data).decode() for name, data in (files or FILES).items()}
    return Task("artefacts/door", "door", kind="none", meta={"files": known, "digest": digest})


def about(said: Any) -> str:
    return f"<about>{json.dumps(said)}</about>"


def forged(replies: list[str], task: Task, tries: int = 10) -> tuple[Made, list[str]]:
    asked: list[str] = []

    def says(prompt: str, _: int) -> str:
        asked.append(prompt)
        return replies[len(asked) - 1]

    return Maker(Pipeline("S143", [("forge", Forge(tries))]), {"writer": Model("told", Told(says))}).make([task]), asked


def test_what_is_wrong_goes_back() -> None:
    replies = [
        "I cannot say.",
        about({**DOOR, "description": "Beat the checker."}),
        about({**DOOR, "flag": "flag{placeholder????????}"}),
        about({**DOOR, "solve": ""}),
        about(DOOR),
        "<recipe>FROM windows</recipe>",
        f"<recipe>{RECIPE.replace('EXPOSE 1337', '')}</recipe>",
        f"<recipe>{RECIPE.replace('RUN apt', 'RUN exit 3 && apt')}</recipe>",
        f"<recipe>{RECIPE.replace('/srv/server.py', '/srv/none.py')}</recipe>",
        f"<recipe>{RECIPE}</recipe>",
    ]
    made, asked = forged(replies, left())
    assert len(asked) == 10 and "A door." in asked[5]
    for k, why in enumerate(
        ("", "mentions what judges", "a pattern with 8 letters", "it has no solution", "", "not one of ubuntu")
    ):
        if why:
            assert f"written again: {why}" in asked[k + 1] or why in asked[k + 1]
    assert "no port is exposed" in asked[7] and "exit code 3" in asked[8] and "could not be visited" in asked[9]
    [task] = made.tasks
    assert task.id == "artefacts/door/forge-0" and task.meta["recipe"] == RECIPE.strip() and task.meta["files"] == {}
    assert task.prompt == "A door.\n\nVisit the service with the tool visit, find the flag and submit it."


def test_a_service_gives_its_flag_to_the_solution_alone() -> None:
    image, _ = built(RECIPE, FILES)
    right = Challenge("door", "", "A door.", FILES, flag="flag{????????}", solve="sesame")
    assert served_wrong(image, right) == []
    for server, why in (
        ("print(open('/flag').read())", "the flag is given to who sends ''"),
        ("print('flag{12345678}')", "without the flag"),
        ("input()\nprint(open('/flag').read())", "the flag is given to who sends 'flag"),
        ("import sys; sys.exit('broken')", "could not be visited: broken"),
    ):
        other, _ = built(RECIPE, {**FILES, "server.py": server.encode()})
        assert why in served_wrong(other, right)[0]
    bare, _ = built(RECIPE.partition("ENTRYPOINT")[0], FILES)
    assert served_wrong(bare, right) == ["no start command"]


def test_a_service_is_visited(tmp_path: Path) -> None:
    made, _ = forged([about(DOOR), f"<recipe>{RECIPE}</recipe>"], left())
    write_tasks(tmp_path / "made.jsonl", made.tasks)
    task = build("tasks", {"name": "made", "path": str(tmp_path / "made.jsonl")})[0]
    world = Challenges("puzzles", commands=4)
    for seed in (0, 1):
        world.reset(task, seed)
        assert world.space.files == {}
        plan = world.gold()
        step = world.step(plan[0])
        flag = step.observation.messages[0]["content"].splitlines()[1]
        assert len(flag) == len("flag{????????}") and flag == plan[1].calls[0].arguments["flag"]  # type: ignore[index]
        world.step(plan[1])
        assert world.verdict().passed and world.verdict().parts == {"shown": 1.0}
    world.reset(task, 2)
    assert "no" in world.step(call("visit", text="x\n")).observation.messages[0]["content"]
    assert not world.step(call("visit", text="x" * 5000)).valid
    world.step(call("submit", flag=flag))
    assert world.verdict().passed is False, "another flag is drawn in each episode"
    world.reset(task, 3)
    for _ in range(4):
        assert world.step(call("visit", text="")).valid
    assert not world.step(call("visit", text="")).valid


def test_files_alone(tmp_path: Path) -> None:
    bad = {**BOX, "solve": "echo no"}
    made, asked = forged([about({**BOX, "solve": ""}), about(bad), about(BOX)], left(note=b"look"))
    assert "it has no solution" in asked[1] and "which is not the flag" in asked[2]
    [task] = made.tasks
    world = Challenges("puzzles")
    world.reset(task, 0)
    assert not world.step(call("visit", text="x")).valid
    for action in world.gold():
        world.step(action)
    assert world.verdict().passed
    sha = hashlib.sha256(b"flag{fixed}").hexdigest()
    own = {"description": "It is there.", "service": False, "solve": "rev note"}
    made, asked = forged([about({**own, "service": True}), about(own)], left(sha, note=b"}dexif{galf"))
    assert "no service" in asked[1] and made.tasks[0].meta["digest"] == sha and sha in asked[0]


def test_what_is_given_up_and_what_is_no_challenge(tmp_path: Path) -> None:
    made, _ = forged(["?"] * 2, left(), tries=2)
    assert list(made.counts["forge"].dropped) == ["nothing that can be played is said of it"]
    made, asked = forged([about(DOOR), "?", "?"], left(), tries=2)
    assert list(made.counts["forge"].dropped) == ["no recipe that holds is written"] and len(asked) == 3
    with pytest.raises(UsageError, match="has no files"):
        Forge().check([Task("t", "")])
    with pytest.raises(UsageError, match="tries 0"):
        Forge(0)
    with pytest.raises(UsageError, match="no folder of challenges"):
        build("tasks", {"name": "artefacts", "path": str(tmp_path)})
    (tmp_path / "door").mkdir()
    (tmp_path / "door" / "a.txt").write_text("x")
    (tmp_path / "door" / "flag.sha256").write_text("AB  flag.txt\n")
    [task] = [build("tasks", {"name": "artefacts", "path": str(tmp_path)})[0]]
    assert task.meta == {"files": {"a.txt": "eA=="}, "digest": "ab"} and task.id == "artefacts/door"
    assert read_pipeline("S143", {"tries": 3}).steps == (("forge", Forge(3)),)


@pytest.mark.slow
def test_its_audit_passes() -> None:
    made, _ = forged([about(DOOR), f"<recipe>{RECIPE}</recipe>"], left())
    worlds = Worlds({"name": "challenges", "kind": "puzzles", "commands": 4}, 1)
    try:
        findings = list(audit_environment(worlds, [*made.tasks, worlds.here().tasks()[0]]))
    finally:
        worlds.close()
    assert [f for f in findings if not f.passed] == []
