"""GHPO: which groups are asked anew, with how much of the solution, and what is learned of that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, tables
from scripted import Told, operated

from assay.batch import Batch
from assay.method import make_method
from assay.papers.data.s083_ghpo import ghpo
from assay.rewards.function import FunctionReward
from assay.types import Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")
TASK = Task("t", "Q", "1", solution="abcdefghij")
TEMPLATE = "{question}|{hint}"


def knows(shown: int) -> Told:
    """Right in its first response if so many characters of the solution are shown."""
    return Told(lambda prompt, i: "no1" if len(prompt.partition("|")[2]) >= shown and i == 0 else "no")


def under(shown: int, task: Task = TASK, step: int = 0, n: int = 4, **options: Any) -> tuple[Group, list[str], Any]:
    engine = knows(shown)
    method = ghpo(template=TEMPLATE, **options)
    group, made = operated(method.rollout, engine, task, n, step)
    return group, engine.prompts, made


def test_which_groups_are_asked_anew() -> None:
    group, prompts, _ = under(0)
    assert prompts == ["Q"] and group.episodes[0].sampled_prompt is None, "one right response is enough"
    group, prompts, _ = under(2)
    assert prompts == ["Q", "Q|ab"] and [v.passed for v in group.verdicts] == [True, False, False, False]
    assert len(group.episodes) == 4, "the whole group gives way"
    assert under(2, Task("t", "Q", "1"))[1] == ["Q"], "a task without a solution has no hint"


def test_beginnings() -> None:
    """round(2.5) is 2, round(5) is 5, round(7.5) is 8 characters."""
    assert under(11)[1] == ["Q", "Q|ab", "Q|abcde", "Q|abcdefgh"]
    assert under(11, shares=(0.1, 1.0))[1] == ["Q", "Q|a", "Q|abcdefghij"]


def test_the_ladder_stops_at_the_first_success() -> None:
    """A policy that succeeds where half is shown is asked twice more, and is left with a hint of 0.5."""
    group, prompts, made = under(5)
    assert prompts == ["Q", "Q|ab", "Q|abcde"] and made.metrics()["surgery/level"] == 2
    assert "".join(map(chr, group.episodes[0].prompt)) == "Q|abcde"


def test_what_fails_to_the_end() -> None:
    group, _, made = under(11)
    assert "".join(map(chr, group.episodes[0].prompt)) == "Q|abcdefgh" and made.metrics()["surgery/mended"] == 0
    batch = Batch.from_groups([group], torch.float64)
    assert not ghpo().value(batch).advantages.any()


def test_learned_as_sampled() -> None:
    """A = (1.5, -0.5, -0.5, -0.5) of one right in four; the ratio is to the prompt with the hint, in both places."""
    group, _, _ = under(2)
    batch = Batch.from_groups([group], torch.float64)
    found = ghpo().value(batch).advantages[:, 0]
    assert found.tolist() == pytest.approx([1.499997, -0.499999, -0.499999, -0.499999], abs=1e-6)
    for e in group.episodes:
        assert e.sampled_prompt is not None and np.array_equal(e.prompt, e.sampled_prompt)
        assert e.logprobs is not None and np.isfinite(e.logprobs).all() and e.advantage_group is None
    loss = ghpo().objective(batch.logprobs, batch)
    assert loss.metrics["kl/behaviour"] == 0 and loss.metrics["clip_fraction"] == 0


def test_the_format_does_not_trigger() -> None:
    """All wrong, with formats of 0.5 and 0: the group is asked anew, and its advantages are not zero."""
    engine = Told(lambda prompt, i: "no!" if i == 0 else "no")
    group, made = operated(ghpo(template=TEMPLATE).rollout, engine, TASK, 2)
    assert made.metrics()["surgery/cases"] == 1 and len(engine.asked) == 4
    reward = FunctionReward(lambda task, response: float(task.reference == response[-1:]) + 0.5 * ("!" in response))
    batch = Batch.from_groups([group], torch.float64)
    found = replace(ghpo(), reward=reward).value(batch)
    assert found.rewards.tolist() == [0.5, 0.0]
    assert found.advantages[:, 0].tolist() == pytest.approx([0.707105, -0.707105], abs=1e-6)


def test_the_cold_start() -> None:
    for step, prompts in ((1, ["Q", "Q|abcde"]), (2, ["Q", "Q|ab", "Q|abcde", "Q|abcdefgh"])):
        assert under(11, step=step, cold=2)[1] == prompts
    assert under(11, step=0, cold=1, cold_share=0.3)[1] == ["Q", "Q|abc"]


def test_what_it_starts_with() -> None:
    rollout = make_method("S083").rollout
    assert rollout["shares"] == (0.25, 0.5, 0.75) and rollout["cold"] == 0 and rollout["cold_share"] == 0.5
    assert rollout["source"] == "solution" and rollout["opens"] is False


def test_a_run_asks_anew(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        method={"name": "S083", "options": {"template": "{hint}\n{question}"}, "reward": "verdict"},
        tasks={"source": {"name": "arithmetic", "operation": "addition", "digits": 2, "scratchpad": 1.0}},
        rollout={"prompts": 4, "group": 2},
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 48}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert all(row["surgery/cases"] > 0 and row["surgery/sampled"] >= 2 * row["surgery/cases"] for row in rows)
    prompts = {row["prompt"] for table in tables(folder, "rollouts").values() for row in table}
    assert len(prompts) >= 4


@pytest.mark.slow
def test_solved_without_hints() -> None:
    """Success of one in a million becomes likely; what GRPO does, at as many responses, stays what it was."""
    ours, theirs = (learned("S083", arm, rollouts=800, lr=25.0) for arm in ("ghpo", "grpo"))
    assert ours["start"] < 2e-6 and ours["solved"] > 0.9 and theirs["solved"] == theirs["start"]
    assert ours["first_level"] > ours["last_level"]
