"""A run that learns nothing is told of: after three steps, once, and the same after a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import running
import torch

import assay
from assay.training.watching.idle import Idle, without_gradient

pytestmark = pytest.mark.usefixtures("one_thread")

BUSY = {"grad_norm": 0.5, "groups/zero_variance": 0.5, "reward/mean": 0.25, "pass_rate": 0.25}


def told(made: Any, steps: list[dict[str, float]], terms: list[list[float]] | None = None) -> list[str]:
    """Lines of a run, those of an interrupted one being the same."""
    idle, lines = Idle(), []
    for step, metrics in enumerate(steps, 1):
        batch = made([1, 1], rewards=[0.0, 1.0])
        batch.reward_terms = {"form": torch.tensor(terms[step - 1] if terms else [0.0, 1.0])}
        fresh = Idle()
        fresh.load_state_dict(idle.state_dict())
        idle = fresh
        lines += idle.step(step, batch, metrics)
    return lines


def test_nothing_is_said_of_a_run_that_learns(make_batch: Any) -> None:
    assert told(make_batch, [BUSY] * 10) == []
    seldom = [{**BUSY, "grad_norm": 0.0, "groups/zero_variance": 1.0}] * 2 + [BUSY]
    assert told(make_batch, seldom * 5) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grad_norm": 0.0}, "gradient was exactly 0"),
        ({"groups/zero_variance": 0.96}, "in more than 95% of the groups"),
    ],
)
def test_three_idle_steps_are_told_of_once(make_batch: Any, change: dict[str, float], words: str) -> None:
    [line] = told(make_batch, [BUSY, *[{**BUSY, **change}] * 6, BUSY, *[{**BUSY, **change}] * 6])
    assert line.startswith("step 4: ") and words in line and "\n" not in line


def test_what_is_replayed_is_a_gradient_too() -> None:
    """And of a step that says nothing of its gradient nothing is known."""
    assert without_gradient({"grad_norm": 0.0}) and without_gradient({"grad_norm": 0.0, "replay/grad_norm": 0.0})
    assert not any(map(without_gradient, ({"grad_norm": 0.1}, {"grad_norm": 0.0, "replay/grad_norm": 0.1}, {})))


def test_a_term_that_is_the_same_for_every_response_is_named(make_batch: Any) -> None:
    [line] = told(make_batch, [BUSY] * 5, [[0.0, 1.0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    assert line.startswith("step 4: ") and "'form'" in line and "0.5" in line
    # Alike within a step is no constant: a schedule changes from step to step.
    assert told(make_batch, [BUSY] * 5, [[x, x] for x in (0.5, 0.4, 0.3, 0.2, 0.1)]) == []


def nothing(task: Any, response: str) -> float:
    return 0.25


def test_a_run_whose_reward_is_constant_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sections = running.recipe(
        tmp_path / "run",
        warmup={"steps": 0},
        train={"steps": 5, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    sections["method"] = {"name": "grpo"}
    assay.train(sections, reward=nothing)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("step 3: ")]
    for words in ("gradient was exactly 0", "rewards were all equal", "term 'nothing'"):
        assert sum(words in line for line in lines) == 1, lines


@pytest.mark.parametrize("empty", [True, False])
def test_steps_that_leave_nothing_to_learn_from_are_told_of_once(make_batch: Any, empty: bool) -> None:
    """Nobody was asked, or the selection kept none; what else has lasted is not begun anew by that."""
    idle, whole = Idle(), make_batch([1, 1], rewards=[0.0, 1.0])
    batch = whole.rows(torch.zeros(0, dtype=torch.int64)) if empty else whole
    said = [idle.step(step, batch, {"skipped": 1.0}) for step in range(1, 7)]
    assert [len(lines) for lines in said] == [0, 0, 1, 0, 0, 0]
    assert "for 3 steps no response was left to learn from" in said[2][0] and said[2][0].startswith("step 3: ")
    again = Idle()
    for step in range(1, 9):
        assert not again.step(step, *((batch, {"skipped": 1.0}) if step % 3 else (whole, {"grad_norm": 1.0})))


def test_a_run_whose_selection_keeps_nothing_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = running.recipe(
        tmp_path / "run", train={"steps": 4}, warmup={"steps": 0}, evaluate={"samples": 0, "every": 0}
    )
    assay.train({**made, "method": {"name": "dapo"}})
    assert "no response was left to learn from" in "".join(capfd.readouterr())
