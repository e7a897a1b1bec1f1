"""Hard negatives: each axis of errors by itself, who is mined, what pairs weigh, and the weighted loss by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, recipe, weights

import assay
from assay.batch import Batch
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO, KTO
from assay.papers.process.s186_mathverifier_dpo import HardNegatives
from assay.registry import build
from assay.select.pairs import ID, OVER, WORTH
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.answer.extract import extract
from assay.verify.math.error_profile import AXES, WEIGHTS, Profile, profile

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Task("t", "Tom has 12 apples and buys 30 more. How many?", "42", "math")
GOOD = "12 + 30 = 42, so Tom has \\boxed{42}."


def errors(response: str, right: bool | None = None, task: Task = TASK, truncated: bool = False) -> dict[str, float]:
    """The errors above 0, by axis, and the absurdity if there is any."""
    answer = extract(response)
    found = profile(task, response, answer == "42" if right is None else right, answer, truncated)
    named = {**dict(zip(AXES, found.errors, strict=True)), "absurd": found.absurdity}
    return {name: round(value, 6) for name, value in named.items() if value}


def test_each_axis_by_itself() -> None:
    assert errors(GOOD) == {}
    # A false sum within a right solution, one of two.
    assert errors("2+3=6, and " + GOOD) == {"arithmetic": 0.5}
    assert errors("10/3 = 3.33 and 2/3 = 0.67 and " + GOOD) == {}, "rounded"
    assert errors("10/3 = 3.34, " + GOOD) == {"arithmetic": 0.5}
    assert errors("12 + 30 = 40 + 2 = 42 and it is <<12+30=42>> \\boxed{42}") == {}
    # Steps in a letter: a multiple, a value that solves, and neither.
    assert errors("2x + 24 = 108\n2x = 84\nx = 42, as 12 + 30 = 42. \\boxed{42}") == {}
    assert errors("x + 12 = 54, so x = 41. Still 12 + 30 = 42: \\boxed{42}") == {"algebra": 1.0}
    assert errors("x^2 = 1764\nx = 42, that is 12 + 30 = 42. \\boxed{42}") == {}
    assert errors("2x = 8\n3x = 8\n12 + 30 = 42 \\boxed{42}") == {"algebra": 1.0}
    # Nothing leads to it: no working, both numbers unused, an answer that nothing comes to.
    assert errors("\\boxed{42}") == {"structure": 1.0}
    assert errors("12 and so on.\nThat makes 42 apples. \\boxed{42}") == {"structure": round(0.5 / 3, 6)}
    assert errors(GOOD, truncated=True) == {"form": 1.0, "absurd": 1.0}
    # Of five runs of four words one is said again.
    again = "12 + 30 = 42 12 + 30 = \\boxed{42}"
    words = again.split()
    runs = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
    assert errors(again)["form"] == pytest.approx(1 - len(set(runs)) / len(runs), abs=1e-6) and len(runs) == 7


def test_how_far_and_how_absurd_an_answer_is() -> None:
    near = errors("12 + 30 = 41. \\boxed{41}")
    assert near["answer"] == 1 and near["distance"] == 0.02381 and near["absurd"] == pytest.approx(0.003488, abs=1e-6)
    far = errors("12 * 30 = 360, hence 12 + 30 = 4200. \\boxed{4200}")
    assert far["distance"] == 1 and far["absurd"] == round(2 / 3, 6) and far["arithmetic"] == 0.5
    assert errors("12 30 \\boxed{banana}")["absurd"] == 1 and errors("12 30 \\boxed{banana}")["distance"] == 1
    assert errors("12 - 30 = -18 \\boxed{-42}")["absurd"] == 0.5, "a wrong sign"
    assert errors("12 30 \\boxed{42.5}")["absurd"] == 0.5, "a broken number where a whole one is asked for"
    assert errors("")["form"] == errors("")["absurd"] == errors("")["distance"] == 1
    text = Task("t", "Which animal?", "the cat")
    assert errors("It purrs. It is \\boxed{the dog}", False, text)["distance"] == 1
    assert "absurd" not in errors("It purrs. It is \\boxed{the dog}", False, text)


@given(st.text(alphabet="0123456789+-*/^=().,x \n\\boxed{}$<>a", max_size=200), st.booleans())
def test_any_text_has_a_profile(response: str, right: bool) -> None:
    found = profile(TASK, response, right, extract(response))
    assert len(found.errors) == 6 and all(0 <= e <= 1 for e in (*found.errors, found.absurdity))
    assert found.errors[0] == (not right)


def test_wrongness_and_weight_by_hand() -> None:
    found = Profile((1, 0, 0.5, 0, 0, 0.2), 0.1)
    assert found.wrongness() == pytest.approx(0.395) and sum(WEIGHTS) == 1
    assert HardNegatives().weight(found) == pytest.approx(1.3555)
    assert HardNegatives(lam=4.0).weight(found) == 2.0 and HardNegatives(lam=0.0).weight(found) == 1.0
    assert HardNegatives(lam=4.0, high=3.0).weight(found) == pytest.approx(2.422)


def batch_of(*texts: str, groups: int = 1, stop: Any = "eos") -> Batch:
    one = np.zeros(1, dtype=np.int64)
    made = []
    for start in range(0, len(texts), len(texts) // groups):
        part = texts[start : start + len(texts) // groups]
        verdicts = tuple(
            Verdict.abstain("?") if "?" in t else Verdict.right() if extract(t) == "42" else Verdict.wrong()
            for t in part
        )
        episodes = tuple(Episode(one, one, one == 0, None, t, stop) for t in part)
        made.append(Group(Ask(TASK, len(part)), episodes, verdicts))
    batch = Batch.from_groups(made, torch.float64)
    batch.rewards = torch.tensor([v.score for v in batch.verdicts], dtype=torch.float64)
    batch.valid = torch.tensor([v.passed is not None for v in batch.verdicts])
    return batch


def picked(batch: Batch) -> list[tuple[int, int]]:
    over = batch.signals[OVER]
    return [(i, int(j)) for i in range(len(batch)) for j in over[i] if j >= 0]


def test_the_miner_takes_the_near_miss() -> None:
    """Of 41 (gold 42), 4200 and "banana" it is 41; a right response is paired with it, and the others are left out."""
    said = [
        "12 + 30 = 4200, \\boxed{4200}",
        "12 30 \\boxed{banana}",
        "12 + 30 = 41, \\boxed{41}",
        GOOD,
        "? \\boxed{41}",
    ]
    batch = batch_of(*said)
    assert HardNegatives()(batch).tolist() == [0, 0, 1, 1, 0] and picked(batch) == [(3, 2)]
    assert batch.signals[ID].tolist() == [0, 1, 2, 3, 4]
    # Every right one is paired, and the first of equals is the negative.
    batch = batch_of("12 + 30 = 41, \\boxed{41}", GOOD, "12 + 30 = 41, \\boxed{41}", GOOD)
    assert HardNegatives()(batch).tolist() == [1, 1, 0, 1] and picked(batch) == [(1, 0), (3, 0)]


def test_what_is_absurd_or_hardly_wrong_is_left_out() -> None:
    absurd = batch_of("12 + 30 = 4200, \\boxed{4200}", GOOD)
    assert HardNegatives()(absurd).tolist() == [0, 0] and picked(absurd) == []
    assert HardNegatives(tau=0.7)(absurd).tolist() == [1, 1]
    # Judged wrong with nothing wrong to be found but the verdict: wrongness 0.3.
    near = batch_of("12 + 30 = 42, \\boxed{42}.0", GOOD)
    assert HardNegatives(least=0.35)(near).tolist() == [0, 0]
    assert HardNegatives()(batch_of("12 \\boxed{41}", "30 \\boxed{41}")).tolist() == [0, 0], "none is right"
    cut = batch_of("12 + 30 = 41, \\boxed{41}", GOOD, stop="length")
    assert HardNegatives()(cut).tolist() == [0, 0], "what is cut short is absurd"


def test_weights_are_bounded_and_have_a_mean_of_1() -> None:
    """Two pairs: 41 with a false sum, W = .3 + .2/42 + .15, B = log10(42/41)/3; and 40 with a true one."""
    batch = batch_of("12 + 30 = 41, \\boxed{41}", GOOD, "12 + 28 = 40 of 30, \\boxed{40}", GOOD, groups=2)
    batch.weights = HardNegatives()(batch)
    worth = batch.signals[WORTH][[1, 3], 0]
    one = 1 + (0.3 + 0.2 / 42 + 0.15) * (1 - math.log10(42 / 41) / 3)
    two = 1 + (0.3 + 0.2 * 2 / 42) * (1 - math.log10(42 / 40) / 3)
    assert worth.tolist() == pytest.approx([2 * one / (one + two), 2 * two / (one + two)])
    assert worth.mean().item() == pytest.approx(1)
    plain = batch_of(GOOD, "12 \\boxed{41}")
    HardNegatives(weighted=False)(plain)
    assert WORTH not in plain.signals


def three_pairs() -> tuple[Batch, torch.Tensor]:
    """Three groups of a right and a wrong response, with beta times their margins .3, .1 and -.2 at beta .1."""
    batch = batch_of(*[GOOD, "12 + 30 = 41, \\boxed{41}"] * 3, groups=3)
    batch.weights = HardNegatives()(batch)
    batch.signals["reference_logprobs"] = torch.full((6, 1), -5.0, dtype=torch.float64)
    batch.totals = batch.count()
    now = torch.tensor([[-2.0], [-5.0], [-4.0], [-5.0], [-7.0], [-5.0]], dtype=torch.float64)
    return batch, now


def test_the_weighted_loss_by_hand() -> None:
    batch, now = three_pairs()
    omega = torch.tensor([1.387, 1.0, 1.8], dtype=torch.float64)
    batch.signals[WORTH][[0, 2, 4], 0] = omega / omega.mean()
    loss = PickedPairs(DPO(0.1))
    assert loss(now, batch).value.item() == pytest.approx(0.680663, abs=1e-6)
    # In micro-batches too, whose pairs bring their weights.
    parts = [torch.tensor(p) for p in ([4, 5], [0, 1, 2, 3])]
    assert sum(loss(now[p], batch.rows(p)).value.item() for p in parts) == pytest.approx(0.680663, abs=1e-6)
    kto = PickedPairs(KTO(0.1))
    own = {}
    for name, factor in (("once", 1.0), ("twice", 2.0)):
        batch.signals[WORTH] = torch.full_like(batch.signals[WORTH], factor)
        own[name] = kto(now, batch).value.item()
    assert own["twice"] == pytest.approx(2 * own["once"])


def test_equal_weights_are_dpo() -> None:
    batch, now = three_pairs()
    assert batch.signals[WORTH][[0, 2, 4], 0].tolist() == pytest.approx([1, 1, 1])
    expected = (0.554355 + 0.644397 + 0.798139) / 3
    assert expected == pytest.approx(0.665630, abs=1e-6)
    assert PickedPairs(DPO(0.1))(now, batch).value.item() == pytest.approx(expected, abs=1e-6)
    assert DPO(0.1)(now, batch).value.item() == pytest.approx(expected, abs=1e-6)


def test_a_verdict_says_what_is_wrong() -> None:
    verifier = build("verify", "error_profile")
    found = verifier(TASK, "12 + 30 = 41. \\boxed{41}")
    assert found.passed is False and found.score == 0
    assert {k: v for k, v in found.parts.items() if k in ("answer", "arithmetic", "algebra")} == {
        "answer": 0.0,
        "arithmetic": 0.0,
        "algebra": 1.0,
    }
    assert found.parts["wrongness | weighted"] == pytest.approx(0.45 + 0.2 / 42)
    assert found.parts["absurdity | at most 1"] == pytest.approx(0.003488, abs=1e-6)
    right = verifier(TASK, GOOD)
    assert right.passed and all(v == 1 for k, v in right.parts.items() if k in AXES)
    place = verifier.answer(TASK, GOOD)
    assert GOOD[place.start : place.end] == "42"
    assert build("verify", {"name": "error_profile", "verifier": "number"})(Task("t", "", None), "4").passed is None


@pytest.mark.parametrize(
    "bad", [{"axes": [0.5, 0.5]}, {"axes": [1, 1, 0, 0, 0, 0]}, {"low": 0.0}, {"high": 0.9}, {"lam": -1.0}]
)
def test_options_that_cannot_be(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="hard_negatives"):
        build("select", {"name": "hard_negatives", **bad})


def test_fine_tuning_and_then_pairs_of_records(tmp_path: Path) -> None:
    """Three arms: the supervised warm-up alone, and after it DPO on records with weights and without."""
    said = [{"text": t} for t in ("4", "5", "8", "3")]
    tasks = [Task(f"{a}", f"{a}+{4 - a}=", "4", "number", solution="4", meta={"responses": said}) for a in range(4)]
    sections: dict[str, Any] = {"warmup": {"steps": 2}, "evaluate": {"every": 0}, "rollout": {"group": 4}}
    sections["train"] = {"steps": 2, "epochs": 1, "mini_batches": 1}
    folders = {}
    for name, options in (("weighted", {}), ("unweighted", {"weighted": False})):
        table = recipe(tmp_path / name, method={"name": "S186", "options": options, "reward": "verdict"}, **sections)
        table["tasks"] = {}
        assay.train(table, tasks=tasks, quiet=True)
        folders[name] = tmp_path / name
    rows = [row for row in metrics(folders["weighted"]) if row["stage"] == "rl"]
    # Of every question the 4 against the 5 or the 3: the 8 is wronger, but its distance is its own.
    assert all(row["pairs"] > 0 and row["loss"] == pytest.approx(math.log(2), abs=0.05) for row in rows)
    assert [row["stage"] for row in metrics(folders["weighted"])].count("warmup") == 2
    one, other = (weights(folder) for folder in folders.values())
    method = make_method("S186")
    assert method.rollout == "recorded" and isinstance(method.objective, PickedPairs)
    assert one.keys() == other.keys() and all(bool(w.isfinite().all()) for w in one.values())


def test_near_misses_are_told_from_the_right_answer_on_other_questions() -> None:
    found = learned("S186", "weighted", steps=12, lr=1.0)
    assert found["near"] > 0.4 > 0.25 > found["near/start"] and found["pairs"] > 10
