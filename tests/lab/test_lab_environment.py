"""The setting of environments: what it measures, against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from assay.environments.corridor import ACTIONS
from assay.errors import UsageError
from assay.lab.settings.environment import Setting

pytestmark = pytest.mark.usefixtures("one_thread")


def setting(**options: Any) -> Setting:
    return Setting(**{"environment": {"name": "corridor", "rooms": 3, "moves": 3}, "turns": 3, "steps": 4, **options})


def test_scores_and_turns_are_exact() -> None:
    """A policy that always goes right, and stops with probability 1/2 in its second turn and 1 in its third."""
    made = setting(spread=0.0, tasks=(0, 1))
    engine, tasks = made.player(0)
    assert [t.meta for t in tasks] == [{"start": 1, "goal": 2}, {"start": 1, "goal": 3}]
    logits, tree = engine.policy.logits, engine.policy.tree
    with torch.no_grad():
        for task in (0, 1):
            logits[tree.node([task]), 1] = 60
            logits[tree.node([task, 1]), 1:] = 60
            logits[tree.node([task, 1, 1]), 2] = 60
    assert made.scores(engine).tolist() == pytest.approx([0.5, 0.5])
    turns = made.expected(engine, (tree.lengths - 1).to(torch.float64))
    assert turns.tolist() == pytest.approx([2.5, 2.5])


def test_places_of_words() -> None:
    made = setting(words=(("a", "b"), ACTIONS), tasks=(0,))
    engine, _ = made.player(0)
    tree, place = engine.policy.tree, made.places(engine)
    assert [int(place[tree.node(p)]) for p in ((), (0,), (0, 1), (0, 1, 1), (0, 1, 1, 0))] == [-1, 0, 1, 0, 1]


@pytest.mark.slow
def test_a_run_by_the_trainers_steps() -> None:
    found = setting(steps=40, lr=4.0, group=16).run({"name": "grpo"}, 1, Path())
    assert found["rollouts"] == 40 * 2 * 16 and found["final"] > found["start"] + 0.1
    assert found["moved"] == pytest.approx(found["moved/0"]) and "right_turns" not in found
    assert 1 <= found["turns"] <= 3 and found["worst"] <= found["final"]
    again = setting(steps=40, lr=4.0, group=16).run({"name": "grpo"}, 1, Path())
    assert again == found


@pytest.mark.slow
def test_an_arm_may_ask_the_oracle() -> None:
    found = setting(steps=40, lr=4.0).run({"name": "grpo", "rollout": {"oracle": True}}, 0, Path())
    assert 1 / 3 < found["right_turns"] <= 1


def test_tasks_without_end_have_to_be_named() -> None:
    with pytest.raises(UsageError, match="without an end"):
        Setting(environment="guess", words=(("1", "2"),)).player(0)
