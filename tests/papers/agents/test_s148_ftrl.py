"""FTRL: turns are paid by the answers they find for the calls they make, after every prefix of whole episodes."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.tabular_turns import TabularTurns
from assay.environments.base import EnvironmentFailure, Step
from assay.environments.functions.environment import Functions
from assay.errors import UsageError
from assay.method import Method
from assay.papers.agents.s148_ftrl import TASK, _said
from assay.records.evaluation import Evaluation
from assay.rewards.process.solved_f1 import SolvedF1, said, solved
from assay.rollout.turns.enumerated import player
from assay.rollout.turns.prefix_rows import PrefixRows
from assay.types import Ask, Episode, Group, Task, Turn, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_worked_numbers() -> None:
    table: dict[str, dict[tuple[int, int], float]] = {
        "f1": {(1, 1): 1, (1, 3): 0.5, (2, 2): 4 / 3, (2, 3): 1, (0, 2): 0, (1, 2): 2 / 3},
        "precision": {(1, 1): 1, (1, 3): 1 / 3, (2, 2): 1, (0, 2): 0},
        "rate": {(1, 3): 1, (2, 2): 2, (0, 2): 0},
        "product": {(1, 1): 1, (2, 3): 4 / 3, (2, 2): 2, (0, 2): 0},
    }
    for form, rows in table.items():
        for (k, n), worth in rows.items():
            assert solved(k, n, form) == pytest.approx(worth)  # type: ignore[arg-type]


def test_turns_without_calls() -> None:
    for text, answer, left, unread, worth in (
        ("", "7", 0, 0, -0.5),
        (" \n", "7", 2, 1, -0.5),
        ("<think>hm</think> ", "7", 2, 0, -0.5),
        ("<tool_call>{", "7", 0, 1, -0.3),
        ("so </tool_call> 7", "7", 0, 0, -0.3),
        ("it says <tool_response>7", "7", 0, 0, -0.3),
        ("f(x=", "7", 0, 1, -0.3),
        ("The answer is Ada KOLM 1822!", "ada kolm, 1822", 2, 0, 1 / 3),
        ("1,822", "1822", 0, 0, 1.0),
        ("no idea", "7", 0, 0, 0.5),
        ("no idea", "7", 1, 0, 0.0),
        ("no idea", None, 0, 0, 0.5),
        ("no idea", "", 3, 0, 0.0),
        ("<think>it is 7</think> eight", "7", 1, 0, 0.0),
    ):
        assert said(text, answer, left, unread) == pytest.approx(worth), text


def turn(start: int, text: str = "x", **info: int) -> Turn:
    return Turn(0, start, start + 2, text=text, info={"calls": 0, "unread": 0, "found": 0, "left": 2, **info})


def batch(*episodes: tuple[Turn, ...], passed: bool | None = True) -> Batch:
    made = []
    for turns in episodes:
        n = 2 * len(turns) + 1
        mask = np.arange(n) < n - 1
        made.append(Episode(np.zeros(1, np.int64), np.zeros(n, np.int64), mask, None, "", "eos", turns=turns))
    task = Task("t", "?", "9")
    verdicts = tuple(Verdict(0.0, passed) for _ in made)
    return Batch.from_groups([Group(Ask(task, len(made)), tuple(made), verdicts)], torch.float64)


def test_rewards_of_samples() -> None:
    """One turn each; two turns add up; a verdict that abstains has no reward and needs no notes."""
    rows = batch(
        (turn(0, calls=2, found=1, left=1),),
        (turn(0, text="it is 9"),),
        (turn(0, calls=1, found=1, left=1), turn(2, text="")),
    )
    found = SolvedF1()(rows)
    assert found.values.tolist() == pytest.approx([2 / 3, 1 / 3, 0.5]) and found.tokens is None
    assert found.terms["solved_f1"].tolist() == found.values.tolist() and found.valid.tolist() == [True] * 3  # type: ignore[union-attr]
    placed = SolvedF1(placed=True)(rows)
    assert placed.values.tolist() == [0, 0, 0]
    assert placed.tokens.tolist() == [  # type: ignore[union-attr]
        pytest.approx([0, 2 / 3, 0, 0, 0]),
        pytest.approx([0, 1 / 3, 0, 0, 0]),
        pytest.approx([0, 1, 0, -0.5, 0]),
    ]
    assert SolvedF1("rate")(rows).terms["solved_rate"].tolist() == pytest.approx([1, 1 / 3, 0.5])
    lost = SolvedF1()(batch((Turn(0, 0, 2),), passed=None))
    assert lost.values.tolist() == [0] and lost.valid.tolist() == [False]  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="task t its environment does not note calls, unread, found, left"):
        SolvedF1()(batch((Turn(0, 0, 2),)))


WORDS = [_said()]


def rollout(**options: Any) -> PrefixRows:
    return PrefixRows(**{"environment": TASK, "sampling": Sampling(1), "turns": 2, **options})


@functools.cache
def playing() -> tuple[TabularTurns, Task]:
    world = Functions(**{k: v for k, v in TASK.items() if k != "name"})  # type: ignore[arg-type]
    task = world.tasks()[0]
    return player(world, [task], WORDS, 2), task


def collected(n: int = 4, seed: int = 0, **options: Any) -> list[Group]:
    engine, task = playing()
    return rollout(**options).collect([Ask(task, n)], engine, np.random.default_rng(seed))


def test_the_task_of_the_claim() -> None:
    world = Functions(**{k: v for k, v in TASK.items() if k != "name"})  # type: ignore[arg-type]
    task = world.tasks()[0]
    world.reset(task, 0)
    assert (task.prompt, task.reference) == ("g(3),k(9)?", "6,8")
    assert sorted(t.name for t in world.available()) == ["f", "g", "h", "k"] and len(_said()) == 17


def test_every_prefix_is_a_prompt() -> None:
    """Its tokens are the prompt, and what is left to find there is what the calls before have not found."""
    for seed in range(10):
        groups = collected(seed=seed, trajectories=2)
        depths = [len(g.episodes[0].prompt) - 1 for g in groups]
        assert depths[0] == 0 and depths.count(0) == 1  # the beginning once, whoever went on from it
        for group, depth in zip(groups, depths, strict=True):
            assert group.task.id == ("functions/0/0" if not depth else f"functions/0/0@{depth}")
            said_before = [_said()[t] for t in group.episodes[0].prompt[1:]]
            found = {c for text in said_before for c in text.split(", ")} & {"g(x=3)", "k(x=9)"}
            for episode in group.episodes:
                [row] = episode.turns
                new = set(row.text.split(", ")) & {"g(x=3)", "k(x=9)"} - found
                assert row.info["found"] == len(new) and row.info["left"] == 2 - len(found) - len(new)
    assert {len(collected(seed=s)) for s in range(30)} == {1, 2}


def test_rows_are_single_turns() -> None:
    """Each group's rows follow one prefix, nothing of which is learned from."""
    for group in collected(n=5):
        assert len(group.episodes) == len(group.verdicts) == 5
        assert len({tuple(e.prompt) for e in group.episodes}) == 1
        for episode in group.episodes:
            assert episode.mask.all() and len(episode.tokens) == 1 and episode.logprobs is not None
            assert (episode.turns[0].start, episode.turns[0].end) == (0, 1)
        assert len({e.trajectory for e in group.episodes}) == 5
    whole = Batch.from_groups(collected(n=5))
    assert whole.group.unique().numel() == len(collected(n=5)) and whole.trajectory.unique().numel() == len(whole)
    # The same seed gives the same; prefixes are drawn where there are too many.
    again = [[e.text for e in g.episodes] for g in collected(n=5)]
    assert again == [[e.text for e in g.episodes] for g in collected(n=5)]
    many = collected(seed=1, trajectories=6)
    some = collected(seed=1, trajectories=6, prefixes=2)
    assert len(some) == 2 < len(many)
    ids = [tuple(g.episodes[0].prompt) for g in many]
    places = [ids.index(tuple(g.episodes[0].prompt)) for g in some]
    assert places == sorted(places)


