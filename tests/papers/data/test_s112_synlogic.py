"""SynLogic: puzzles by family and level, the rules that judge them, and a run on them."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run

from assay.catalogue.claim import claims_made
from assay.errors import UsageError
from assay.lab.settings.bandits.problems import Setting
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build
from assay.tasks.procedural.grids import GRIDS
from assay.tasks.procedural.rule_puzzles import FAMILIES, GYM, ON_GRIDS, OWN, RulePuzzles, calibrated
from assay.types import Task, Verdict
from assay.verify.kind import KindVerifier
from assay.verify.puzzles.grids import RULES, visible, worked
from assay.verify.puzzles.rule_puzzle import GRID_RULES
from assay.verify.puzzles.written_grids import ARROWS, rays

pytestmark = pytest.mark.usefixtures("one_thread")
JUDGE = KindVerifier()


def judged(family: str, grid: str, **data: Any) -> Verdict:
    lines = [line.split() for line in grid.strip().splitlines()]
    reference = {"family": family, "rows": len(lines), "columns": len(lines[0]), "data": data}
    return JUDGE(Task("t", "", reference, "rule_puzzle"), f"<answer>{grid}</answer>")


def changed(task: Task, rng: np.random.Generator) -> str:
    """The solution with one cell, or the answer, put otherwise."""
    answer = str(task.solution).removeprefix("<answer>").removesuffix("</answer>").strip()
    if task.meta["family"] in GRID_RULES:
        grid = [line.split() for line in answer.splitlines()]
        cells = [(r, c) for r, row in enumerate(grid) for c, x in enumerate(row) if x != "T"]
        if task.meta["family"] not in RULES:
            same = {"arrow_maze": tuple(ARROWS), "wordscapes": tuple("aeioubcd"), "zebra_puzzle": ("cat", "red", "tea")}
            cells = [(r, c) for r, c in cells if grid[r][c] != "." and not grid[r][c].isdecimal()]
            r, c = cells[int(rng.integers(len(cells)))]
            grid[r][c] = next(x for x in same[task.meta["family"]] if x != grid[r][c])
            return "<answer>" + "\n".join(" ".join(row) for row in grid) + "</answer>"
        r, c = cells[int(rng.integers(len(cells)))]
        old = grid[r][c]
        grid[r][c] = (
            "1" if old.isdecimal() and old != "1" else "2" if old == "1" else {"X": ".", ".": "X", "A": "."}[old]
        )
        if task.meta["family"] == "number_wall" and old == ".":
            grid[r][c] = "A"
        return "<answer>" + "\n".join(" ".join(row) for row in grid) + "</answer>"
    return f"<answer>1{answer}</answer>" if task.meta["family"] == "buggy_tables" else f"<answer>{answer}1</answer>"


@pytest.mark.parametrize("family", OWN)
def test_a_solution_is_right_and_a_changed_one_is_not(family: str) -> None:
    source, rng = RulePuzzles(families=(family,), levels=(1, 6)), np.random.default_rng(0)
    for i in range(50):
        task = source[i]
        assert JUDGE(task, str(task.solution)).passed is True, task
        assert JUDGE(task, changed(task, rng)).passed is False, task


def test_the_same_seed_gives_the_same_puzzle() -> None:
    first, second = RulePuzzles(), RulePuzzles(seed=1)
    assert [first[i] for i in range(40)] == [RulePuzzles()[i] for i in range(40)]
    assert {first[i].prompt for i in range(40)}.isdisjoint(
        {second[i].prompt for i in range(40) if i % 19 not in (9, 12)}
    )
    assert len(OWN) == 28 and len(FAMILIES) == 35, "the paper has 35 families"


def test_other_solutions_are_right_too() -> None:
    """Two Latin squares with the same clues; two ways to place mines."""
    clues = {"top": [0, 0], "bottom": [0, 0], "left": [0, 0], "right": [0, 0]}
    assert judged("skyscraper", "1 2\n2 1", **clues).passed and judged("skyscraper", "2 1\n1 2", **clues).passed
    mines = {"mines": 1, "clues": [[0, 1, 1]]}
    assert judged("minesweeper", "X . .", **mines).passed and judged("minesweeper", ". . X", **mines).passed
    words = {"shape": ["XX", "..", "XX"], "across": ["an", "at"], "down": []}
    assert (
        judged("wordscapes", "a n\n. .\na t", **words).passed and judged("wordscapes", "A T\n. .\nA N", **words).passed
    )
    assert judged("wordscapes", '["a", "t"],\n[".", "."],\n["a", "n"]', **words).passed


def test_of_all_arrows_two_ways_are_right() -> None:
    """Between two numbers at corners: the arrows go by the rows, or both by the columns."""
    ways = [
        (a, b)
        for a, b in itertools.product(ARROWS, repeat=2)
        if judged("arrow_maze", f"1 {a}\n{b} 1", board=[["1", "X"], ["X", "1"]]).passed
    ]
    assert sorted(ways) == sorted([("→", "←"), ("↑", "↓")])
    assert rays([["2", "→", "→", "↓"], ["↓", "↘", "0", "0"]], (0, 0)) == [(0, 1), (0, 2), (1, 1), (1, 0)]
    turned = {"↑": "↓", "↗": "↙", "→": "←", "↘": "↖"}
    for arrow, other in turned.items():
        assert [sum(pair) for pair in zip(ARROWS[arrow], ARROWS[other], strict=True)] == [0, 0]
    assert ARROWS["↗"] == (-1, 1) and ARROWS["↘"] == (1, 1)


@pytest.mark.parametrize(
    ("clue", "houses"),
    [
        (["at", "cat", 1], {"ba", "bb", "bc"}),
        (["same", "cat", "red"], {"aa", "bb", "cc"}),
        (["next", "cat", "red"], {"ab", "bc"}),
        (["beside", "cat", "red"], {"ab", "ba", "bc", "cb"}),
        (["left", "cat", "red"], {"ab", "ac", "bc"}),
    ],
)
def test_clues_hold_of_houses(clue: list[Any], houses: set[str]) -> None:
    """All ways of three houses, those of the cat and of red told by letters."""
    kinds = [["blue", "red", "white"], ["cat", "dog", "fish"]]
    found = set()
    for colours, pets in itertools.product(*map(itertools.permutations, kinds)):
        grid = "\n".join(f"{a} {b}" for a, b in zip(colours, pets, strict=True))
        if judged("zebra_puzzle", grid, kinds=kinds, clues=[clue]).passed:
            found.add("abc"[pets.index("cat")] + "abc"[colours.index("red")])
    assert found == houses


@pytest.mark.parametrize(
    ("family", "grid", "data", "complaint"),
    [
        ("skyscraper", "1 2\n1 2", {}, "column 1 does not hold 1 to 2 once each"),
        (
            "skyscraper",
            "1 2\n2 1",
            {"left": [1, 1], "right": [0, 0], "top": [0, 0], "bottom": [0, 0]},
            "2 are seen from the left at 1, not 1",
        ),
        (
            "calcudoko",
            "1 2\n2 1",
            {"cages": [[[[0, 0], [0, 1]], "-", 3]]},
            "the cage at row 1, column 1 does not give 3-",
        ),
        ("kukurasu", "X X\n. X", {"rows": [3, 2], "columns": [1, 2]}, "column 2 adds up to 3, not 2"),
        ("kukurasu", "X Y\n. X", {"rows": [3, 2], "columns": [1, 2]}, "'Y' is none of X ."),
        (
            "campsite",
            "T X\n. X",
            {"trees": [[0, 0]], "rows": [1, 1], "columns": [0, 2]},
            "the tent at row 1, column 2 touches another",
        ),
        (
            "campsite",
            "X .\n. .",
            {"trees": [[0, 0]], "rows": [1, 0], "columns": [1, 0]},
            "there is a tree at row 1, column 1",
        ),
        (
            "campsite",
            "T . .\n. . X",
            {"trees": [[0, 0]], "rows": [0, 1], "columns": [0, 0, 1]},
            "the tree at row 1, column 1 has no tent of its own",
        ),
        (
            "campsite",
            "T . .\n. . .",
            {"trees": [[0, 0]], "rows": [0, 0], "columns": [0, 0, 0]},
            "there are 0 tents for 1 trees",
        ),
        ("norinori", "X X\nX .", {"regions": [["A", "A"], ["A", "A"]]}, "region A has 3 marks, not 2"),
        (
            "norinori",
            "X .\n. X",
            {"regions": [["A", "A"], ["A", "A"]]},
            "the mark at row 1, column 1 is not one of two",
        ),
        (
            "star_placement",
            "X .\n. X",
            {"regions": [["A", "A"], ["B", "B"]]},
            "the mark at row 1, column 1 touches another",
        ),
        ("minesweeper", "X X .", {"mines": 1, "clues": [[0, 2, 1]]}, "there are 2 mines, not 1"),
        ("minesweeper", "X . .", {"mines": 1, "clues": [[0, 2, 1]]}, "around row 1, column 3 are 0 mines, not 1"),
        ("numbrix", "1 3\n2 4", {"givens": []}, "3 is not beside 2"),
        ("numbrix", "1 1\n2 4", {"givens": []}, "3 is missing"),
        ("numbrix", "2 1\n3 4", {"givens": [[0, 0, 1]]}, "row 1, column 1 is given as 1"),
        ("number_wall", "A A\nA A", {"givens": []}, "there is a wall of two by two at row 1, column 1"),
        ("number_wall", "1 A\n1 A", {"givens": [[0, 0, 1], [1, 0, 1]]}, "an island of 2 cells has the numbers [1, 1]"),
        ("number_wall", "2 A\nA A", {"givens": [[0, 0, 1]]}, "row 1, column 1 is given as 1"),
        ("number_wall", "1 A\nA .", {"givens": [[0, 0, 1]]}, "an island of 1 cells has the numbers []"),
        ("arrow_maze", "2 →", {"board": [["1", "X"]]}, "row 1, column 1 is given as 1"),
        ("arrow_maze", "0 X", {"board": [["0", "X"]]}, "'X' at row 1, column 2 is no arrow"),
        ("arrow_maze", "1 ←", {"board": [["1", "X"]]}, "0 arrows lead away from the 1 at row 1, column 1"),
        ("arrow_maze", "1 → ←", {"board": [["1", "X", "←"]]}, "no number's ray has the arrow at row 1, column 3"),
        ("wordscapes", "a", {"shape": ["."]}, "row 1, column 1 is to be blank, not 'a'"),
        ("wordscapes", ". 1", {"shape": [".X"]}, "row 1, column 2 is to be a letter, not '1'"),
        ("wordscapes", "an", {"shape": ["X"]}, "row 1, column 1 is to be a letter, not 'an'"),
        ("wordscapes", "a n", {"shape": ["XX"], "across": ["at"], "down": []}, "'an' is written across"),
        (
            "wordscapes",
            "a n\n. t",
            {"shape": ["XX", ".X"], "across": ["an"], "down": ["nt", "nt"]},
            "'nt' is not written down",
        ),
        (
            "zebra_puzzle",
            "red cat\nred dog",
            {"kinds": [["blue", "red"], ["cat", "dog"]], "clues": []},
            "column 1 does not hold blue, red once each",
        ),
        (
            "zebra_puzzle",
            "Red cat\nblue dog",
            {"kinds": [["blue", "red"], ["cat", "dog"]], "clues": [["at", "cat", 0], ["next", "dog", "red"]]},
            "it is not so that dog is directly left of red",
        ),
    ],
)
def test_rules_say_what_is_wrong(family: str, grid: str, data: dict[str, Any], complaint: str) -> None:
    assert judged(family, grid, **data).feedback == complaint


def test_what_is_counted() -> None:
    assert [visible(x) for x in ([1, 2, 3], [3, 1, 2], [2, 1, 3], [1, 3, 2])] == [3, 1, 2, 2]
    assert [worked(o, [6, 3]) for o in "+-*/"] == [9, 3, 18, 2]
    assert worked("/", [3, 6]) == 2 and worked("/", [5, 3]) is None and worked("*", [2, 3, 4]) == 24
    # Two trees with one tent between them and one that is only beside the second.
    found = judged("campsite", "T X T X", trees=[[0, 0], [0, 2]], rows=[2], columns=[0, 1, 0, 1])
    assert found.passed is True


def test_only_what_is_tagged_counts() -> None:
    task = RulePuzzles(families=("operation",))[0]
    answer = task.reference["answer"]
    assert JUDGE(task, str(answer)).passed is False and JUDGE(task, f"\\boxed{{{answer}}}").passed is False
    assert JUDGE(task, f"<answer>no</answer> hm <answer> {answer} </answer>").passed is True
    row = {"family": "wordscapes", "rows": 1, "columns": 2, "data": {"shape": ["XX"], "across": ["an"], "down": []}}
    assert JUDGE(Task("t", "", row, "rule_puzzle"), "<answer>[['a', \"n\"]]</answer>").passed is True
    grid = RulePuzzles(families=("numbrix",))[0]
    said = str(grid.solution).replace(" ", ", ")
    assert JUDGE(grid, said).passed is True
    assert JUDGE(grid, "<answer>1 2</answer>").parts == {"format": 0.0}
    assert (
        JUDGE(Task("t", "", {"family": "chess", "rows": 1, "columns": 1, "data": {}}, "rule_puzzle"), "x").passed
        is None
    )
    without = {"family": "zebra_puzzle", "rows": 1, "columns": 1, "data": {"kinds": [["cat"]]}}
    assert JUDGE(Task("t", "", without, "rule_puzzle"), "<answer>cat</answer>").passed is None


def test_calibration() -> None:
    yes, no = [[False] * 9 + [True]], [[False] * 10 + [True]]
    strong = {1: yes, 4: yes, 7: yes, 9: no}
    assert calibrated(strong, {1: no, 4: yes, 7: no}) == (4, 7)
    assert calibrated(strong, {1: no}) is None and calibrated({1: yes}, {2: yes}) is None
    assert calibrated(strong, {1: no}, k=11) == (1, 9)


def test_levels_make_larger_puzzles() -> None:
    for family in OWN:
        sizes = [
            np.mean([len(str(RulePuzzles(families=(family,), levels=(k, k))[i].prompt)) for i in range(20)])
            for k in (1, 4, 8)
        ]
        assert sizes[0] <= sizes[1] <= sizes[2] and sizes[0] < sizes[2], family
    sides = [RulePuzzles(families=("numbrix",), levels=(k, k))[0].reference["rows"] for k in (1, 2, 5, 10)]
    assert sides == [3, 4, 5, 8]
    for bad in ({"levels": [0, 1]}, {"levels": [4, 11]}, {"families": []}, {"families": ["chess"]}):
        with pytest.raises(UsageError, match="rule_puzzles"):
            build("tasks", {"name": "rule_puzzles", **bad})


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
def test_families_of_reasoning_gym() -> None:
    source = RulePuzzles(families=("kukurasu", *GYM))
    tasks = [source[i] for i in range(16)]
    assert [t.kind for t in tasks[:8]] == ["rule_puzzle"] + ["gym"] * 7
    assert len({t.id for t in tasks}) == 16


def test_it_is_dapo() -> None:
    method = make_method("S112")
    assert isinstance(method.objective, ClippedSurrogate) and method.objective.clip_high == 0.28
    assert method.objective.clip_low < 0.28 and "reference_logprobs" not in method.needs
    assert method.rollout == {"name": "dynamic", "rounds": 4}
    assert set(GRIDS) == set(RULES) and set(ON_GRIDS) == set(GRID_RULES)


def test_in_the_lab_some_kinds_may_be_asked_alone(tmp_path: Path) -> None:
    """What is not asked and shares nothing stays as it was; what shares a weight changes too."""
    arm = {"name": "S112", "options": {"rounds": 1}}
    apart = Setting(kinds=((2, 1.0, 0.0, 0.0), (2, 1.0, 0.0, -0.5)), steps=3, group=16)
    found = apart.run({**arm, "setting": {"asked": (1,)}}, 0, tmp_path)
    assert found["easy"] == found["easy/start"] and found["hard"] > found["hard/start"] and found["rollouts"] == 3 * 32
    shared = Setting(kinds=((2, 1.0, 1.0, 0.0), (2, 1.0, 1.0, -0.5)), steps=3, group=16, asked=(0,))
    found = shared.run(arm, 0, tmp_path)
    assert found["hard"] > found["hard/start"]
    with pytest.raises(UsageError, match=r"kinds that are asked, \[5\], must be of 0 to 1"):
        shared.run({**arm, "setting": {"asked": (5,)}}, 0, tmp_path)
    for claim in claims_made()["S112"]:
        knobs = [arm["setting"] for arm in claim.arms.values()]
        counts = [row[0] for row in claim.options["kinds"]]
        assert len({k["steps"] * sum(counts[i] for i in k["asked"]) for k in knobs}) == 1, "equal rollouts"


def test_a_run_on_a_mixture(tmp_path: Path) -> None:
    letters = "".join(map(chr, range(32, 127))) + "\n"
    puzzles = {"name": "rule_puzzles", "families": ["boolean_expressions", "web_of_lies"], "levels": [1, 1]}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 320, "alphabet": letters}},
        tasks={
            "source": {"name": "mixture", "sources": [{"source": puzzles}, {"source": "arithmetic"}]},
            "eval_size": 4,
        },
        warmup={"steps": 1, "batch": 4},
        method={"name": "S112", "options": {"rounds": 1}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    assert [row["stage"] for row in metrics(folder)] == ["warmup", "rl", "rl"]
