"""DAgger: who acts and who labels in a corridor, the schedule, aggregation, and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.tabular_turns import TabularTurns
from assay.environments.corridor import ACTIONS, Corridor
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.sft import SFT
from assay.papers.data.s176_dagger_agents import Aggregated, Dagger, Mixing
from assay.registry import build
from assay.rollout.turns.enumerated import player
from assay.rollout.turns.labelling import LABEL
from assay.select.labels import relabelled
from assay.types import Ask, Group, Origin, Task

pytestmark = pytest.mark.usefixtures("one_thread")
CORRIDOR = {"name": "corridor", "rooms": 3, "moves": 4}
START, GOAL = 1, 3
PLAN = ["right", "right", "stop"]


def student(seed: int = 0) -> tuple[TabularTurns, Task]:
    """A player at random, and the task to go from room 1 to room 3: right, right, stop."""
    world = Corridor(rooms=3, moves=4)
    task = world.task_of(START, GOAL)
    engine = player(world, [task], (ACTIONS,), 4)
    with torch.no_grad():
        engine.policy.logits.add_(
            torch.randn(engine.policy.logits.shape, generator=torch.Generator().manual_seed(seed))
        )
    return engine, task


def collected(n: int = 16, **mixing: Any) -> tuple[Group, Group, Dagger]:
    """What was played, and the labels."""
    engine, task = student()
    rollout = Dagger(CORRIDOR, Sampling(1), Mixing(**mixing), turns=4)
    played, labels = rollout.collect([Ask(task, n)], engine, np.random.default_rng(0))
    assert labels.derived and not played.derived and labels.task.parent == task.id
    assert all(
        e.meta[LABEL] and e.logprobs is None and set(e.origins.tolist()) == {Origin.TEACHER} for e in labels.episodes
    )
    return played, labels, rollout


def plan_after(said: list[str]) -> str:
    """The first action of the shortest way, worked out here."""
    room = START
    for action in said:
        room = min(max(room + {"left": -1, "right": 1, "stop": 0}[action], 1), 3)
    return "stop" if room == GOAL else "right"


def test_at_beta_1_it_is_behaviour_cloning() -> None:
    """Every episode is the plan's, and its labels are the plan after each of its beginnings."""
    played, labels, rollout = collected(4, beta=1.0, decay=1.0)
    assert [[t.text for t in e.turns] for e in played.episodes] == [PLAN] * 4
    assert [e.text for e in labels.episodes] == PLAN * 4 and all(v.passed for v in labels.verdicts)
    lengths = [len(e.prompt) for e in labels.episodes[:3]]
    assert [n - lengths[0] for n in lengths] == [0, 1, 2]
    assert np.isnan(played.episodes[0].logprobs[played.episodes[0].mask]).all(), "nobody sampled them"
    assert rollout.metrics()["dagger/labels"] == 12 and rollout.metrics()["dagger/beta"] == 1.0


def test_at_beta_0_the_teacher_labels() -> None:
    played, labels, _ = collected(24, beta=0.0)
    found = iter(labels.episodes)
    wrong = 0
    for episode in played.episodes:
        said = [t.text for t in episode.turns]
        assert not np.isnan(episode.logprobs[episode.mask]).any()
        for k in range(len(said)):
            label = next(found)
            assert label.text == plan_after(said[:k])
            assert label.prompt.tolist() == [*episode.prompt, *episode.tokens[: episode.turns[k].start]]
            wrong += label.text != said[k]
    assert next(found, None) is None and wrong > 10, "states off the plan's way are labelled too"


def test_in_a_run_its_steps_are_the_rounds() -> None:
    """One that goes on from a checkpoint goes on with the round, also where a recipe names the rollout by itself."""
    engine, task = student()
    options = {"name": "dagger", "environment": CORRIDOR, "mixing": {"decay": 0.5}, "turns": 4}
    made = build("rollout", options, sampling=Sampling(1), progress=lambda: (3, 10))
    made.collect([Ask(task, 1)], engine, np.random.default_rng(0))
    assert made.metrics()["dagger/beta"] == 0.125
    engine.divided = lambda items, work, cost: work(items, engine)
    with pytest.raises(UsageError, match="keeps its labels in one process"):
        made.collect([Ask(task, 1)], engine, np.random.default_rng(0))


def test_turns_are_mixed_by_beta() -> None:
    """Of first turns, all in one state: the student takes the plan's action with chance p, else by beta."""
    engine, _ = student()
    p = float(engine.policy.log_policy().detach()[engine.policy.tree.node((0,))].exp()[1])
    played, _, _ = collected(600, beta=0.4, decay=1.0)
    unknown = np.mean([np.isnan(e.logprobs[0]) for e in played.episodes])
    right = np.mean([e.turns[0].text == "right" for e in played.episodes])
    assert unknown == pytest.approx(0.4, abs=0.06) and right == pytest.approx(0.4 + 0.6 * p, abs=0.06)


