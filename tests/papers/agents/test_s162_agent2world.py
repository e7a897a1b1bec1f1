"""Agent2World: conversations are kept by their last model, turns are paid by hidden tests, and play finds faults."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, run, tables
from sandbox.support import needs_sandbox

from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.credit.turns.turn_group import TurnGroup
from assay.errors import UsageError
from assay.lab.settings import load
from assay.objectives.sft import SFT
from assay.papers.agents.s162_agent2world import agent2world
from assay.rewards.shaping.weighted import WeightedSum
from assay.select.verdicts import OfVerdict
from assay.types import Ask, Episode, Group, Task, Turn, Verdict
from assay.verify.behaviour.components import Counts, macro, micro
from assay.verify.behaviour.returns import normalised_return

RIGHT, WRONG = Verdict.right(), Verdict.wrong()


def conversation(*rewards: float) -> Episode:
    """Turns of two tokens each, with one of the testers' after each."""
    turns = tuple(Turn(k, 3 * k, 3 * k + 2, reward=r) for k, r in enumerate(rewards))
    tokens = np.zeros(3 * len(rewards), int)
    return Episode(
        tokens[:1], tokens, np.arange(len(tokens)) % 3 < 2, tokens.astype(np.float32), "", "eos", turns=turns
    )


def test_the_worked_numbers() -> None:
    every = [Counts(3, 3, 3), Counts(2, 2, 2), Counts(3, 3, 4)]
    assert (micro(every).precision, round(micro(every).recall, 4), round(micro(every).f1, 4)) == (1, 0.8889, 0.9412)
    assert round(every[2].f1, 4) == 0.8571 and round(macro(every), 4) == 0.9524
    assert normalised_return(6, 1, 11) == 0.5


def test_turns_are_paid_where_they_gain() -> None:
    """Shares of hidden tests .25, .5, .5, 1: turns after the draft earn .25, 0, .5, and the verdict comes beside."""
    batch = Batch.from_groups([Group(Ask(Task("a", ""), 1), (conversation(0.25, 0.0, 0.5),), (RIGHT,))])
    plain = agent2world("rl").reward(batch)  # type: ignore[union-attr, operator]
    assert plain.tokens[0].tolist() == [0, 0.25, 0, 0, 0, 0, 0, 0.5, 0] and plain.values.tolist() == [1.0]
    method = agent2world("rl", weight=2.0)
    assert isinstance(method.reward, WeightedSum) and isinstance(method.credit, TurnGroup)
    given = method.reward(batch)
    assert given.tokens is not None
    assert given.tokens[0].tolist() == [0, 0.5, 0, 0, 0, 0, 0, 1.0, 0] and given.values.tolist() == [1.0]


def test_only_conversations_that_end_well() -> None:
    """No example ends in a failing model, however good a version before it was; testers' words are not learned."""
    good, worse = conversation(0.5, 0.5), conversation(1.0, -0.5)
    verdicts = (RIGHT, WRONG, Verdict.abstain("gone"), Verdict(0.99, False), RIGHT)
    batch = Batch.from_groups([Group(Ask(Task("a", ""), 5), (good, worse, good, worse, worse), verdicts)])
    method = agent2world()
    assert isinstance(method.select, OfVerdict) and isinstance(method.objective, SFT)
    assert method.select(batch).tolist() == [1, 0, 0, 0, 1]
    assert agent2world(per_prompt=1).select(batch).tolist() == [1, 0, 0, 0, 0]  # type: ignore[union-attr, operator]
    batch.weights = method.select(batch)
    batch.totals = batch.count()
    logprobs = torch.full((5, 6), -1.0, requires_grad=True)
    method.objective(logprobs, batch).value.backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([-0.125, -0.125, 0, -0.125, -0.125, 0])
    assert not logprobs.grad[1:4].any() and logprobs.grad[4].tolist() == logprobs.grad[0].tolist()


@pytest.mark.slow
@needs_sandbox
def test_play_finds_what_static_validation_lets_through(tmp_path: Path) -> None:
    claim = claim_of("S162")
    setting = load(claim.setting, {"kinds": ("domain",)})
    found = {name: setting.run(arm, 3, tmp_path) for name, arm in claim.arms.items()}
    assert found["static"]["caught"] == 0 and found["static"]["kept"] == 1 and found["static"]["right"] == 0.5
    assert found["played"]["caught"] > 0.8 and found["played"]["kept"] == 1 and found["played"]["right"] > 0.9
    assert found["played"]["wrong"] == found["static"]["wrong"] > 0.4
    assert setting.describe()["faults"] == 6
    with pytest.raises(UsageError, match="static or played"):
        setting.run({"judge": "read"}, 3, tmp_path)


WORLD = """
from assay.environments.tools import tool
from assay.environments.world_models.environment import WorldModels
from assay.tasks.listed import Listed
from assay.types import Task

TRUE = "def step(state, action):\\n    x = state + (1 if action == 'up' else -1)\\n"
TRUE += "    return [x % 5, float(x == 5), x == 5]\\n"
LINE = {"language": "python", "source": TRUE, "starts": [2], "actions": [["up", "down"]], "horizon": 5, "effort": 40}


class Short(WorldModels):
    "Tools in a letter: w writes what is right, e what is nearly, u hands in."

    def tasks(self):
        said = ["[w()]", "[e()]", "[u()]"] * 4
        return Listed([Task(str(i), f"{i}?", {**LINE, "seed": i}, "behaviour", s) for i, s in enumerate(said)])

    def begin(self, task, seed):
        super().begin(task, seed)
        return task.question

    def available(self):
        return tuple(t for t in self.tools() if len(t.name) == 1)

    @tool
    def w(self) -> str:
        "Write."
        return super().write(TRUE)[:1]

    @tool
    def e(self) -> str:
        "Err."
        return super().write(TRUE.replace("-1", "-2"))[:1]

    @tool
    def u(self) -> str:
        "Hand in."
        return super().submit()[:1]
"""


@needs_sandbox
@pytest.mark.parametrize("stage", ["sft", "rl"])
@pytest.mark.slow
def test_it_acts_in_training(stage: str, tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    environment = f"{tmp_path / 'world.py'}:Short"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 64, "alphabet": string.printable}},
        warmup={"steps": 60, "lr": 1e-2, "batch": 6},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.4, "eval_size": 1},
        method={
            "name": "S162",
            "options": {"stage": stage},
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 2, "calls": "python"},
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 6},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    kept = [row for step in tables(folder, "rollouts").values() for row in step]
    assert any(m["grad_norm"] > 0 for m in rows) and all(m["environment/lost"] == 0 for m in rows)
    assert {row["passed"] for row in kept} == {True, False}
    if stage == "sft":
        assert all(0 < m["unselected"] < 1 for m in rows)
    else:
        assert any('"reward": 0.' in row["turns"] for row in kept) and any(
            '"reward": 1.0' in row["turns"] for row in kept
        )
