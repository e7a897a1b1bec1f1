"""Votes read the answer where the task's verifier does, whatever marks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from assay.registry import build
from assay.rewards.outcome.flipped import Flipped
from assay.rewards.outcome.vote import Ballot
from assay.types import Task
from assay.verify.answer.spans import Span

Make = Callable[..., Any]


def quickstart() -> Task:
    task: Task = build("tasks", {"name": "arithmetic", "operation": "addition", "digits": 2})[0]
    return task


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        (quickstart(), ["12+34\n46", "46", "47"]),
        (Task("hashes", "q", "46", "math"), ["so\n#### 46\nthat is it", "#### 46", "#### 47"]),
        (Task("box", "q", "46", "math"), [r"\boxed{46} is what I find", r"It is $\boxed{46}$.", r"\boxed{47}"]),
        (Task("tag", "q", "46", "exact"), ["<answer>46</answer> done", "<answer> 46 </answer>", "<answer>47</answer>"]),
    ],
    ids=lambda value: value.id if isinstance(value, Task) else None,
)
def test_a_vote_sees_the_answer(make_batch: Make, task: Task, texts: list[str]) -> None:
    batch = make_batch([1, 1, 1], texts=texts, tasks=[task] * 3, groups=[0, 0, 0])
    answers = Ballot().answers(batch)
    assert [a.strip() for a in answers if a] == ["46", "46", "47"]
    assert Ballot().of(batch, range(3), answers).winner == 0
    batch.prompt_group[:] = 0
    reward = build("reward", "majority")(batch)
    assert reward.values.tolist() == [1, 1, 0]


def test_a_vote_asks_the_runs_own_verifier(make_batch: Make) -> None:
    texts = ["a 1 z", "b 1 z", "c 2 z"]
    batch = make_batch(
        [1, 1, 1], texts=texts, groups=[0, 0, 0], tasks=[Task(f"t{i}", "q", "1", "exact") for i in range(3)]
    )
    assert len({*Ballot().answers(batch)}) == 3
    batch.answer = lambda task, text: Span(2, 2, 3, 3)
    assert Ballot().answers(batch) == ["1", "1", "2"]
    assert batch.rows(torch.tensor([2])).answer is batch.answer


def test_where_the_verifier_does_not_say_the_last_line_votes(make_batch: Make) -> None:
    task = Task("t", "q", "1", "none")
    batch = make_batch([1, 1], texts=["so\nblue", "think\nblue"], tasks=[task] * 2, groups=[0, 0])
    assert Ballot().answers(batch) == ["blue", "blue"]
    assert Ballot(fallback="none").answers(batch) == [None, None]


def test_a_response_without_an_answer_is_not_flipped(make_batch: Make) -> None:
    task = Task("t", "q", "1", "math")
    batch = make_batch([1, 1], [0.0, 0.0], texts=["#### 2", ""], tasks=[task] * 2, groups=[0, 0])
    assert Flipped(chance=1.0)(batch).values.tolist() == [1.0, 0.0]


def test_where_no_verifier_is_of_the_tasks_kind_the_last_line_votes(make_batch: Make) -> None:
    """Such tasks are judged by a verifier of the run's own, which need not say where it reads."""
    task = Task("t", "q", "1", "of my own")
    batch = make_batch([1, 1, 1], texts=["so\nblue", "blue", r"\boxed{red}"], tasks=[task] * 3, groups=[0] * 3)
    assert Ballot().answers(batch) == ["blue", "blue", "red"]
