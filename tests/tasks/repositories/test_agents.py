"""Models that make a pull request a task: who looks, who writes, who has to write again, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sandbox.support import needs_sandbox
from tasks.making.told import Told
from tasks.repositories.pull_requests import GOOD, request

from assay import catalogue
from assay.environments.repository.environment import Repository
from assay.errors import RunError, UsageError
from assay.registry import build
from assay.sandbox import Outcome, Sandbox
from assay.tasks.making.maker import Made, Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import write_tasks
from assay.tasks.making.work import Pipeline
from assay.tasks.repositories.agents import Build, looked, prepared
from assay.tasks.repositories.examine import PullRequest
from assay.tasks.repositories.source import task_of
from assay.types import Task

pytestmark = needs_sandbox
RUNS = '"$PYTHON" -m unittest tests.test_add\necho "OPENSWE_EXIT_CODE=$?"'
# The tests read a file that nobody has made yet.
NEEDS = request(
    script="",
    tests={
        "tests/__init__.py": "",
        "tests/test_add.py": GOOD.tests["tests/test_add.py"] + "        open('data/made.txt').close()\n",
    },
)


class Cast:
    """Says for each role, known by how it is asked, the next of its lines, and keeps what it was asked."""

    def __init__(self, **lines: list[str]):
        self.lines, self.asked = lines, list[tuple[str, str]]()

    def __call__(self, prompt: str, _: int) -> str:
        begins = {
            "You find": "look",
            "Write a bash script that pre": "setup",
            "Write a bash": "script",
            "Two": "analyst",
        }
        role = next(role for words, role in begins.items() if prompt.startswith(words))
        self.asked.append((role, prompt))
        return (
            self.lines[role].pop(0) if self.lines.get(role) else {"analyst": "accept"}.get(role, "<digest>d</digest>")
        )


def built(says: Callable[[str, int], str], of: PullRequest = NEEDS, **options: Any) -> Made:
    model = Model("told", Told(says))
    models = {"writer": model, "judge": model}
    return Maker(Pipeline("S172", [("build", Build(**options))]), models).make([task_of(of, 0)])


def test_who_has_to_mend_it_writes_again() -> None:
    cast = Cast(
        look=["list", "read kit/add.py", "<digest>The tests read data/made.txt.</digest>"],
        setup=[
            "<setup>true</setup>",
            "<setup>mkdir data; exit 3</setup>",
            "<setup>mkdir data; echo x > data/made.txt</setup>",
        ],
        script=["no script", f"<script>{RUNS}</script>"],
        analyst=["It cannot find a file.\nenvironment: data/made.txt has to be made", "All is well.\naccept"],
    )
    [made] = built(cast).tasks
    roles = [role for role, _ in cast.asked]
    assert roles == ["look"] * 3 + ["setup", "script", "script", "analyst", "setup", "setup", "analyst"]
    asked = dict(enumerate(prompt for _, prompt in cast.asked))
    assert "> list\nkit/" in asked[1] and "return a - b" in asked[2] and "The tests read data/made.txt." in asked[3]
    assert (
        "kit/add.py, tests/__init__.py, tests/test_add.py" in asked[3] and "-m unittest -v tests.__init__" in asked[4]
    )
    assert (
        "no script is written" in asked[5] and "FileNotFoundError" in asked[6] and "By rule: its tests fail" in asked[6]
    )
    assert "\ntrue\n" in asked[7] and "data/made.txt has to be made" in asked[7]
    assert "did not end well" in asked[8] and "By rule: all is well" in asked[9]
    assert made.meta["files"]["data/made.txt"] == "x\n" and made.meta["collected"] == 1 and made.meta["rounds"] == 4
    assert made.meta["script"] == RUNS and made.id == "repositories/1/build-0"


def test_what_is_made_is_played(tmp_path: Path) -> None:
    cast = Cast(setup=["<setup>mkdir data; echo x > data/made.txt</setup>"], script=[f"<script>{RUNS}</script>"])
    write_tasks(tmp_path / "made.jsonl", built(cast).tasks)
    made = build("tasks", {"name": "made", "path": str(tmp_path / "made.jsonl")})[0]
    world = Repository()
    world.reset(made, 0)
    assert world.verdict().passed is False
    for action in world.gold():
        assert world.step(action).valid
    assert world.verdict().passed is True


def dropped(says: Callable[[str, int], str], of: PullRequest = NEEDS, **options: Any) -> list[str]:
    found = built(says, of, **options)
    assert not found.tasks
    return list(found.counts["build"].dropped)


def test_what_is_of_no_use() -> None:
    setup, script = ["<setup>mkdir -p data; touch data/made.txt</setup>"] * 9, [f"<script>{RUNS}</script>"] * 9
    # An analyst cannot accept what the rules refuse, and can refuse what they accept.
    cast = Cast(setup=setup, script=["<script>echo OPENSWE_EXIT_CODE=0</script>"] * 2, analyst=["accept"] * 2)
    assert dropped(cast, rounds=2) == ["not built in all rounds"]
    assert "stands in it" in cast.asked[-2][1]
    cast = Cast(setup=setup, script=script, analyst=["script: it shows nothing"] * 2)
    assert dropped(cast, rounds=2) == ["not built in all rounds"]
    assert "had to be written again: it shows nothing" in cast.asked[4][1]
    cast = Cast(setup=setup, script=script, analyst=["**task: nonsense**"])
    assert dropped(cast) == ["of no use: says the analyst"]
    wrong = request(fix={"kit/add.py": "def add(a, b):\n    return 0\n"})
    assert dropped(Cast(setup=setup, script=script), wrong) == ["of no use: its tests fail with the fix"]
    # Who says nothing that can be read is asked again, and no more than that.
    assert dropped(Cast(setup=["?"] * 3), rounds=3, looks=2) == ["not built in all rounds"]
    with pytest.raises(UsageError, match="is no pull request"):
        Build().check([Task("t", "")])
    for options in ({"rounds": 0}, {"looks": 0}):
        with pytest.raises(UsageError, match="step build"):
            Build(**options)


def test_what_an_explorer_sees() -> None:
    assert looked(GOOD, "I look.\n`list kit`") == "> list kit\n__init__.py, add.py"
    assert looked(GOOD, "list .") == "> list .\nkit/" and "no such folder" in looked(GOOD, "list x")
    assert looked(GOOD, "read kit/add.py").endswith("return a - b\n") and "no such file" in looked(GOOD, "read x")
    assert looked(GOOD, "search a - b") == "> search a - b\nkit/add.py:2: return a - b"
    assert "stands nowhere" in looked(GOOD, "search zzz") and "none of list" in looked(GOOD, "") == looked(GOOD, " ")


def test_what_a_setup_may_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prepared(GOOD, "true") == GOOD.files
    assert prepared(GOOD, '"$PYTHON" -c "import kit.add"; echo 1 > n') == {**GOOD.files, "n": "1\n"}
    for setup, why in (
        ("echo x > kit/add.py", "touches kit/add.py"),
        ("mkdir tests; touch tests/__init__.py", "touches tests/__init__.py"),
        ("rm kit/add.py", "touches kit/add.py"),
        ("printf '\\xff' > b", "no text"),
        ("false; true", "did not end well"),
    ):
        assert why in prepared(GOOD, setup)
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: Outcome("infrastructure", reason="gone"))
    with pytest.raises(RunError, match="the sandbox failed on 1: gone"):
        prepared(GOOD, "true")


def test_a_recipe_for_tasks() -> None:
    made = read_pipeline("S172", {"rounds": 2})
    assert made.steps == (("build", Build(2, 8)),) and catalogue.find("S172").name == "OpenSWE"
