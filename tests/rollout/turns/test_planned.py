"""Demonstrations of several turns: the plan's words are the policy's own, the world's stand between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from running import metrics, run

from assay.engines.hf import HFEngine
from assay.environments.base import Observation
from assay.environments.calls import find_calls, written
from assay.environments.functions.environment import Functions
from assay.environments.tools import calls
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer
from assay.rollout.turns.planned import planned
from assay.types import Origin, Task

pytestmark = pytest.mark.usefixtures("one_thread")


def test_calls_are_written_as_they_are_read() -> None:
    world = Functions(style="compact")
    world.reset(world.tasks()[0], 0)
    [first, *_] = [a for a in world.gold() if a.calls]
    for form in ("auto", "tags", "python"):
        read = find_calls(written(first.calls, form), world.available(), form)  # type: ignore[arg-type]
        assert [(c.name, c.arguments, c.problem) for c in read] == [(c.name, c.arguments, "") for c in first.calls]
    assert written(calls(("f", {"x": 3}), ("g", {"y": "a'"})).calls, "python") == 'f(x=3), g(y="a\'")'
    with pytest.raises(UsageError, match="set calls"):
        written(first.calls, "json")


def engine() -> HFEngine:
    config = NanoConfig(hidden=16, layers=1, heads=2)
    tokenizer = nano_tokenizer(config)
    return HFEngine(CausalLM(nano_model(config, len(tokenizer), 0), tokenizer))


def test_a_demonstration_is_the_plan_and_what_came_of_it() -> None:
    by = engine()
    world = Functions(style="compact", shapes=("multi",), hops=2)
    task = world.tasks()[0]
    made = planned(lambda: Functions(style="compact", shapes=("multi",), hops=2), task, by, "python")
    world.reset(task, 0)
    plan = [written(a.calls, "python") if a.calls else a.text for a in world.gold()]
    assert [by.decode(made.tokens[t.start : t.end]) for t in made.turns] == plan
    ends = [int(made.tokens[t.end - 1]) for t in made.turns]
    assert ends == [by.policy.tokenizer.eos_token_id] * 3 and made.stop == "eos" and all(t.valid for t in made.turns)
    own = np.zeros(len(made.tokens), dtype=bool)
    for turn in made.turns:
        own[turn.start : turn.end] = True
    assert np.array_equal(own, made.mask) and np.array_equal(own, made.origins == Origin.OWN)
    first = made.turns[0]
    between = by.decode(made.tokens[first.end : made.turns[1].start])
    assert str(world.problem.subs[0].value) in between
    # A task is demonstrated in one way.
    again = planned(lambda: Functions(style="compact", shapes=("multi",), hops=2), task, by, "python")
    assert np.array_equal(again.tokens, made.tokens)


class Planless:
    """A world that knows no plan, and says so in what it lacks."""

    def reset(self, task: Task, seed: int) -> Observation:
        return Observation(())

    def close(self) -> None:
        pass


def test_a_world_without_a_plan_demonstrates_nothing() -> None:
    with pytest.raises(UsageError, match=r"no plan; set warmup\.steps = 0"):
        planned(Planless, Task("x", "?"), engine())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot demonstrate"):
        planned(Planless, Task("x", "?"), object())  # type: ignore[arg-type]


WORLD = {"name": "functions", "style": "compact", "hops": 2, "width": 2}


def test_a_warm_up_on_plans_and_then_turns(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 160}},
        tasks={"source": {"name": "environment", "environment": WORLD}, "eval_size": 4, "eval_share": 0.2},
        method={
            "reward": "verdict",
            "rollout": {"name": "multi_turn", "environment": WORLD, "calls": "python", "turns": 3},
        },
    )
    rows = metrics(folder)
    warm = [r for r in rows if r["stage"] == "warmup"]
    assert len(warm) == 3 and warm[-1]["loss"] < warm[0]["loss"]
    assert any("environment/turns" in r for r in rows)