def test_calls_that_find_nothing_cost() -> None:
    """The same call twice in a turn, and one of a tool that refuses: k = 1, n = 2."""
    world = Functions(**{k: v for k, v in TASK.items() if k != "name"})  # type: ignore[arg-type]
    task = world.tasks()[0]
    for text in ("g(x=3), g(x=3)", "g(x=3), g(x=99)", "g(x=3), zip(y=1)", "g(x=3), g(y=1)"):
        engine = player(world, [task], [[text]], 1)
        [group] = rollout(turns=1).collect([Ask(task, 1)], engine, np.random.default_rng(0))
        info = dict(group.episodes[0].turns[0].info)
        assert info == {"calls": 2, "unread": 0, "found": 1, "left": 1}
        assert SolvedF1()(Batch.from_groups([group])).values.tolist() == pytest.approx([2 / 3])


def test_whole_episodes_are_measured() -> None:
    """Three calls that find two of four: precision 2/3, rate 1/2, F1 4/7; none: precision 1."""
    options: dict[str, Any] = {"style": "compact", "shapes": ("both",), "hops": 2}
    world = Functions(**options, score="f1")
    task = next(t for i in range(99) if sum(map(len, (t := world.tasks()[i]).meta["answers"].values())) == 4)
    engine = player(world, [task], [["1"]], 1)
    player_of = PrefixRows({"name": "functions", **options}, Sampling(1), turns=1)
    [group] = player_of.play([Ask(task, 1)], [0], engine)
    assert group.verdicts[0].parts == {"rate": 0.0, "precision": 1.0, "f1": 0.0, "answer": 0.0}
    world.reset(task, 0)
    first, *_ = world.gold()
    world.step(first)
    world.step(replace(first, calls=first.calls[:1]))
    parts = world.verdict().parts
    assert (parts["precision"], parts["rate"], parts["f1"]) == pytest.approx((2 / 3, 0.5, 4 / 7))
    assert world.verdict().score == parts["f1"]


