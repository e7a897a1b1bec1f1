"""Ariadne: mazes of wanted paths and what is seen of them, points by hand, and a run that goes beyond its levels."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue, cli
from assay.batch import Batch
from assay.errors import UsageError
from assay.lab.settings import load
from assay.rewards.outcome.path_points import PathPoints
from assay.tasks.pictures.mazes import (
    BLACK,
    GREEN,
    GREY,
    RED,
    WHITE,
    Laid,
    Mazes,
    bends,
    draw,
    find_path,
    lay,
    told,
    visited,
)
from assay.types import Ask, Episode, Group, Task, Verdict, pictures
from assay.verify.puzzles.path_prefix import MOVES, POINTS, PathPrefix, turns_of, written

G = Task("g", "?", {"path": "RRUUL"}, "path_prefix")


def said(path: str) -> str:
    return f"<think>hm</think>{written(path)}"


def points(response: str, task: Task = G, mode: Any = "reference") -> float:
    return PathPrefix(mode)(task, response).parts[POINTS] or 0.0


def test_the_worked_points() -> None:
    """Five moves with two turns: 2 x 5 x 3 for all of them; else the moves right, times their turns and one."""
    judge = PathPrefix()
    for path, worth, progress in (
        ("RRUUL", 30, 1.0),
        ("RRUUU", 8, 0.8),
        ("RRU", 6, 0.6),
        ("RR", 2, 0.4),
        ("RRUULL", 15, 1.0),
        ("URRUL", 0, 0.0),
        ("", 0, 0.0),
    ):
        verdict = judge(G, said(path))
        assert (verdict.parts[POINTS], verdict.parts["progress"]) == (worth, progress), path
        assert verdict.passed is (path == "RRUUL") and verdict.score == float(path == "RRUUL")
    assert judge(G, said("RRUUU")).feedback == "4 of 5 moves are right"
    assert [turns_of(path) for path in ("", "U", "UU", "UD", "RRUUL", "RURUR")] == [0, 0, 0, 1, 2, 4]


def test_the_answer_stands_after_the_thought() -> None:
    judge = PathPrefix()
    # Moves in the thought, or without one, are none of the answer; a second thought ends it.
    for text, worth in (
        (written("RRUUL"), 0),
        (f"<think>{written('RRUUL')}</think>", 0),
        (f"<think></think>{written('RRUUL')}</think>{written('L')}", 30),
        (f"</think> \n{written('RR')} {written('UUL')}\n", 30),
        (f"</think>so {written('RRUUL')}", 15),
        ("</think><|right|><|right|><|north|><|up|>", 2),
        ("</think><|a<|right|><|right|><|up|>", 6),
    ):
        assert points(text) == worth, text
    assert judge(G, f"</think>so {written('RRUUL')}").feedback == "what follows the thought is not moves"
    text = "<think>a</think><|up|></think>b"
    place = judge.answer(G, text)
    assert place is not None and (text[place.begin : place.start], text[place.start : place.end]) == (
        "</think>",
        "<|up|>",
    )
    assert place.over == place.end and judge.answer(G, "<|up|>") is None


def test_a_reference_that_is_none_is_abstained_from() -> None:
    for reference in (None, "RRU", {"path": ""}, {"path": "RX"}, {"path": 3}):
        verdict = PathPrefix()(replace(G, reference=reference), said("R"))
        assert (verdict.passed, verdict.fault) == (None, "tests")
    ring = RING.reference
    for broken in (
        {},
        {**ring, "cells": [["", ""], ["", ""]]},
        {**ring, "goal": [0, 0]},
        {**ring, "start": [5, 5]},
        {**ring, "start": None},
        {**ring, "cells": 3},
    ):
        verdict = PathPrefix("simulate")(replace(G, reference={**broken, "path": "R"}), said("R"))
        assert (verdict.passed, verdict.fault) == (None, "tests")
        assert "no cells, start and goal" in verdict.feedback


RING = Laid((("RD", "LD"), ("RU", "LU")), (0, 0), "RD")
"""Two by two cells without walls: from the first to the last there are two ways of two moves."""


def test_in_a_ring_both_ways_are_right() -> None:
    task = replace(G, reference=RING.reference)
    for path, worth, worth_by_label in (
        ("RD", 8, 8),
        ("DR", 8, 0),
        ("D", 1, 0),
        ("RDL", 4, 4),
        ("RLRD", 1, 1),
        ("U", 0, 0),
    ):
        assert points(said(path), task, "simulate") == worth, path
        assert points(said(path), task) == worth_by_label, path
    assert PathPrefix("simulate")(task, said("DR")).passed and not PathPrefix()(task, said("DR")).passed
    assert points("</think><|down|><|north|>", task, "simulate") == 1
    assert PathPrefix().mode == "reference"


@pytest.mark.parametrize(("moves", "turns"), [(1, 0), (5, 2), (10, 4), (12, 2), (16, 4)])
def test_a_maze_has_one_path_of_what_is_wanted(moves: int, turns: int) -> None:
    """The cells are joined by a tree: one passage fewer than cells, all of them reached."""
    starts = set()
    for seed in range(8):
        laid = lay(np.random.default_rng(seed), 5, moves, turns)
        starts.add(laid.start)
        assert (len(laid.path), turns_of(laid.path)) == (moves, turns)
        cells = visited(laid.start, laid.path)
        assert len(set(cells)) == moves + 1 and cells[-1] == laid.goal
        assert all(move in laid.cells[r][c] for move, (r, c) in zip(laid.path, cells, strict=False))
        open_ = {(r, c, m) for r, c in product(range(5), repeat=2) for m in laid.cells[r][c]}
        back = {"U": "D", "D": "U", "L": "R", "R": "L"}
        assert {(r + MOVES[m][0], c + MOVES[m][1], back[m]) for r, c, m in open_} == open_ and len(open_) == 2 * 24
        reached, edge = {laid.start}, [laid.start]
        while edge:
            r, c = edge.pop()
            near = {(r + MOVES[m][0], c + MOVES[m][1]) for m in laid.cells[r][c]} - reached
            reached |= near
            edge += near
        assert len(reached) == 25
        task = Task("m", "?", laid.reference, "path_prefix")
        for mode in ("reference", "simulate"):
            assert PathPrefix(mode)(task, said(laid.path)).passed, mode
    assert len(starts) > 1


def test_which_turns_a_length_can_have() -> None:
    """Against all walks in a grid of three cells on a side, of up to eight moves."""
    grid, found = 3, set()
    walks = [((start,), "") for start in product(range(grid), repeat=2)]
    for _ in range(8):
        walks = [
            ((*cells, near), path + m)
            for cells, path in walks
            for m, (dr, dc) in MOVES.items()
            if (near := (cells[-1][0] + dr, cells[-1][1] + dc)) not in cells and min(near) >= 0 and max(near) < grid
        ]
        found |= {(len(path), turns_of(path)) for _, path in walks}
    assert {(m, t) for m in range(1, 9) for t in bends(grid, m, 7)} == found
    assert bends(5, 10, 4) == (2, 3, 4) and bends(5, 5, 2) == (1, 2) and bends(5, 9, 1) == () == bends(5, 0, 2)
    assert find_path(np.random.default_rng(0), 5, 9, 1) is None
    with pytest.raises(ValueError, match="no path of 9 moves and 1 turns in 5 x 5 cells"):
        lay(np.random.default_rng(0), 5, 9, 1)


def test_the_picture_has_the_walls() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    laid, pixels = lay(np.random.default_rng(3), 5, 7, 3), 16
    image = np.asarray(draw(laid, pixels))
    assert image.shape == (112, 112, 3)
    for r, c in product(range(5), repeat=2):
        y, x = (r + 1) * pixels, (c + 1) * pixels
        middle = tuple(image[y + 8, x + 8])
        assert middle == {laid.start: GREEN, laid.goal: RED}.get((r, c), WHITE)
        for move, at in {"U": (y, x + 8), "D": (y + 16, x + 8), "L": (y + 8, x), "R": (y + 8, x + 16)}.items():
            assert tuple(image[at]) == (GREY if move in laid.cells[r][c] else BLACK), (r, c, move)
    assert tuple(image[8, 8]) == WHITE and tuple(image[0, 16]) == GREY
    # A wall of 16 pixels on a side is two wide, of 32 four.
    big = np.asarray(draw(laid, 32))
    outer = (image[24, 8:24] == BLACK).all(-1).sum(), (big[48, 16:48] == BLACK).all(-1).sum()
    assert outer == (2, 4) and not (image[8] == BLACK).all(-1).any()


def test_the_shares_of_the_lengths() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source = Mazes(seed=2, pixels=4)
    assert (source.grid, source.moves, source.turns, source.size) == (5, (1, 2, 3, 4, 5), 2, None)
    assert source.shares == (0.21, 0.18, 0.16, 0.18, 0.21) and Mazes().pixels == 16 and Mazes().seed == 0
    tasks = [source[i] for i in range(400)]
    counts = Counter(task.meta["moves"] for task in tasks)
    for moves, share in zip(source.moves, source.shares, strict=True):
        # 0.94 in all; further off than this once in 3,000 times
        assert abs(counts[moves] - 400 * share / 0.94) < 30
    assert {task.meta["cell"] for task in tasks if task.meta["moves"] == 5} == {"5 moves, 1 turns", "5 moves, 2 turns"}
    assert min(Counter(task.meta["turns"] for task in tasks if task.meta["moves"] == 3).values()) > 10
    for task in tasks[:20]:
        assert PathPrefix()(task, task.solution or "").parts | {POINTS: 0} == {
            "progress": 1,
            POINTS: 0,
            "moves": 1,
            "tags": 1,
        }
        [picture] = pictures(task.prompt)
        assert picture.open().size == (28, 28) and task.question.startswith("<image>The picture is a maze")
        assert task.meta["difficulty"] == len(task.reference["path"]) == task.meta["moves"]
    assert source[7] == tasks[7] != replace(source, seed=3)[7] and tasks[7].id == "mazes/2/7"
    assert told("RRUUL") == "2 right, 2 up, 1 left" and told("U") == "1 up"
    far = Mazes(moves=(6, 8), shares=(), turns=4, pixels=4)
    assert 10 < sum(far[i].meta["moves"] == 6 for i in range(40)) < 30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grid": 1}, "grid 1 must be 2 to 7"),
        ({"grid": 8}, "grid 8 must be"),
        ({"pixels": 3}, "pixels 3 must be 4 to 256"),
        ({"turns": 7}, "turns 7 must be 0 to 6"),
        ({"turns": -1}, "turns -1"),
        ({"moves": ()}, "must be different lengths"),
        ({"moves": (2, 2), "shares": ()}, "must be different lengths"),
        ({"shares": (1.0,)}, "must be one above 0"),
        ({"moves": (1,), "shares": (0.0,)}, "must be one above 0"),
        ({"moves": (9,), "shares": (), "turns": 1}, "no path of 9 moves and at most 1 turns fits into 5 x 5"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Mazes(**options)
    Mazes(grid=7, pixels=256, turns=6)
    Mazes(grid=2, pixels=4, turns=0, moves=(1,), shares=(0.5,))


def batch(*texts: str) -> Batch:
    token = np.ones(1, dtype=np.int64)
    episodes = tuple(Episode(token, token, token > 0, np.zeros(1, np.float32), text, "eos") for text in texts)
    verdicts = [PathPrefix()(G, text) for text in texts[:-1]] + [Verdict.abstain("broken")]
    return Batch.from_groups([Group(Ask(G, len(texts)), episodes, tuple(verdicts))], torch.float64)


def test_the_worked_rewards() -> None:
    """Right 30 + .1 + .1; two tags of one sort .05; words before the moves cost the .1 for form."""
    texts = [said("RRUUL"), "<think><think>" + said("RRU"), f"</think>so {written('RR')}", "nothing", "broken"]
    made = catalogue.make("S106")
    reward = made.reward(batch(*texts))
    assert reward.values.tolist() == pytest.approx([30.2, 6.15, 2.05, 0, 0])
    assert reward.valid.tolist() == [True, True, True, True, False]
    assert reward.terms["points"].tolist() == [30, 6, 2, 0, 0]
    assert reward.terms["moves"].tolist() == [1, 1, 0, 0, 0] and reward.terms["tags"].tolist() == [1, 0.5, 0.5, 0, 0]
    other = catalogue.make("S106", moves=1.0, tags=0.5, kl_weight=0.0)
    assert other.reward(batch(*texts)).values.tolist() == pytest.approx([31.5, 7.25, 2.25, 0, 0])
    assert (made.objective.kl_weight, other.objective.kl_weight) == (0.04, 0.0)
    assert made.objective.aggregation == "sequence_mean" and made.credit.normalise
    assert PathPoints() == PathPoints(0.1, 0.1)
    made.reward.check_tasks([G])
    with pytest.raises(UsageError, match="task t is of kind 'exact', which has no points; take tasks of kind"):
        made.reward.check_tasks([G, Task("t", "q", "4", "exact")])


def test_it_trains_and_is_measured_beyond_training(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    letters = "".join(sorted(set("<think>0123456789 up, down, left, right</think><|up|>?way")))
    nano = {"hidden": 32, "layers": 1, "heads": 2, "context": 96, "alphabet": letters}
    source = {"name": "mazes", "grid": 3, "pixels": 6, "moves": [1], "shares": [], "question": "way?"}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 32}}},
        tasks={"source": source, "eval_size": 2},
        method={"name": "S106", "reward": None},
        warmup={"steps": 20, "batch": 8, "lr": 1e-2},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 4, "max_tokens": 40},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2
    for row in rows:
        parts = row["reward/points"] + 0.1 * row["reward/moves"] + 0.1 * row["reward/tags"]
        assert row["reward/mean"] == pytest.approx(parts)
        assert row["reward/tags"] > 0, "the warm-up has shown it what responses look like"
    beyond = "tasks.source.moves=[2,4]", "tasks.source.turns=1", "tasks.eval_size=6"
    with pytest.raises(SystemExit) as ended:
        cli.main(["eval", str(folder), *beyond, "--samples", "1", "--by", "cell", "--json"])
    out = capfd.readouterr()
    assert not ended.value.code, out.err
    assert "2 moves, 0 turns" in out.out or "2 moves, 1 turns" in out.out
    assert "4 moves, 1 turns" in out.out and json.loads(out.out)


def test_the_setting() -> None:
    """Points lead to paths that are right once in a thousand times at the start; the verdict alone is idle."""
    setting = load("mazes", {"mazes": 2, "prompts": 2, "moves": 4, "steps": 30, "lr": 10.0})
    found = setting.run({"name": "S106"}, 0, Path())
    assert found["start"] < 0.02 < 0.5 < found["final"] <= found["first"] <= 1 and found["rollouts"] == 30 * 16
    assert found["start"] < found["area"] < found["final"]
