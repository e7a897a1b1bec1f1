"""EvoSyn: strategies by hand, how they are evolved, and what they make of problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claimed import learned
from sandbox.support import needs_sandbox
from suite_programs import CRASHES, LARGEST, LAST, PROBLEM, Scripted
from tasks.making.told import Told

from assay.errors import UsageError
from assay.papers.data.s039_evosyn import Evolved, SeedProblem, Strategy, Trials, evolve, fitness, holds, unsettled
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
    assert holds(Ranking(programs, np.array([0.0, 0.0, 1.0])), problem), "one at each end unless told"
    assert not holds(Ranking(-programs, np.array([0.0, 1.0, 0.0])), problem), "its first program is wrong"
    lone = SeedProblem(M, np.array([True, False, False, False]))
    assert holds(Ranking(programs, np.array([0.0, 0.0, 1.0])), lone, 2), "the second may be wrong, and is judged so"


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
    for name in ("iterations", "population", "archive", "islands"):
        with pytest.raises(UsageError, match="each 1 or more"):
            evolve([SeedProblem(M, M[:, 1])], Scripted(), **{name: 0})
    least = evolve([SeedProblem(M, M[:, 1])], Scripted("no"), 1, 1, 1, 1)
    assert len(least.history) == 1


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


@needs_sandbox
def test_eight_programs_at_each_end_are_looked_at() -> None:
    """Of 18 programs the test is wrong of the ninth or tenth, which is nobody's business, or of the eighth."""
    source = "def rank(passed):\n    return [-i for i in range(len(passed))], [0] * len(passed[0])\n"
    right = np.arange(18) < 9
    for wrong, good in ((8, 1.0), (9, 1.0), (7, 0.0), (10, 0.0)):
        problems = [SeedProblem((right ^ (np.arange(18) == wrong))[:, None], right)]
        assert fitness(source, problems) == good
        assert evolve(problems, Scripted("no"), iterations=1, first=source).history == (good,)


def test_cells_of_the_archive() -> None:
    """By eight lines, and by two branches; the last of each are for all that is longer, or has more."""
    for lines, branches, cell in ((7, 1, (0, 0)), (8, 2, (1, 1)), (16, 5, (2, 2)), (31, 6, (3, 3)), (99, 99, (4, 3))):
        source = "\n".join(["x"] * (lines - 1) + ["if " * branches])
        assert Strategy(source, 0.0).cell == cell


RANK = """def rank(passed):
    good = 0
    n = len(passed[0]) - 2
    return [1, 0], [int(n < good), int(n >= good)] + [0] * n
"""
"""Puts the right test first on so many of the problems below."""
FOUR = [SeedProblem(np.pad(np.eye(2, dtype=bool), ((0, 0), (0, n))), np.array([True, False])) for n in range(4)]


def child(good: int, more: str = "") -> str:
    """A reply that makes any parent good on so many of the four; with ``more`` it has a cell of its own."""
    line = "    n = len(passed[0]) - 2"
    return patch(line, f"    good = {good}\n{more}{line}")


OTHER = "    # if if \n"
"""Two branches more."""
NOTHING = "I do not know."


def bred(replies: list[str], more: int, **options: Any) -> tuple[Evolved, list[str]]:
    """What is evolved from some replies, and after them ``more`` of no use; and the fitness of each one's parent."""
    engine = Scripted(*replies, *[NOTHING] * more)
    found = evolve(FOUR, engine, len(replies) + more, first=RANK, **options)
    return found, [p.partition("a share of ")[2][:5] for p in engine.asked]


@needs_sandbox
def test_parents_are_of_the_elite() -> None:
    replies = [child(1, OTHER), child(2, OTHER), child(3, OTHER), child(4, 8 * "\n")]
    engine = Scripted(*replies, *[NOTHING] * 8)
    found = evolve(FOUR, engine, 12, first=RANK, exploit=1.0)
    assert found.history == (0.25, 0.5, 0.75, *[1.0] * 9)
    parents = [p.partition("a share of ")[2][:5] for p in engine.asked]
    assert parents == ["0.000", "0.250", "0.500", "0.750", *["1.000"] * 8], "a fifth of five"
    others = [p.partition("did well")[2].partition("## Reply")[0] for p in engine.asked]
    assert others[0].split() == ["(none)"] and others[1].split() == RANK.split()
    assert "good = 3" in others[-1] and "good = 4" not in others[-1] and others[-1].count("def rank") == 2
    assert set(bred([child(4, OTHER)], 20, exploit=1.0, elites=1.0)[1][1:]) == {"0.000", "1.000"}
    # Three in ten are of the island, not of the archive: of the second and third, where it all began.
    assert "0.000" in bred([child(4)], 20)[1][1:]


