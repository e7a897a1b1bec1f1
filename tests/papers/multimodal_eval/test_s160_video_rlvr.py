"""VideoRLVR: boards and what is read of them, puzzles by hand and by search, worked rewards, the window, the guard."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.flow.engine import FlowEngine
from assay.engines.flow.sampling import FlowSampling
from assay.errors import UsageError
from assay.lab.settings import load
from assay.ops.denoising import step
from assay.papers.multimodal_eval.s160_video_rlvr import SMALL
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import pixels_text
from assay.rewards.drawings.valid_pieces import ValidPieces
from assay.signals.base import Models
from assay.tasks.drawings.puzzles import flow_free, mazes, sokoban
from assay.tasks.drawings.puzzles.videos import PuzzleVideos
from assay.types import Ask, Group, Task, Verdict
from assay.verify.drawings.puzzles import cells
from assay.verify.drawings.puzzles.flow_free import is_path
from assay.verify.drawings.puzzles.maze import Maze
from assay.verify.drawings.puzzles.sokoban import moves
from assay.verify.drawings.puzzles.video import RULES, PuzzleVideo, judge

PIL = pytest.importorskip("PIL", reason="pip install assay[diffusion]")
OBJECTIVES = {"maze": "progress", "flow_free": "connected", "sokoban": "home"}


def board(text: str) -> np.ndarray:
    return np.array([[cells.LETTERS.index(c) for c in row] for row in text.split()])


def boards(*texts: str) -> np.ndarray:
    return np.stack([board(text) for text in texts])


def snake(*path: tuple[int, int]) -> np.ndarray:
    """A way through three by three cells, whose one path goes along the first row, back, and along the last."""
    floor = board("..... ####. ..... .#### ....G")
    states = []
    for row, column in path:
        state = floor.copy()
        state[2 * row, 2 * column] = cells.YELLOW if (row, column) == (2, 2) else cells.RED
        states.append(state)
    return np.stack(states)


WAY = ((0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0), (2, 0), (2, 1), (2, 2))
CUT = ((0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1), (2, 2))


def worth(verdict: Verdict, **options: Any) -> float:
    """The reward of one verdict."""
    task = Task("t", "", kind="puzzle_video")
    [group] = FlowEngine(flow()).generate([Request("", 1, Sampling(2), 0)])
    batch = Batch.from_groups([Group(Ask(task, 1), tuple(group), (verdict,))], torch.float64)
    return ValidPieces(**options)(batch).values.item()


def flow(**options: Any) -> FlowPolicy:
    config = FlowConfig(**{"hidden": 8, "layers": 1, **options})
    return FlowPolicy(config, network(config, 0))


def test_boards_are_read_back() -> None:
    rng = np.random.default_rng(0)
    states = rng.integers(0, 8, (10_000, 3, 5))
    assert np.array_equal(cells.parse(cells.render(states, 1), 3, 5, 0.0), states)
    for pixels in (2, 5):
        frames = cells.render(states[:20], pixels)
        assert frames.shape == (20, 3 * pixels, 5 * pixels, 3) and frames.dtype == np.uint8
        assert np.array_equal(cells.parse(frames, 3, 5, 0.0), states[:20])
    # Of a cell of four pixels it is the mean that counts, each colour by itself: 102 of 255 off is not 100.
    grey = np.zeros((1, 2, 4, 3), np.uint8)
    grey[0, :, :2, 0], grey[0, 0, 2:, 1] = 155, 204
    assert cells.parse(grey, 1, 2, 101.0).tolist() == [[[2, -1]]] == cells.parse(grey, 1, 2, 100.0).tolist()
    assert cells.parse(grey, 1, 2, 99.0).tolist() == [[[-1, -1]]] and cells.parse(grey, 1, 2, 102.0)[0, 0, 1] == 1
    assert cells.parse(grey, 1, 3, 100.0) is None and cells.parse(grey, 3, 2, 100.0) is None
    assert cells.text(board(".#R GBY")) == ".#R\nGBY" and cells.where(board(".R R."), 2) == [(0, 1), (1, 0)]
    assert sorted(cells.beside((0, 1), (2, 3))) == [(0, 0), (0, 2), (1, 1)]


def test_a_maze_by_hand() -> None:
    """The path; its first half; and a short cut through one wall, which progress at its end would pay .916667 for."""
    rules, solution = Maze(snake(*WAY)[0]), snake(*WAY)
    whole = judge(rules, solution, solution)
    assert whole.passed and whole.score == 1 and worth(whole) == 2
    assert whole.parts == dict.fromkeys(("validity", "legal", "progress", "precision", "recall", "f1"), 1.0)
    half = judge(rules, snake(*WAY[:5]), solution)
    assert not half.passed and worth(half) == 0.75 and half.parts["progress"] == 0.5
    cut = judge(rules, snake(*CUT), solution)
    assert worth(cut) == pytest.approx(0.145833, abs=1e-6) and cut.feedback.startswith("1 of 6 moves")
    measures = [cut.parts[name] for name in ("precision", "recall", "f1")]
    assert measures == pytest.approx([1, 0.777778, 0.875], abs=1e-6)
    # Waiting is no move; nothing but waiting is worth nothing, and going on after the goal is no solution.
    waits = judge(rules, snake(*WAY[:3], WAY[2], *WAY[3:], WAY[8]), solution)
    assert waits.passed and waits.feedback.startswith("8 of 8")
    assert worth(judge(rules, snake(WAY[0], WAY[0]), solution)) == 0
    assert not judge(rules, snake(*WAY, WAY[7]), solution).passed
    back = judge(Maze(snake(*WAY[4:])[0]), snake(*WAY[4::-1]), solution)
    assert (back.parts["legal"], back.parts["progress"]) == (1, 0)


def test_what_is_not_kept_ends_a_maze() -> None:
    rules, solution = Maze(snake(*WAY)[0]), snake(*WAY)
    # A wall left out, no goal, a cell that cannot be read: no solution, though every move is one.
    for place, colour in (((1, 0), cells.EMPTY), ((4, 4), cells.EMPTY), ((3, 0), -1)):
        spoiled = solution.copy()
        spoiled[3][place] = colour
        found = judge(rules, spoiled, solution)
        assert not found.passed and found.parts["validity"] == 1 - 1 / 225 and found.parts["legal"] == 1
    # Two walkers, none, one between cells, or one in a wall: nobody knows who moves.
    for state in ("..R.R ####. ..... .#### ....G", "..... ####. ..... .#### ....G", "...R. ####. ..... .#### ....G",
                  "..... R###. ..... .#### ....G"):  # fmt: skip
        spoiled = solution.copy()
        spoiled[2] = board(state)
        found = judge(rules, spoiled, solution)
        assert not found.passed and (found.parts["legal"], found.parts["progress"]) == (1 / 8, 1 / 8)
        assert (found.parts["precision"], found.parts["recall"]) == (1, pytest.approx(8 / 9))
    other = judge(rules, snake(*WAY[1:]), solution)
    assert (other.parts["legal"], other.parts["progress"]) == (0, 0) and other.parts["validity"] == 1 - 2 / 200
    for odd in (".. ..", "R. ..", "R#G ### ...", "RG RG"):
        with pytest.raises(ValueError, match="maze"):
            Maze(board(odd))


def test_flow_free_by_hand() -> None:
    """Three by three: red joined, green not, seven of nine cells: (1/2 + 7/9) / 2 = .638889."""
    solution = boards("RG. ..G R..", "RG. R.G R..", "RGG R.G R..")
    rules = RULES["flow_free"](solution[0])
    part = judge(rules, boards("RG. ..G R..", "RG. R.G R..", "RG. RBG R.G", "RG. R.G R.G"), solution)
    assert worth(part) == pytest.approx(35 / 36 * (1 / 2 + 6 / 9) / 2)
    seven = judge(rules, boards("RG. ..G R..", "RG. R.G R..", "RG. R.G R.G", "RG. R.G RGG"), solution)
    assert worth(seven) == pytest.approx((1 / 2 + 7 / 9) / 2) == pytest.approx(0.638889, abs=1e-6)
    assert seven.parts["precision"] == 1 / 3 and seven.parts["recall"] == 1 / 2
    joined = judge(rules, solution, solution)
    assert joined.parts["connected"] == 1 and not joined.passed and joined.parts["covered"] == pytest.approx(6 / 9)
    full = boards("RG. ... RG.", "RGG R.G RGG"), boards("RGB ... RGB", "RGB RGB RGB")
    assert judge(RULES["flow_free"](full[1][0]), full[1], full[1]).passed
    assert not judge(RULES["flow_free"](full[0][0]), full[0], full[0]).passed
    # Runs over red, or loses it: no legal move, and a cell that is not kept; an end that is not shown is that alone.
    for spoiled, connected in (("RG. G.G R..", 0.5), ("RGG ..G R..", 0.5), ("RGG R.G ...", 1.0)):
        found = judge(rules, boards("RG. ..G R..", "RG. R.G R..", spoiled), solution)
        assert found.parts["validity"] == pytest.approx(26 / 27) and found.parts["connected"] == connected, spoiled
        assert not found.passed
    assert judge(rules, solution[1:], solution).parts["connected"] == 0
    for odd in ("R. ..", "RR R.", "#. #.", ".. .."):
        with pytest.raises(ValueError, match="two cells"):
            RULES["flow_free"](board(odd))


def test_a_path_nowhere_touches_itself() -> None:
    way = cells.where(board("RRR ..R ..R"), 2)
    assert is_path(way, (0, 0), (2, 2)) and is_path(way, (2, 2), (0, 0)) and is_path([(0, 0), (0, 1)], (0, 1), (0, 0))
    for odd in ("RRR R.R ..R", "RRR .RR ..R", "RR. ..R ..R", "RRR ..R R.R", "RRR R.R RRR", "RRR ..R .RR"):
        assert not is_path(cells.where(board(odd), 2), (0, 0), (2, 2)), odd


def test_sokoban_by_hand() -> None:
    """Four of five moves legal, and one of two boxes home: (.8 + .5) / 2."""
    right = boards("RBG. .... .BG.", ".RC. .... .BG.", "..C. .R.. .BG.", "..C. R... .BG.", "..C. .... RBG.",
                   "..C. .... .RC.")  # fmt: skip
    rules = RULES["sokoban"](right[0])
    verdict = judge(rules, right, right)
    assert verdict.passed and verdict.parts["home"] == 1 and verdict.parts["legal"] == 1 and worth(verdict) == 2
    # The pusher jumps; a third box; a box is gone; a box in the wall that was not there.
    for last in ("..C. .... .BGR", "..C. .B.. .RC.", "..C. .... .RG.", "..CR .... ..C."):
        found = judge(rules, np.concatenate([right[:5], boards(last)]), right)
        assert (found.parts["legal"], found.parts["home"]) == (0.8, 0.5) and not found.passed, last
        assert worth(found) == pytest.approx(0.65) and found.parts["validity"] == 1
    walled = boards("RBG#", ".RC#")
    assert judge(RULES["sokoban"](walled[0]), walled, walled).passed
    for last in (".RCB", "..CR"):
        assert judge(RULES["sokoban"](walled[0]), boards("RBG#", last), walled).parts["legal"] == 0
    shown = judge(RULES["sokoban"](walled[0]), boards("RBG#", ".RC."), walled)
    assert shown.parts["legal"] == shown.parts["home"] == 1 and not shown.passed and shown.parts["validity"] == 7 / 8
    assert judge(rules, right[1:], right).parts["home"] == 0 and verdict.parts["f1"] == 1
    early = judge(rules, right[:2], right)
    assert (early.parts["precision"], early.parts["recall"]) == (1, 5 / 10)
    # Into a wall, two boxes at once, over the edge: none of these are moves.
    for text, count in (
        ("R#. ... ...", 1),
        ("RBB ... ...", 1),
        ("... ..R ..B", 2),
        ("RBC ... ...", 1),
        ("YB. ... ...", 2),
    ):
        assert len(list(moves(board(text)))) == count, text
    assert {cells.text(b) for b in moves(board("YBG"))} == {"GRC"} and not list(moves(board("RB#")))
    assert {cells.text(b) for b in moves(board("RC."))} == {".YB"}
    for odd in ("B.. .G. ...", "R.. .G. ...", "RB. B.. G..", "RBG R.. ..."):
        with pytest.raises(ValueError, match="pusher"):
            RULES["sokoban"](board(odd))


def test_what_is_made_is_solved() -> None:
    source = PuzzleVideos(seed=3)
    assert (source.side, source.frames, source.pixels, source.size) == (5, 9, 4, None)
    assert source.puzzles == ("maze", "flow_free", "sokoban") and PuzzleVideos().seed == 0
    judge_of = PuzzleVideo()
    for task in [source[i] for i in range(30)]:
        verdict = judge_of(task, task.solution or "")
        assert (
            verdict.passed
            and set(verdict.parts.values()) == {1.0}
            and OBJECTIVES[task.meta["category"]] in verdict.parts
        )
        states = np.array(task.reference["solution"])
        assert states.shape == (9, 5, 5) and task.prompt == f"{task.meta['category']}\n{cells.text(states[0])}"
        first = pixels_text(cells.render(states[:1].repeat(9, 0), 4))
        assert not judge_of(task, first).passed
    assert source[7] == PuzzleVideos(seed=3)[7] != PuzzleVideos(seed=4)[7] and source[7].id == "puzzle_videos/3/7"
    assert [source[i].reference["puzzle"] for i in range(4)] == ["maze", "flow_free", "sokoban", "maze"]


def test_solutions_are_shortest_and_the_only_ones() -> None:
    rng = np.random.default_rng(1)
    lengths = set()
    for _ in range(20):
        states = mazes.make(rng, 5, 4)
        rules = Maze(states[0])
        assert len(states) - 1 == rules.distances[rules.start] and 2 <= len(states) <= 5
        # A tree: one passage fewer than cells, all of which are reached.
        assert (rules.floor == cells.WALL).sum() == 4 + 12 - 8 and len(rules.distances) == 9
        lengths.add(len(states))
        pushed = sokoban.make(rng, 4, 5)
        assert sokoban.solve(pushed[0], len(pushed) - 2) is None and len(pushed) <= 6
        assert not cells.where(pushed[0], cells.CYAN) and len(sokoban.solve(pushed[0], 20) or []) == len(pushed)
    assert len(lengths) > 2
    for _ in range(5):
        drawn = flow_free.make(rng, 3, 3)
        assert 2 <= len(drawn) <= 4 and brute(drawn[0]) == 1
        assert all((a != cells.EMPTY).sum() < (b != cells.EMPTY).sum() for a, b in pairwise(drawn))
    assert {
        len(list(flow_free.solve(board(text)))) == brute(board(text)) for text in ("R.R ... G.G", "RG. ... RG.")
    } == {True}
    assert list(flow_free.solve(board("RG GR"))) == [] and sokoban.solve(board("B.G ... R.."), 9) is None


def brute(first: np.ndarray) -> int:
    """How many ways there are to colour a board of two or three colours, by trying all of them."""
    colours = [int(c) for c in np.unique(first) if c]
    ends = {c: cells.where(first, c) for c in colours}
    free = cells.where(first, cells.EMPTY)
    count = 0
    for colouring in product(colours, repeat=len(free)):
        state = first.copy()
        for cell, colour in zip(free, colouring, strict=True):
            state[cell] = colour
        count += all(is_path(cells.where(state, c), *ends[c]) for c in colours)
    return count


def test_what_is_no_video_or_no_puzzle() -> None:
    task = PuzzleVideos(seed=1, puzzles=("maze",), side=3, frames=3, pixels=1)[0]
    right = task.solution or ""
    assert PuzzleVideo()(task, right + "\n").passed
    for text in ("", "maze", right[:-40], right + " x", pixels_text(np.zeros((3, 4, 3, 3), np.uint8))):
        verdict = PuzzleVideo()(task, text)
        assert verdict.passed is False and verdict.score == 0 and "3 x 3 cells" in verdict.feedback
    for reference in (None, {}, {"puzzle": "chess", "solution": [[[2, 3]]]}, {"puzzle": "maze", "solution": [[2]]},
                      {"puzzle": "maze", "solution": [[[2, 9]]]}, {"puzzle": "maze", "solution": [[[10**40, 3]]]},
                      {"puzzle": "maze", "solution": [[[2, 2, 3]]]}):  # fmt: skip
        verdict = PuzzleVideo()(replace(task, reference=reference), right)
        assert (verdict.passed, verdict.fault) == (None, "tests")
    assert PuzzleVideo().tolerance == 100
    with pytest.raises(UsageError, match="tolerance 128"):
        PuzzleVideo(128)
    for odd, words in (({"puzzles": ()}, "empty"), ({"side": 4}, "odd for a maze"), ({"side": 2}, "3 to 7"),
                       ({"side": 9}, "3 to 7"), ({"frames": 1}, "2 to 64"), ({"pixels": 0}, "1 to 64"),
                       ({"seed": -1}, "seed")):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            PuzzleVideos(**odd)
    PuzzleVideos(puzzles=("sokoban",), side=4, frames=2, pixels=64)
    PuzzleVideos(side=7, frames=64)


def test_the_worked_rewards() -> None:
    half = Verdict(0.0, False, {"validity": 0.5, "legal": 1.0, "progress": 0.25, "f1": 1.0})
    assert worth(half) == 0.5 * 0.625 and worth(half, weights={"legal": 3.0, "progress": 1.0}) == 0.5 * 0.8125
    assert worth(half, weights={"f1": 2.0}) == 0.5 and worth(half, weights={"other": 1.0}) == 0
    right = Verdict(1.0, True, {"validity": 1.0, "connected": 1.0, "covered": 1.0})
    assert worth(right) == 2 and worth(right, success=0.5) == 1.5 and worth(right, validity="covers") == 1
    made = catalogue.make("S160")
    made.reward.check_tasks([Task("t", "", kind="puzzle_video")])
    with pytest.raises(UsageError, match="of kind 'exact'"):
        made.reward.check_tasks([Task("t", "")])
    for odd in ({}, {"legal": 0.0}, {"legal": float("inf")}):
        with pytest.raises(UsageError, match="above 0"):
            ValidPieces(weights=odd)
    assert made.rollout == {"name": "denoise", "end": 10, "noise": 0.7}
    objective = made.objective
    assert (objective.clip_low, objective.clip_high, objective.guard, objective.divergence) == (
        1e-4,
        1e-4,
        0.04,
        "exact",
    )
    assert objective.aggregation == "sequence_mean" and made.credit.limit == 5 and not objective.zero_advantage_is_idle
    assert catalogue.make("S160", guard=0.0).objective.zero_advantage_is_idle


def drawn(policy: FlowPolicy, sampling: Sampling) -> Batch:
    [group] = FlowEngine(policy).generate([Request("one", 3, sampling, 5)])
    batch = Batch.from_groups([Group(Ask(Task("t", "one"), 3), tuple(group), (Verdict.right(),) * 3)], torch.float32)
    batch.advantages = torch.zeros_like(batch.logprobs)
    batch.totals = batch.count()
    return batch


def test_the_first_steps_decide() -> None:
    """Ten of twenty steps are decisions; the others follow from where these led, by steps without noise."""
    policy = flow()
    batch = drawn(policy, FlowSampling(20, end=10))
    assert batch.tokens.shape == (3, 10) and batch.logprobs.shape == (3, 10)
    for episode in batch.episodes:
        states, levels = episode.drawing.states, episode.drawing.levels
        assert episode.drawing.taken.tolist() == list(range(10))
        for k in range(10, 20):
            x, level = torch.from_numpy(states[k])[None], torch.from_numpy(levels[k : k + 1])
            after = x + policy.velocity(x, level, None) * float(levels[k + 1] - levels[k])
            assert np.allclose(after.detach().numpy()[0], states[k + 1], atol=1e-6)


def test_the_guard_is_the_divergence_of_the_steps() -> None:
    """|mean - mean_ref|^2 / (2 deviation^2): .003954145 by the velocities of the card, .000395415 as in the code."""
    policy, other = flow(), flow()
    with torch.no_grad():
        for p in other.module.parameters():
            p.add_(0.1)
    batch = drawn(policy, FlowSampling(4, end=3))
    objective = catalogue.make("S160", guard=2.0, first=3).objective
    assert objective.needs == {"reference_step_mean"} and objective.live == {"step_mean", "step_deviation"}
    models = Models(policy, other)
    batch.signals["reference_step_mean"] = models.quantities(batch, {"step_mean"}, "reference")["step_mean"]

    def loss(objective: Any, own: FlowPolicy = policy) -> Any:
        output = own.forward(batch, objective.live)
        batch.live = output.live
        return objective(output.logprobs, batch)

    found = loss(objective)
    d = batch.episodes[0].drawing
    wanted = []
    for e in batch.episodes:
        for k in range(3):
            x, level = torch.from_numpy(e.drawing.states[k])[None], torch.from_numpy(d.levels[k : k + 1])
            v, u = policy.velocity(x, level, None), other.velocity(x, level, None)
            sd = 0.7 * (d.levels[k] / (1 - (d.levels[1] if k == 0 else d.levels[k]))) ** 0.5
            factor = (sd * (1 - d.levels[k]) / (2 * d.levels[k]) + 1 / sd) ** 2
            wanted.append((0.25 / 2 * factor * ((v - u) ** 2).sum()).item())
    assert found.value.item() == pytest.approx(2 * np.mean(wanted), rel=1e-4)
    assert found.metrics["kl/guard"] == pytest.approx(np.mean(wanted), rel=1e-4)
    found.value.backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.module.parameters())
    # The code's has no step in it, a quarter here, and is the mean over the two numbers of a point.
    code = loss(catalogue.make("S160", guard=2.0, divergence="code").objective)
    assert code.value.item() == pytest.approx(found.value.item() / 4 / 2, rel=1e-4)
    assert loss(objective, other).value.item() == pytest.approx(0, abs=1e-9)
    without = catalogue.make("S160", guard=0.0).objective
    assert without.needs == without.live == frozenset() and loss(without).value.item() == 0
    batch.live = {**policy.forward(batch, objective.live).live, "step_deviation": torch.zeros(3, 3)}
    with pytest.raises(UsageError, match="a step without noise has no divergence"):
        objective(batch.logprobs, batch)


def test_the_guard_of_the_card() -> None:
    one = {"level": torch.tensor([[0.8]]), "following": torch.tensor([[0.6]]), "first": torch.tensor([[0.9]])}
    x, noise = torch.tensor([[1.0, -0.5]]), torch.tensor([[0.7]])
    mean, deviation = step(x, torch.tensor([[0.3, 0.2]]), **one, noise=noise)
    reference, _ = step(x, torch.tensor([[0.1, 0.1]]), **one, noise=noise)
    batch = drawn(flow(), FlowSampling(5, begin=1, end=2))
    batch.live = {"step_mean": mean[:, None].expand(3, 1, 2), "step_deviation": deviation.expand(3, 1)}
    batch.signals["reference_step_mean"] = reference[:, None].expand(3, 1, 2)
    for divergence, wanted in (("exact", 0.003954145), ("code", 0.000395415)):
        objective = catalogue.make("S160", guard=1.0, divergence=divergence).objective
        assert objective(batch.logprobs, batch).metrics["kl/guard"] == pytest.approx(wanted, rel=1e-4)


def test_it_trains_on_three_puzzles(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"source": "flow", "flow": {"shape": [3, 3, 3, 3], "hidden": 16, "layers": 1, "prompt": 4}},
        tasks={"source": {"name": "puzzle_videos", "side": 3, "frames": 3, "pixels": 1}, "eval_size": 3},
        method={"name": "S160", "reward": None},
        warmup={"steps": 5, "batch": 8, "lr": 1e-2},
        run={"checkpoint_every": 100},
        rollout={"prompts": 3, "group": 4, "max_tokens": 12},
        train={"steps": 2, "mini_batches": 1, "epochs": 2},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2
    for row in rows:
        assert row["length/mean"] == 10 and row["reward/mean"] == pytest.approx(
            row["reward/pieces"] + row["reward/success"]
        )
    assert rows[1]["kl/guard"] > 0


def test_the_setting() -> None:
    setting = load("videos", {"puzzles": 4, "shown": 5, "steps": 1, "prompts": 2, "group": 2, "hidden": 8})
    found = setting.run({"name": "S160", "options": SMALL}, 0, Path())
    assert found["sampled"] == 4 and {"start", "final", "f1", "validity"} < set(found)
    assert setting.describe()["puzzle"] == "maze"
