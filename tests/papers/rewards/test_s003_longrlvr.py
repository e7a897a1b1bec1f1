"""S003: the published table of rewards, its gate, and tasks with and without evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assay.catalogue import make
from assay.errors import UsageError
from assay.papers.rewards.s003_longrlvr import document_task
from assay.types import Task
from assay.verify.make import make_verifier

pytestmark = pytest.mark.usefixtures("one_thread")
GOLD = Task("t", "", reference={"answer": "blue", "evidence": [0, 5]}, kind="text")


def said(chunks: str, answer: str = "blue") -> str:
    return f"<useful_chunks>{chunks}</useful_chunks><answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("chunks", "right", "expected"),
    [
        ("<CHUNK_0>, <CHUNK_5>", True, 2.0),
        ("<CHUNK_0>, <CHUNK_1>, <CHUNK_2>, <CHUNK_5>", True, 1.833333),
        ("<CHUNK_0>", False, 0.055556),
        ("<CHUNK_0>, <CHUNK_0>, <CHUNK_5>", True, 1.909091),
        ("", True, 1.0),
        ("<CHUNK_7>", True, 1.0),
        ("<CHUNK_0>, <CHUNK_5>", False, 0.1),
        ("[0, 5]", True, 2.0),
    ],
)
def test_rewards_by_hand(make_batch: Callable[..., Any], chunks: str, right: bool, expected: float) -> None:
    batch = make_batch([1], passed=[right], texts=[said(chunks)], tasks=[GOLD])
    assert make("S003").reward(batch).values.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "blue",
        "<answer>blue</answer>",
        "<useful_chunks>0, 5</useful_chunks> blue",
        said("0, 5") + "<answer>blue</answer>",
        said("0, 5") + "<useful_chunks>0</useful_chunks>",
        "</useful_chunks>0, 5<useful_chunks><answer>blue</answer>",
    ],
)
def test_not_exactly_one_block_of_each_is_worth_nothing(make_batch: Callable[..., Any], text: str) -> None:
    batch = make_batch([1], passed=[True], texts=[text], tasks=[GOLD])
    assert make("S003").reward(batch).values.tolist() == [0]
    loose = make("S003", tagged=False).reward(batch).values.item()
    assert loose >= 1, "without the gate the answer still counts"


def test_tasks_without_evidence_and_with_a_broken_one(make_batch: Callable[..., Any]) -> None:
    plain, empty = Task("a", "", reference="blue"), Task("b", "", meta={"evidence": []})
    broken = Task("c", "", meta={"evidence": 3.5})
    batch = make_batch(
        [1] * 5,
        passed=[True, False, True, True, None],
        texts=["blue", "red", said("0"), said("0"), said("0, 5")],
        tasks=[plain, plain, empty, broken, GOLD],
    )
    reward = make("S003").reward(batch)
    assert reward.values[:2].tolist() == [1, 0]
    assert reward.valid is not None and reward.valid.tolist()[:3] == [True, True, False]
    assert reward.valid[4].item() is False
    assert {"answer", "evidence", "format"} <= set(reward.terms)


def test_a_document_task_is_judged_by_the_verifier_it_names(make_batch: Callable[..., Any]) -> None:
    task = document_task("d", ["The sea is blue.", "Cats sleep."], "What colour is the sea?", "blue", [0])
    assert "<CHUNK_1>\nCats sleep." in task.question
    text = said("<CHUNK_0>", "Blue")
    verdict = make_verifier(task.kind)(task, text)
    assert verdict.passed
    batch = make_batch([1], passed=[verdict.passed], texts=[text], tasks=[task])
    assert make("S003").reward(batch).values.tolist() == [2]
    for evidence in ([], [2]):
        with pytest.raises(UsageError, match="evidence"):
            document_task("d", ["a", "b"], "?", "x", evidence)


def test_what_cannot_be() -> None:
    for options in ({"eta": 1.5}, {"beta": 0.0}):
        with pytest.raises(UsageError):
            make("S003", **options)