def test_the_schedule() -> None:
    engine, task = student()
    method = make_method("S176", options={"environment": CORRIDOR, "decay": 0.5})
    mixing = method.rollout["mixing"]
    rollout = Dagger(CORRIDOR, Sampling(1), mixing, turns=4)
    shares = []
    for seed in range(4):
        rollout.collect([Ask(task, 1)], engine, np.random.default_rng(seed))
        shares.append(rollout.metrics()["dagger/beta"])
    assert shares == [1.0, 0.5, 0.25, 0.125] and mixing.round == 4
    state = method.state_dict()
    again = make_method("S176", options={"environment": CORRIDOR, "decay": 0.5})
    again.load_state_dict(state)
    assert again.rollout["mixing"].share == 0.0625
    before = mixing.round
    [evaluated] = rollout.play([Ask(task, 4)], [0], engine)
    assert not any(np.isnan(e.logprobs[e.mask]).any() for e in evaluated.episodes) and mixing.round == before


def test_a_single_switch() -> None:
    """In round 2 of switch 1 two turns are the student's, the rest the teacher's."""
    played, _, _ = collected(12, switch=1, round=2)
    for episode in played.episodes:
        own = [not np.isnan(episode.logprobs[t.start]) for t in episode.turns]
        assert own == [k < 2 for k in range(len(own))]
    assert Mixing(switch=2, round=0).teacher_acts(0, np.random.default_rng(0))


def test_rounds_are_aggregated() -> None:
    played, labels, _ = collected(3, beta=1.0)
    batch = Batch.from_groups([played, labels], torch.float64)
    select = Aggregated(replayed=5)
    batch.weights = select(batch)
    assert batch.weights.tolist() == [0] * 3 + [1] * 9
    rng = np.random.default_rng(0)
    assert select.replay(batch, rng) == []
    [old] = select.replay(batch, rng)
    assert len(old) == 5 and len(select.state_dict()["known"]) == 18
    assert {tuple(e.tokens.tolist()) for e in old.episodes} <= {tuple(e.tokens.tolist()) for e in labels.episodes}
    again = Aggregated(replayed=5)
    again.load_state_dict(select.state_dict())
    assert len(again.replay(batch, rng)[0]) == 5
    latest = Aggregated(aggregate="latest")
    assert latest.replay(batch, rng) == [] and latest.replay(batch, rng) == []
    one = relabelled([([4, 5], [6, 7, 8])], batch)
    assert one.tokens.tolist() == [[6, 7, 8]] and one.episodes[0].prompt.tolist() == [4, 5] and bool(one.mask.all())


def test_episodes_that_fail_may_be_left_out() -> None:
    played, labels, _ = collected(24, beta=0.0)
    batch = Batch.from_groups([played, labels], torch.float64)
    kept = Aggregated(solved=True)(batch)[len(played.episodes) :]
    assert kept.tolist() == [float(v.passed is True) for v in labels.verdicts]
    assert 0 <= kept.sum() < len(labels.episodes)


def test_options() -> None:
    method = make_method("S176")
    assert method.objective == SFT("sequence_mean") and method.rollout == "single_turn"
    for bad in ({"beta": 1.5}, {"decay": -0.1}, {"switch": -1}, {"replayed": -1}):
        with pytest.raises(UsageError, match=r"S176|replayed -1"):
            make_method("S176", options=bad)
    with pytest.raises(UsageError, match="no plan"):
        Dagger(f"{__file__}:Planless", Sampling(1))


class Planless(Corridor):
    """A corridor that knows no way."""

    gold = None  # type: ignore[assignment]


@pytest.mark.slow
def test_in_the_lab_labels_where_the_student_goes_help() -> None:
    found = learned("S176", "dagger", steps=10, lr=10.0)
    assert found["final"] > found["start"] + 0.1
    plain = learned("S176", "cloning", steps=10, lr=10.0)
    assert plain["final"] > plain["start"] + 0.1 and plain["rollouts"] == 0, "the teacher acts throughout"


def test_it_trains_a_language_model(tmp_path: Path) -> None:
    world = {"name": "guess", "most": 4}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        method={"name": "S176", "reward": "verdict", "options": {"environment": world, "turns": 3}},
        train={"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"samples": 1},
    )
    rows = [row for row in metrics(folder) if "dagger/labels" in row]
    assert [row["dagger/beta"] for row in rows] == [1.0, 0.5]
    assert all(row["grad_norm"] > 0 and row["dagger/labels"] > 0 for row in rows) and "replay/loss" in rows[1]