@needs_sandbox
def test_twenty_iterations_unless_told() -> None:
    engine = Scripted(*[NOTHING] * 20)
    assert evolve(FOUR, engine, first=RANK).history == (0.0,) * 20 and engine.seeds == list(range(20))


@needs_sandbox
def test_the_least_fit_of_an_island_make_room() -> None:
    """Islands take turns, and parents are of theirs alone; two live on each of two, or one on a single one."""
    _, parents = bred([child(1), NOTHING, child(3), NOTHING, child(2)], 21, exploit=0.0, islands=2, population=4)
    assert set(parents[6::2]) == {"0.750", "0.500"} and set(parents[1::2]) == {"0.000"}
    _, parents = bred([child(2), child(1)], 8, exploit=0.0, islands=1, population=1, archive=1)
    assert parents == ["0.000", *["0.500"] * 9]


@needs_sandbox
def test_the_archive_holds_the_fittest() -> None:
    """With room for one a less fit one of another cell goes at once, and one as fit does not take its place."""
    found, parents = bred([child(2, OTHER), child(1, OTHER), child(2)], 1, exploit=1.0, archive=1)
    assert found.history == (0.5,) * 4 and parents == ["0.000", "0.500", "0.500", "0.500"]
    assert found.best.source.count("good = ") == 2


def test_zero_variance_is_pruned() -> None:
    ones, steps = np.ones(3), np.arange(3.0)
    assert unsettled(Ranking(ones, steps)) == "all programs score equal"
    assert unsettled(Ranking(steps, ones)) == "all tests score equal" and unsettled(Ranking(steps, steps)) == ""


Case = tuple[str, str | None]


def trials(programs: list[str], tests: Sequence[Case | list[Case]], **options: Any) -> Made:
    def answer(prompt: str, j: int) -> str:
        if "<program>" in prompt:
            return f"<program>\n{programs[j]}\n</program>"
        cases = [tests[j]] if isinstance(tests[j], tuple) else tests[j]
        shown = (f"<input>{i}</input>" + ("" if o is None else f"<output>{o}</output>") for i, o in cases)
        return "Some cases:\n" + "\n".join(shown)

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
    [task] = trials([LAST, LARGEST, CRASHES], tests, keep=5, strict=False).tasks
    assert len(task.reference["inputs"]) == 4 and judge(task, task.solution).passed, "not the one it fails"
    assert trials([LAST, LARGEST], [tests[0], tests[-1]]).counts["trials"].dropped == {"all programs score equal": 1}
    alike = trials([LAST, LARGEST], tests[:1] + tests[-1:])
    assert alike.counts["trials"].dropped == {"all programs score equal": 1}
    for few in (trials([LAST, LAST], tests[:2]), trials([LAST, LARGEST], [*tests[:1], ("2\n2 1", None)])):
        assert few.counts["trials"].dropped == {"fewer than two programs or tests are written": 1}


@needs_sandbox
def test_a_test_is_all_cases_of_a_reply() -> None:
    """A program passes it by passing every case; a case that has no output makes the whole reply none."""
    both: list[Case] = [("1\n3", "3"), ("2\n2 1", "2")]
    wide: list[Case] = [("2\n2 1", "2"), ("5\n9 1 1 1 1", "9")]
    tests: list[Case | list[Case]] = [both, wide, both[:1], wide[1:]]
    [task] = trials([LAST, LARGEST, CRASHES], [*tests, [*both, ("1\n4", None)], list(both)]).tasks
    assert task.meta["passed"] == [[0, 0, 1, 0], [1, 1, 1, 1], [1, 0, 1, 0]]
    assert task.reference["inputs"] == ["2\n2 1\n", "5\n9 1 1 1 1\n"], "those of the best test alone"
    [task] = trials([LAST, LARGEST, CRASHES], tests, keep=3).tasks
    assert task.reference["outputs"] == ["2\n", "9\n", "3\n"], "each case once"


def test_it_is_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(COUNTED)
    made = read_pipeline("S039", {"strategy": str(tmp_path / "own.py"), "programs": 4, "tests": 5})
    [(_, step)] = made.steps
    assert (step.strategy, step.programs, step.tests) == (COUNTED, 4, 5)
    assert read_pipeline("S039", {}).steps == [("trials", Trials())]
    assert (Trials().programs, Trials().tests, Trials().keep) == (16, 16, 1)
    with pytest.raises(UsageError, match="cannot be read"):
        read_pipeline("S039", {"strategy": str(tmp_path / "none.py")})
    with pytest.raises(UsageError, match="are the fewest"):
        read_pipeline("S039", {"programs": 1})


@needs_sandbox
def test_the_evolved_strategy_holds_on_other_problems() -> None:
    evolved, counted = learned("S039", "evolved"), learned("S039", "counted")
    assert evolved["held out"] > counted["held out"] + 0.1 and evolved["seen"] >= counted["seen"]
