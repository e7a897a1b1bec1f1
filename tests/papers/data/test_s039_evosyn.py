"""EvoSyn: strategies by hand, how they are evolved, and what they make of problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claimed import learned
from sandbox.support import needs_sandbox
from suite_programs import CRASHES, LARGEST, LAST, PROBLEM, Scripted
from tasks.making.told import Told

from assay.errors import UsageError
from assay.papers.data.s039_evosyn import SeedProblem, Trials, evolve, fitness, holds, unsettled
from assay.tasks.making.maker import Made, Maker, Model
from assay.tasks.making.rankings import COUNTED, DISCRIMINATING, Ranking, ranked
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.work import Pipeline
from assay.types import Task
from assay.verify.kind import KindVerifier

M = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0]], dtype=bool)


@needs_sandbox
def test_the_strategies_worked_by_hand() -> None:
    """sq = 1, 2/3, 1/3, 1/3; tq = .58333 - 0, .83333 - .33333, 1 - .44444: the order is 0, 2, 1."""
    found = ranked(DISCRIMINATING, [M, M[:2]])
    assert not isinstance(found, str)
    assert found[0].programs.tolist() == pytest.approx([1, 0.6666667, 0.3333333, 0.3333333])
    assert found[0].tests.tolist() == pytest.approx([0.5833333, 0.5, 0.5555556])
    assert found[0].order() == [0, 2, 1] and found[0].best == 0 and len(found[1].programs) == 2
    [counted] = ranked(COUNTED, [M])
    assert counted.programs.tolist() == [3, 2, 1, 1] and counted.tests.tolist() == [4, 2, 1]  # type: ignore[union-attr]


def test_what_makes_a_strategy_good() -> None:
    """The second test tells right from wrong; the first accepts everything, the wrong last program too."""
    right = np.array([True, True, False, False])
    problem = SeedProblem(M, right)
    programs = np.array([3.0, 2.0, 1.0, 0.0])
    assert holds(Ranking(programs, np.array([0.0, 1.0, 0.0])), problem, 2)
    assert not holds(Ranking(programs, np.array([1.0, 0.0, 0.0])), problem), "its test accepts the wrong last program"
    assert holds(Ranking(programs, np.array([0.0, 0.0, 1.0])), problem, 1), "one at each end is judged rightly"
    assert not holds(Ranking(programs, np.array([0.0, 0.0, 1.0])), problem, 2), "the second fails it"
    assert not holds(Ranking(-programs, np.array([0.0, 1.0, 0.0])), problem), "its first program is wrong"


@needs_sandbox
def test_strategies_that_cannot_be_used() -> None:
    for source, why in (
        ("def rank(passed):\n    return [1], [1]\n", "does not score every program"),
        ("def rank(passed):\n    return [0] * 4, [float('nan')] * 3\n", "not finite"),
        ("def rank(passed):\n    return passed[9]\n", "IndexError"),
        ("print('hello')\ndef rank(passed):\n    return [0] * 4, [0] * 3\n", "not what it returns"),
        ("print('[]')\nraise SystemExit\n", "not what it returns"),
        ("print('[[[1' + 400 * '0' + '], [1]]]')\nraise SystemExit\n", "not what it returns"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 9))\n", "rror"),
    ):
        found = ranked(source, [M])
        assert isinstance(found, str) and why in found, source
    with pytest.raises(UsageError, match="first strategy cannot be run"):
        evolve([SeedProblem(M, M[:, 1])], Scripted(), first="x = 1")
    with pytest.raises(UsageError, match="each 1 or more"):
        evolve([], Scripted())


def patch(old: str, new: str) -> str:
    return f"<patch>\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n</patch>"


@needs_sandbox
def test_evolution_finds_a_better_one() -> None:
    problems = [SeedProblem(M, np.array([True, True, False, False]))] * 2
    assert fitness(COUNTED, problems, 2) == 0, "the test that most programs pass accepts everything"
    engine = Scripted(
        "I do not know.",
        patch("    no such line", "    x"),
        patch("    tests = [sum(column) for column in zip(*passed)]", "    tests = [0] * 2"),
        patch(
            "    tests = [sum(column) for column in zip(*passed)]",
            "    tests = [-abs(sum(c) - len(c) / 2) for c in zip(*passed)]",
        ),
        patch("    return programs, tests", "    return programs, [t + 1 for t in tests]"),
    )
    found = evolve(problems, engine, iterations=5, ends=2, seed=3)
    assert found.history == (0.0, 0.0, 0.0, 1.0, 1.0) and found.best.fitness == 1 and "len(c) / 2" in found.best.source
    assert len(found.faults) == 3 and found.faults[0] == "there is no patch"
    assert "occurs 0 times" in found.faults[1] and "does not score every" in found.faults[2]
    assert "a share of 0.000" in engine.asked[0] and COUNTED in engine.asked[0] and len(set(engine.seeds)) == 5


def test_zero_variance_is_pruned() -> None:
    ones, steps = np.ones(3), np.arange(3.0)
    assert unsettled(Ranking(ones, steps)) == "all programs score equal"
    assert unsettled(Ranking(steps, ones)) == "all tests score equal" and unsettled(Ranking(steps, steps)) == ""


def trials(programs: list[str], tests: list[tuple[str, str]], **options: Any) -> Made:
    def answer(prompt: str, j: int) -> str:
        if "<program>" in prompt:
            return f"<program>\n{programs[j]}\n</program>"
        return f"<input>{tests[j][0]}</input><output>{tests[j][1]}</output>"

    step = Trials(programs=len(programs), tests=len(tests), **options)
    models = {"writer": Model("m", Told(answer))}
    return Maker(Pipeline("one", [("trials", step)]), models).make([Task("p", PROBLEM.statement)])


@needs_sandbox
def test_problems_are_made_with_their_tests() -> None:
    """Largest and the one that crashes on five numbers pass most; the last test is wrong, the first accepts all."""
    tests = [("1\n3", "3"), ("2\n2 1", "2"), ("2\n5 4", "5"), ("5\n9 1 1 1 1", "9"), ("1\n4", "5")]
    made = trials([LAST, LARGEST, CRASHES], tests, keep=2)
    [task] = made.tasks
    assert task.kind == "code" and task.reference["inputs"] == ["2\n2 1\n", "2\n5 4\n"]
    assert task.solution is not None and "max(a)" in task.solution and "ValueError" not in task.solution
    assert task.meta["passed"] == [[1, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]
    judge = KindVerifier()
    assert judge(task, task.solution).passed and judge(task, f"```python\n{LAST}\n```").passed is False
    loose = trials([LAST, LARGEST, CRASHES], tests, keep=1, strict=False)
    assert loose.tasks[0].reference["inputs"] == ["1\n3\n"], "the quirk: what all pass comes first"
    alike = trials([LAST, LARGEST], tests[:1] + tests[-1:])
    assert alike.counts["trials"].dropped == {"all programs score equal": 1}
    few = trials([LAST, LAST], tests[:2])
    assert few.counts["trials"].dropped == {"fewer than two programs or tests are written": 1}


def test_it_is_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(COUNTED)
    made = read_pipeline("S039", {"strategy": str(tmp_path / "own.py"), "programs": 4, "tests": 5})
    [(_, step)] = made.steps
    assert (step.strategy, step.programs, step.tests) == (COUNTED, 4, 5)
    with pytest.raises(UsageError, match="cannot be read"):
        read_pipeline("S039", {"strategy": str(tmp_path / "none.py")})
    with pytest.raises(UsageError, match="are the fewest"):
        read_pipeline("S039", {"programs": 1})


@needs_sandbox
def test_the_evolved_strategy_holds_on_other_problems() -> None:
    evolved, counted = learned("S039", "evolved"), learned("S039", "counted")
    assert evolved["held out"] > counted["held out"] + 0.1 and evolved["seen"] >= counted["seen"]
