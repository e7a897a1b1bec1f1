"""Dynamic sampling on rewards: prompts whose rewards hardly differ are replaced within the step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running

import assay
from assay.errors import UsageError
from assay.learning.step import sample
from assay.method import make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.select.chain import Chain
from assay.select.reward_std import RewardSpread
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


class Scripted:
    """Answers its n-th ask with responses whose texts are the n-th rewards."""

    def __init__(self, rewards: Sequence[Sequence[float]]):
        self.rewards, self.asked = list(rewards), 0

    def collect(self, asks: Sequence[Ask], engine: Any, rng: Any) -> list[Group]:
        groups = []
        for ask in asks:
            rewards = self.rewards[self.asked] if self.asked < len(self.rewards) else [0.0, 0.0]
            one = np.zeros(1, dtype=np.int64)
            groups.append(
                Group(ask, tuple(Episode(one, one, one == 0, np.zeros(1, np.float32), str(r), "eos") for r in rewards))
            )
            self.asked += 1
        return groups


def stepped(rewards: Sequence[Sequence[float]], select: Any, prompts: int = 2, more: bool = True) -> Any:
    """One step over scripted rewards: how many prompts were asked, which were selected from, and the batch."""
    task = Task("t", "")
    asks = [Ask(task, 2)] * prompts
    rollout = Scripted(rewards)
    policy = TabularPolicy(Tree.bandit(2))
    groups, batch = sample(
        asks,
        rollout,
        None,  # type: ignore[arg-type]
        lambda task, text: Verdict(float(text), float(text) > 0.5),
        make_method("grpo", select=select),
        Models(policy),
        np.random.default_rng(0),
        more=(lambda: asks) if more else None,
    )
    assert len(groups) == rollout.asked
    return rollout.asked, [float(e.text) for e in batch.episodes], batch


FLAT, GOOD, BETTER = [1.0, 1.0], [0.0, 1.0], [0.2, 0.8]


def spread(rounds: int = 5, **options: Any) -> RewardSpread:
    return RewardSpread(0.0, least=1e-6, rounds=rounds, **options)


def test_what_does_not_differ_is_replaced_until_the_step_is_full() -> None:
    asked, kept, batch = stepped([FLAT, GOOD, FLAT, FLAT, BETTER, GOOD], spread())
    # Three rounds of two; the second prompt of the last round is one too many.
    assert asked == 6 and kept == [*GOOD, *BETTER]
    assert batch.weights.tolist() == [1] * 4 and batch.totals.groups == 2
    assert batch.advantages[:, 0].tolist() == pytest.approx([-0.7071, 0.7071] * 2, abs=1e-3)


def test_a_full_first_round_is_not_valued_twice() -> None:
    calls = []

    def counted(task: Task, response: str) -> float:
        calls.append(response)
        return float(response)

    task = Task("t", "")
    method = make_method("grpo", select=spread(), reward=counted)
    for script, count in ([GOOD, BETTER], 4), ([GOOD, FLAT, GOOD, GOOD], 4 + 4 + 4):
        calls.clear()
        policy = TabularPolicy(Tree.bandit(2))
        sample(
            [Ask(task, 2)] * 2,
            Scripted(script),
            None,  # type: ignore[arg-type]
            lambda task, text: Verdict.right(),
            method,
            Models(policy),
            np.random.default_rng(0),
            more=lambda: [Ask(task, 2)] * 2,
        )
        assert len(calls) == count


class Leaving(Scripted):
    """Leaves out the last group of its first round, as a rollout may that keeps what differs."""

    def collect(self, asks: Sequence[Ask], engine: Any, rng: Any) -> list[Group]:
        found = super().collect(asks, engine, rng)
        return found[:-1] if self.asked == len(asks) else found


def test_what_a_rollout_leaves_out_is_replaced_too() -> None:
    asks = [Ask(Task("t", ""), 2)] * 2
    groups, batch = sample(
        asks,
        Leaving([GOOD, BETTER, BETTER, GOOD]),
        None,  # type: ignore[arg-type]
        lambda task, text: Verdict(float(text), float(text) > 0.5),
        make_method("grpo", select=spread()),
        Models(TabularPolicy(Tree.bandit(2))),
        np.random.default_rng(0),
        more=lambda: asks,
    )
    assert len(groups) == 3 and [float(e.text) for e in batch.episodes] == [*GOOD, *BETTER]


def test_it_stops_after_its_rounds_with_what_there_is() -> None:
    assert stepped([FLAT, GOOD], spread(3))[:2] == (6, GOOD)
    # Where nothing differs there is nothing to learn.
    asked, kept, batch = stepped([], spread(2))
    assert asked == 4 and kept == [0.0] * 4 and batch.weights.tolist() == [0] * 4


def test_one_round_or_nobody_to_ask_leaves_out_and_replaces_nothing() -> None:
    for asked, kept, batch in (stepped([FLAT, GOOD], spread(1)), stepped([FLAT, GOOD], spread(), more=False)):
        assert asked == 2 and kept == [*FLAT, *GOOD] and batch.weights.tolist() == [0, 0, 1, 1]


def test_in_a_chain() -> None:
    asked, kept, batch = stepped([FLAT, GOOD, GOOD, FLAT], Chain([spread(), "all"]))
    assert asked == 4 and kept == [*GOOD, *GOOD] and batch.weights.tolist() == [1] * 4


def test_the_mean_is_over_all_that_was_asked() -> None:
    select = RewardSpread(0.0, after=0, wait=1, ddof=0, least=1e-6, rounds=4)
    stepped([FLAT, GOOD, BETTER, FLAT], select)
    # Deviations 0, 0.5, 0.3 and 0, though two prompts alone are left.
    assert select.state_dict()["mean"] == pytest.approx(0.2)
    assert select.metrics() == {"spread/kept": 0.5}


def test_the_threshold_of_a_step_is_the_same_in_all_its_rounds() -> None:
    select = RewardSpread(1.0, decay=0.5, after=0, wait=1, ddof=0, rounds=3)
    select.load_state_dict({"done": 4, "mean": 0.4, "last": 0.6, "counted": 1})
    assert select.threshold == pytest.approx(0.5)
    asked, kept, _ = stepped([GOOD, BETTER, BETTER, GOOD], select)
    assert asked == 4 and kept == [*GOOD, *GOOD]
    assert select.threshold == pytest.approx(0.5 * 0.5 + 0.5 * 0.4)


def test_options() -> None:
    for bad in ({"least": -1.0}, {"rounds": 0}):
        with pytest.raises(UsageError, match="reward_std"):
            RewardSpread(**bad)


@pytest.mark.slow
def test_in_a_run_that_is_resumed(tmp_path: Path) -> None:
    method = {
        "reward": {"name": "function", "function": f"{running.__file__}:varied"},
        "select": {"name": "reward_std", "beta": 1.2, "after": 0, "wait": 1, "rounds": 3},
    }
    whole = running.run(tmp_path / "whole", method=method)
    rows = [r for r in running.metrics(whole) if r["stage"] == "rl"]
    assert any(r["spread/kept"] < 1 for r in rows)
    parts = running.run(tmp_path / "parts", method=method, train={"steps": 2})
    assay.train(resume=parts, overrides=["train.steps=4"], quiet=True)
    running.assert_same(parts, whole)