class Broken(Functions):
    """Fails when it is asked for the second time, or takes another course then."""

    count, how = 0, "step"

    def step(self, action: Any) -> Step:
        Broken.count += 1
        if Broken.count > 2 and self.how == "step":
            raise OSError("no disk")
        step = super().step(action)
        if Broken.count > 2:
            return replace(step, observation=replace(step.observation, state="elsewhere"))
        return step


@pytest.mark.parametrize(("how", "why"), [("step", "no disk"), ("state", "another course")])
def test_what_breaks_abstains(monkeypatch: pytest.MonkeyPatch, how: str, why: str) -> None:
    monkeypatch.setattr(Broken, "count", 0)
    monkeypatch.setattr(Broken, "how", how)
    options: dict[str, Any] = {k: v for k, v in TASK.items() if k != "name"}
    world = Functions(**options)
    task = world.tasks()[0]
    engine = player(world, [task], [["f(x=3)"]], 2)
    made = rollout(attempts=1)
    monkeypatch.setattr(made.whole.worlds, "here", lambda: Broken(**options))
    groups = made.collect([Ask(task, 2)], engine, np.random.default_rng(0))
    verdicts = [v for g in groups[1:] for v in g.verdicts]
    assert verdicts and all(v.passed is None and v.fault == "infrastructure" and why in v.feedback for v in verdicts)
    assert all(e.stop == "error" for g in groups[1:] for e in g.episodes)
    assert issubclass(EnvironmentFailure, Exception)


def test_a_turn_that_was_not_generated_abstains() -> None:
    base, task = playing()
    engine = TabularTurns(base.policy, base.words, base.openings)
    generate = engine.generate

    def failing(requests: list[Request]) -> list[list[Episode]]:
        made = generate(requests)
        if requests[0].n == 1:
            return made
        return [[replace(e, stop="error", meta={"error": "away"}) for e in row] for row in made]

    engine.generate = failing  # type: ignore[assignment, method-assign]
    for group in rollout().collect([Ask(task, 2)], engine, np.random.default_rng(0)):
        assert [v.feedback for v in group.verdicts] == ["away", "away"]


def test_options_out_of_range() -> None:
    for options in ({"trajectories": 0}, {"prefixes": 0}):
        with pytest.raises(UsageError, match="must be at least 1"):
            rollout(**options)


def test_the_papers_numbers() -> None:
    method = catalogue.make("S148", environment="functions")
    assert isinstance(method, Method) and method.reward == SolvedF1("f1", False)
    assert method.rollout == {
        "name": "prefix_rows",
        "environment": "functions",
        "trajectories": 1,
        "prefixes": None,
        "turns": 20,
    }
    assert method.objective.kl_weight == 1e-3  # type: ignore[attr-defined]
    assert catalogue.make("S148").rollout == "single_turn"
    assert catalogue.make("S148", form="rate").reward == SolvedF1("rate")


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "functions", "style": "compact", "hops": 2, "width": 2}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.2, "eval_size": 2},
        warmup={"steps": 0},
        method={
            "name": "S148",
            "rollout": {"name": "prefix_rows", "environment": world, "calls": "python", "turns": 3},
            "reward": None,
        },
        rollout={"prompts": 2, "group": 4, "max_tokens": 8, "max_rows": 64},
        train={"steps": 3, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    steps = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(steps) == 3 and all(m["prefixes"] >= 2 and m["environment/lost"] == 0 for m in steps)
    assert all("reward/solved_f1" in m or "reward/mean" in m for m in steps)
    for label in ("before", "after"):
        found = Evaluation.from_parquet(folder / "evals" / f"{label}.parquet")
        assert found.samples and all(s.passed is not None for s in found.samples)
