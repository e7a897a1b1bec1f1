"""S116: the length term by hand and its bounds, which accuracy counts for whom, and centred advantages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch, Reward
from assay.catalogue import make
from assay.errors import RunError, UsageError
from assay.rewards.text.embedding import EmbeddingSimilarity
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")
FORMED = "<think>a</think><answer>b</answer>"
OPEN = {"verifiable": False}


class Fixed:
    def __init__(self, values: list[float], valid: list[bool] | None = None):
        self.values, self.valid = values, valid

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor(self.values, dtype=batch.rewards.dtype)
        return Reward(values, valid=None if self.valid is None else torch.tensor(self.valid), terms={"x": values})


def one_prompt(batch: Any) -> Any:
    batch.prompt_group = torch.zeros(len(batch), dtype=torch.int64)
    return batch


def test_lengths_by_hand(make_batch: Callable[..., Any]) -> None:
    batch = one_prompt(make_batch([100, 120, 300], passed=[True, True, False]))
    reward = make("S116").reward(batch)
    assert reward.terms["length"].tolist() == pytest.approx([0, 0, -0.5])
    assert reward.values.tolist() == pytest.approx([1, 1, -0.5])
    short = one_prompt(make_batch([100, 100, 40], passed=[True, True, False]))
    assert make("S116").reward(short).terms["length"].tolist() == pytest.approx([0, 0, -0.5 * 0.35])
    # A quarter off is free; with neither penalty nor tolerance nothing is, and nothing costs.
    near = one_prompt(make_batch([100, 100, 130, 125], passed=[True, True, False, False]))
    assert make("S116").reward(near).terms["length"].tolist() == pytest.approx([0, 0, -0.5 * 0.05, 0])
    strict = make("S116", penalty=1.0, tolerance=0.0).reward(near)
    assert strict.terms["length"].tolist() == pytest.approx([0, 0, -0.3, -0.25])
    assert not make("S116", penalty=0.0, tolerance=0.0).reward(near).terms["length"].any()
    # One right response in two: each prompt has a length of its own. Of length 0 nothing departs.
    two = make_batch([10, 20, 40, 40, 0, 7], passed=[True, False, True, True, True, False])
    two.prompt_group = torch.tensor([0, 0, 1, 1, 2, 2])
    assert make("S116").reward(two).terms["length"].tolist() == pytest.approx([0, -0.375, 0, 0, 0, 0])


def test_three_terms_weigh_the_same(make_batch: Callable[..., Any]) -> None:
    """A right, formed response is worth 2; a wrong, formed one of thrice the length 0.5."""
    batch = one_prompt(make_batch([10, 30, 10], passed=[True, False, False], texts=[FORMED, FORMED, "b"]))
    assert make("S116").reward(batch).values.tolist() == pytest.approx([2, 0.5, 0])
    other = make("S116", weights=(3.0, 2.0, 0.25)).reward(batch)
    assert other.values.tolist() == pytest.approx([3.25, 0.25 - 1, 0])
    assert make("S116", tags=()).reward(batch).values.tolist() == pytest.approx([1, -0.5, 0])


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=8), st.floats(0, 2))
def test_bounds(make_batch: Callable[..., Any], rows: list[tuple[int, bool]], penalty: float) -> None:
    batch = one_prompt(make_batch([n for n, _ in rows], passed=[p for _, p in rows]))
    length = make("S116", penalty=penalty).reward(batch).terms["length"]
    assert bool(((length <= 0) & (length >= -penalty)).all())
    assert any(p for _, p in rows) or not bool(length.any()), "no right response, no yardstick"


def test_a_constant_in_a_term_changes_no_advantage(make_batch: Callable[..., Any]) -> None:
    texts = ["x", "y", "z"]
    plain = make("S116").value(one_prompt(make_batch([2, 2, 9], passed=[True, False, False], texts=texts)))
    formed = make("S116").value(one_prompt(make_batch([2, 2, 9], passed=[True, False, False], texts=[FORMED] * 3)))
    assert formed.rewards.tolist() == pytest.approx((plain.rewards + 1).tolist())
    assert torch.allclose(formed.advantages, plain.advantages, atol=1e-12)
    assert plain.advantages[:, 0].tolist() == pytest.approx((plain.rewards - plain.rewards.mean()).tolist())


def test_open_ended_tasks_have_another_judge(make_batch: Callable[..., Any]) -> None:
    tasks = [Task("a", ""), Task("b", "", meta=OPEN), Task("b", "", meta=OPEN), Task("b", "", meta=OPEN)]
    batch = make_batch([10, 10, 40, 10], passed=[True, False, False, None], tasks=tasks)
    batch.prompt_group = torch.tensor([0, 1, 1, 1])
    reward = make("S116", open_ended=Fixed([0.3, 0.8, 0.4, 1.7], [False, True, True, False])).reward(batch)
    assert reward.terms["accuracy"].tolist() == pytest.approx([1, 0.8, 0.4, 1])
    assert reward.terms["length"].tolist() == pytest.approx([0, 0, -0.5, 0]), "0.8 is good, 0.4 is not"
    assert reward.valid is not None and reward.valid.tolist() == [True, True, True, False]
    half = make("S116", open_ended=Fixed([0.0, 0.5, 0.4, 0.4])).reward(batch)
    assert half.terms["length"].tolist() == pytest.approx([0, 0, -0.5, 0]) and half.valid.all()
    named = make("S116", open_ended={"name": "verdict"}).reward(batch)
    assert (
        named.terms["accuracy"].tolist() == make("S116", open_ended="verdict").reward(batch).terms["accuracy"].tolist()
    )
    batch.verdicts = [v if i else type(v)(0.0, None) for i, v in enumerate(batch.verdicts)]
    assert not make("S116").reward(batch).valid[0]


def test_similarity_to_a_reference(make_batch: Callable[..., Any]) -> None:
    vectors = {"b": [3.0, 4.0], "c": [1.0, 0.0], "d": [-1.0, 0.0], "none": [0.0, 0.0]}
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return [vectors[t] for t in texts]

    tasks = [Task("t", "", r, meta=OPEN) for r in ("c", ["c", "d"], "d", "c", "", None)]
    texts = [FORMED, "d", "c", "", "b", "b"]
    batch = make_batch([1] * 6, texts=texts, tasks=tasks)
    reward = EmbeddingSimilarity(embed)(batch)
    assert reward.values.tolist() == pytest.approx([0.6, 1, -1, 0, 0, 0])
    assert reward.valid is not None and reward.valid.tolist() == [True] * 4 + [False] * 2
    assert asked == [["b", "c", "d"]]
    batch.prompt_group = torch.arange(6)
    hybrid = make("S116", open_ended=embed).reward(batch)
    assert hybrid.terms["accuracy"].tolist() == pytest.approx([0.6, 1, 0, 0, 0, 0])
    with pytest.raises(RunError, match="embeddings"):
        EmbeddingSimilarity(lambda texts: [[float("nan")]] * len(texts))(batch)
    assert EmbeddingSimilarity(embed)(make_batch([])).values.tolist() == []


def test_what_cannot_be() -> None:
    bad: list[dict[str, Any]] = [
        {"penalty": -1.0},
        {"tolerance": -1.0},
        {"weights": (1.0, 1.0)},
        {"weights": (1.0,) * 4},
    ]
    for options in bad:
        with pytest.raises(UsageError):
            make("S116", **options)


@pytest.mark.slow
def test_a_policy_stays_right_on_what_takes_longer() -> None:
    """Against a bonus for being short, after 20 steps."""
    usual, short = (learned("S116", arm, steps=20) for arm in ("usual", "short"))
    assert usual["hard"] > short["hard"] and usual["accuracy"] > short["accuracy"]
    assert usual["length"] > short["length"]
