"""Rewards of turns: where they stand, what they are called, what has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from assay.errors import UsageError
from assay.method import make_method
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.process.turns import TurnRewards
from assay.types import ToolCall, Turn, Verdict


def with_turns(batch: Any, *turns: tuple[Turn, ...]) -> Any:
    """Own tokens are those of turns."""
    batch.episodes = [replace(e, turns=t) for e, t in zip(batch.episodes, turns, strict=True)]
    batch.mask = torch.zeros_like(batch.mask)
    for i, row in enumerate(turns):
        for turn in row:
            batch.mask[i, turn.start : turn.end] = True
    return batch


def test_they_stand_on_the_last_own_token_and_returns_see_them(make_batch: Callable[..., Any]) -> None:
    """Two tokens, two of the world's, one token: rewards 1 and 4 beside a verdict of 1."""
    batch = with_turns(
        make_batch([5, 5], passed=[True, None], rewards=[1.0, 0.0]),
        (Turn(0, 0, 2, reward=1.0), Turn(1, 4, 5, reward=4.0)),
        (Turn(0, 0, 2, reward=1.0), Turn(1, 4, 5)),
    )
    found = TurnRewards()(batch)
    assert found.values.tolist() == [0, 0] and found.terms["reward"].tolist() == [5, 1]
    assert found.tokens is not None and found.tokens.tolist() == [[0, 1, 0, 0, 4], [0, 1, 0, 0, 0]]
    assert found.valid is not None and found.valid.tolist() == [True, False]
    valued = make_method("grpo", reward=["verdict", "turns"]).value(batch)
    assert returns_to_go(placed_rewards(valued), valued.mask)[0].tolist() == [6, 6, 0, 0, 5]


def test_a_turn_that_says_nothing_is_paid_before(make_batch: Callable[..., Any]) -> None:
    batch = with_turns(make_batch([3]), (Turn(0, 0, 2), Turn(1, 3, 3, reward=2.0)))
    assert TurnRewards()(batch).tokens.tolist() == [[0, 2, 0]]
    first = with_turns(make_batch([3]), (Turn(0, 0, 0, reward=2.0), Turn(1, 1, 2)))
    assert TurnRewards()(first).tokens.tolist() == [[0, 0, 0]] and TurnRewards()(first).terms["reward"].tolist() == [2]


def test_discount_and_mean(make_batch: Callable[..., Any]) -> None:
    turns = Turn(0, 0, 1, reward=1.0), Turn(1, 1, 2), Turn(2, 2, 3, reward=4.0)
    batch = with_turns(make_batch([3]), turns)
    assert TurnRewards(discount=0.5, placed=False)(batch).values.tolist() == [3]
    assert TurnRewards(reduce="mean", placed=False)(batch).values.tolist() == [2.5]
    assert TurnRewards(reduce="mean")(batch).tokens.tolist() == [[0.5, 0, 2]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("reward", -1), ("verdict", 0.5), ("valid", 1), ("calls", 1), ("near", 3), ("part", 0.25), ("nothing", 0)],
)
def test_names(make_batch: Callable[..., Any], name: str, expected: float) -> None:
    calls = ToolCall("f", {}, 0, 1), ToolCall("f", None, 0, 1, problem="not_json")
    known = Turn(0, 0, 1, calls, -1.0, Verdict(0.5, False, {"part": 0.25, "near": 9.0}), info={"near": 3})
    # An oracle that abstains gives nothing, nor does a turn of which nothing is known.
    batch = with_turns(make_batch([3]), (known, Turn(1, 1, 2, valid=False, verdict=Verdict.abstain("away"))))
    found = TurnRewards(name)(batch)
    assert found.terms[name].tolist() == [expected]
    assert found.tokens is not None and found.tokens.tolist() == [[expected, 0, 0]]


def test_an_episode_without_turns_is_one_turn(make_batch: Callable[..., Any]) -> None:
    assert TurnRewards("valid")(make_batch([3])).tokens.tolist() == [[0, 0, 1]]


def test_what_cannot_be(make_batch: Callable[..., Any]) -> None:
    for options in ({"of": ""}, {"discount": 0.0}, {"discount": 1.5}):
        with pytest.raises(UsageError, match="needs to know of what, and a discount"):
            TurnRewards(**options)
    batch = with_turns(make_batch([1, 1]), (Turn(0, 0, 1, reward=1.0),), (Turn(0, 0, 1, reward=float("inf")),))
    with pytest.raises(UsageError, match=r"row 1 \(task task-1\) is not finite"):
        TurnRewards()(batch)
