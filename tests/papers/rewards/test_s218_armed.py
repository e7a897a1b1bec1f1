"""S218: the stretched range by hand, its invariants and its memory; the words, the form, and how far rewards tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch, Reward
from assay.catalogue import make
from assay.catalogue.claim import claim_of
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.papers.rewards.s218_armed import discriminability, wording
from assay.registry import build
from assay.rewards.shaping.running_range import RunningRange
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

SCORES = [0.90, 0.91, 0.92, 0.93]
GOLD = Task("t", "What is seen?", "left pleural effusion")


class Given:
    """A reward that is what it was told to be."""

    def __init__(self, values: list[float], valid: list[bool] | None = None):
        self.values, self.valid = values, valid

    def __call__(self, batch: Batch) -> Reward:
        valid = None if self.valid is None else torch.tensor(self.valid)
        return Reward(torch.tensor(self.values, dtype=batch.rewards.dtype), valid=valid)


def groups(*sizes: int) -> Batch:
    none = np.zeros(0, dtype=np.int64)
    episode = Episode(none, none, none == 0, none.astype(np.float32), "", "eos")
    made = [Group(Ask(GOLD, n), (episode,) * n, (Verdict.right(),) * n) for n in sizes]
    return Batch.from_groups(made, torch.float64)


def spread(values: list[float], sizes: list[int] | None = None, **options: Any) -> list[float]:
    found: list[float] = RunningRange(Given(values), **options)(groups(*(sizes or [len(values)]))).values.tolist()
    return found


def bent(*shares: float) -> list[float]:
    """The S-shaped map of places between the ends of a band, its threshold half-way."""
    return [1 / (1 + math.exp(-10 * (x - 0.5))) for x in shares]


def said(answer: str) -> str:
    return f"<think>look</think><answer>{answer}</answer>"


def rewards(make_batch: Callable[..., Any], texts: list[str], task: Task = GOLD, **options: Any) -> Reward:
    batch = make_batch([1] * len(texts), groups=[0] * len(texts), texts=texts, tasks=[task] * len(texts))
    found: Reward = make("S218", **options).reward(batch)
    return found


# The range


def test_the_worked_example() -> None:
    """The threshold is at 0.915, the band 0.03 wide: sigmoids of -5, -5/3, 5/3 and 5."""
    assert spread(SCORES, low=0.0, high=1.0) == pytest.approx([0.006693, 0.158869, 0.841131, 0.993307], abs=1e-6)
    assert float(np.std(SCORES, ddof=1)) == pytest.approx(0.01291, abs=1e-5)
    # 5% and 95% of these four lie at 0.9015 and 0.9285.
    assert spread(SCORES) == pytest.approx(bent(*((s - 0.9015) / 0.027 for s in SCORES)))
    # A quarter of the way the threshold is at 0.9075; sigmoids of -0.0075, 0.0025, 0.0125 and 0.0225 over 0.03.
    found = spread(SCORES, threshold=0.25, low=0.0, high=1.0, slope=3.0)
    assert found == pytest.approx([0.320821, 0.562177, 0.777300, 0.904651], abs=1e-6)


@pytest.mark.slow
@given(st.lists(st.floats(-5, 5, width=16), min_size=1, max_size=12), st.integers(1, 4))
def test_order_is_kept_and_the_range_is_the_unit_interval(values: list[float], rounds: int) -> None:
    part, batch = RunningRange(Given(values)), groups(len(values))
    for _ in range(rounds):
        found = part(batch).values.tolist()
    pairs = list(zip(values, found, strict=True))
    assert all(0 <= y <= 1 for y in found)
    assert all(y1 <= y2 for x1, y1 in pairs for x2, y2 in pairs if x1 <= x2)


def test_a_shift_and_a_stretch_of_the_band_change_nothing() -> None:
    values = [0.2, 0.9, 0.4, 0.5, 0.1]
    assert spread([0.85 + 0.1 * v for v in values]) == pytest.approx(spread(values))


def test_the_map_is_one_for_all_prompts_of_a_step() -> None:
    found = spread([0.90, 0.95, 0.80, 0.95], [2, 2])
    assert found[1] == found[3] and 0 < found[0] < 1


def test_equal_scores_are_worth_the_same() -> None:
    assert spread([0.9] * 4) == [0.5] * 4
    batch = make("S218").value(groups(3))
    assert not batch.advantages.any()


def test_where_the_band_is_a_point_the_group_decides() -> None:
    """Nearly all of the memory is one number: its quantiles are too, and an outlier shows within its group alone."""
    values = [0.9] * 98 + [0.8, 0.95]
    found = spread(values, [96, 4])
    assert found[:96] == [0.5] * 96 and found[96:] == pytest.approx(bent(2 / 3, 2 / 3, 0, 1))


def test_it_follows_the_band_and_remembers_so_much() -> None:
    part = RunningRange(Given([0.0, 1.0] * 2), memory=4)
    assert part(groups(4)).values.tolist() == pytest.approx(bent(0, 1, 0, 1))
    part.inner["raw"] = Given([0.90, 0.92, 0.94, 0.96])
    again = part(groups(4)).values.tolist()
    assert again == pytest.approx(spread([0.90, 0.92, 0.94, 0.96])), "what was before is forgotten"
    longer = RunningRange(Given([0.0, 1.0] * 2), memory=8)
    longer(groups(4))
    longer.inner["raw"] = Given([0.90, 0.92, 0.94, 0.96])
    late = longer(groups(4)).values.tolist()
    assert max(late) - min(late) < 0.5 < max(again) - min(again)


def test_memory_survives_a_checkpoint() -> None:
    one, other = RunningRange(Given(SCORES)), RunningRange(Given([0.0, 0.5, 1.0, 2.0]))
    other(groups(4))
    one(groups(4))
    other.load_state_dict(one.state_dict())
    other.inner["raw"] = Given(SCORES)
    assert torch.equal(one(groups(4)).values, other(groups(4)).values)
    method = make("S218")
    assert "running_range" not in method.state_dict() and any("seen" in str(s) for s in method.state_dict().values())


def test_samples_without_a_score_are_not_remembered() -> None:
    part = RunningRange(Given([*SCORES, 9.0, float("nan")], [True] * 4 + [False] * 2), low=0.0, high=1.0)
    found = part(groups(6))
    assert found.values[:4].tolist() == pytest.approx(bent(0, 1 / 3, 2 / 3, 1)) and len(part.seen) == 4
    assert found.valid is not None and found.valid.tolist() == [True] * 4 + [False] * 2
    nothing = RunningRange(Given([1.0, 2.0], [False, False]))(groups(2))
    assert nothing.values.tolist() == [0.5, 0.5]


def test_what_cannot_be() -> None:
    least = RunningRange(Given([0.0]), low=0.0, high=1.0, memory=2)
    assert (least.quantiles, least.seen.maxlen) == ((0.5, 0.0, 1.0), 2)
    assert [RunningRange(threshold=t).quantiles[0] for t in (0.0, 1.0)] == [0, 1]
    with pytest.raises(RunError, match=r"row 1 .task t. has the reward nan"):
        spread([0.1, float("nan")])
    bounds = [{"low": 0.9, "high": 0.1}, {"low": 0.5, "high": 0.5}, {"low": -0.1}, {"high": 1.5}]
    bounds += [{"threshold": -0.1}, {"threshold": 1.1}, {"slope": 0.0}]
    for bad in (*bounds, {"memory": 1}, {"epsilon": 0.0}):
        with pytest.raises(UsageError, match="running_range"):
            build("reward", {"name": "running_range", **bad})


def test_a_band_of_epsilon_is_wide_enough() -> None:
    """The memory's band first, at its bound; then that of the group, at its own."""
    assert spread([0.0, 0.5], [1, 1], low=0.0, high=1.0, epsilon=0.5) == pytest.approx(bent(0, 1))
    assert spread([0.0, 0.5], [1, 1], low=0.0, high=1.0, epsilon=0.51) == [0.5, 0.5]
    found = spread([0.0] * 99 + [0.25], [96, 4], epsilon=0.25)
    assert found[:96] == [0.5] * 96 and found[96:] == pytest.approx(bent(0, 0, 0, 1))
    assert spread([0.0] * 99 + [0.25], [96, 4], epsilon=0.26) == [0.5] * 100


def test_groups_without_a_score_and_batches_without_a_sample() -> None:
    part = RunningRange(Given([0.9, 0.9, 7.0, 7.0, 0.9, 9.0], [True, True, False, False, True, False]))
    found = part(groups(2, 2, 2)).values.tolist()
    assert found[:2] == [0.5, 0.5] and found[4] == 0.5 and all(0 <= x <= 1 for x in found)
    part.inner["raw"] = Given([])
    assert part(Batch.from_groups([], torch.float64)).values.tolist() == []


def test_defaults() -> None:
    """The median, 5% and 95% of 2,048 similarities, slope 10; form, words and meaning weigh the same."""
    method = make("S218").reward
    assert method.weights == {"form": 1.0, "text": 1.0, "semantic": 1.0}
    for part in (method.inner["semantic"], RunningRange()):
        assert (part.quantiles, part.slope) == ((0.5, 0.05, 0.95), 10.0)
        assert (part.seen.maxlen, part.epsilon) == (2048, 1e-6)


# The sum


def test_terms_add_up(make_batch: Callable[..., Any]) -> None:
    texts = [said("Left pleural effusion."), said("pleural effusion"), said("pneumonia"), "pleural effusion"]
    found = rewards(make_batch, texts, low=0.0, high=1.0, form=0.5)
    form, text, semantic = (found.terms[name].tolist() for name in ("form", "text", "semantic"))
    assert form == [1, 1, 1, 0]
    # BLEU-1 of two words of three: e^(1 - 3/2); F1 2 * 2 / 5.
    assert text == pytest.approx([1, (np.exp(-0.5) + 0.8) / 2, 0, (np.exp(-0.5) + 0.8) / 2])
    # The threshold is the median of four similarities of which the second and the last are the same.
    raw = found.terms["semantic/raw"].tolist()
    assert semantic[1] == semantic[3] == 0.5
    assert semantic == pytest.approx(bent(*(0.5 + (x - raw[1]) / (raw[0] - raw[2]) for x in raw)))
    sums = [0.5 * f + t + s for f, t, s in zip(form, text, semantic, strict=True)]
    assert found.values.tolist() == pytest.approx(sums)


def test_meaning_comes_from_the_model_that_is_given(make_batch: Callable[..., Any]) -> None:
    angles = {"left pleural effusion": 0.0, "fluid at the left": 0.3, "a tumour": 0.5, "the heart": 0.45}

    def embed(texts: list[str]) -> list[list[float]]:
        return [[np.cos(angles[t]), np.sin(angles[t])] for t in texts]

    texts = [said(t) for t in ("fluid at the left", "the heart", "a tumour")]
    found = rewards(make_batch, texts, embed=embed, low=0.0, high=1.0)
    raw = np.cos([0.3, 0.45, 0.5])
    assert found.terms["semantic/raw"].tolist() == pytest.approx(raw)
    assert found.terms["semantic"].tolist() == pytest.approx(bent(*(0.5 + (raw - raw[1]) / (raw[0] - raw[2]))))
    stretched = found.terms["semantic"].tolist()
    # The gap is a larger part of the sum: form and words are the same for all.
    assert stretched[0] - stretched[1] > 5 * (raw[0] - raw[1])


@pytest.mark.parametrize(
    ("text", "formed"),
    [
        (said("a"), 1),
        (" <think>a\nb</think>\n<answer>c</answer>\n", 1),
        ("<think></think><answer></answer>", 1),
        ("<answer>c</answer>", 0),
        (said("a") + "more", 0),
        (said("a") + "<answer>b</answer>", 0),
        ("<think>a<think>b</think></think><answer>c</answer>", 0),
        ("", 0),
    ],
)
def test_the_form(make_batch: Callable[..., Any], text: str, formed: int) -> None:
    assert rewards(make_batch, [text]).terms["form"].tolist() == [formed]


def make_empty(make_batch: Callable[..., Any]) -> list[float]:
    """What an empty answer earns for words and meaning, where the reference is an article."""
    found = rewards(make_batch, [said("")], Task("t", "", "The"), low=0.0, high=1.0)
    return [found.terms["text"].item(), found.terms["semantic/raw"].item()]


def test_wording(make_batch: Callable[..., Any]) -> None:
    assert make_empty(make_batch) == [0.0, 0.0]
    assert wording("The heart", "heart!") == 1 and wording("heart", "lung") == 0
    assert 0 < wording("left lung", "left heart") < 1
    # One word of two is shared, either way.
    assert wording("left lung", "the left heart") == 0.5
    # Two of four words, for three: BLEU-1 is 2/4, F1 is 4/7; the other way round BLEU-1 is 2/3 exp(1 - 4/3).
    assert wording("clear left lung", "left lung not seen") == pytest.approx((2 / 4 + 4 / 7) / 2)
    assert wording("left lung not seen", "clear left lung") == pytest.approx((2 / 3 * np.exp(-1 / 3) + 4 / 7) / 2)


def test_without_a_reference_or_a_verdict_there_is_no_reward(make_batch: Callable[..., Any]) -> None:
    tasks = [GOLD, Task("e", "", ""), Task("n", "", None), GOLD]
    batch = make_batch([1] * 4, passed=[False, False, True, None], texts=[said("x")] * 4, tasks=tasks)
    assert make("S218").reward(batch).valid.tolist() == [True, False, False, False]
    assert make("S218").reward(batch).values[0].isfinite()


def test_several_references_count_by_the_nearest(make_batch: Callable[..., Any]) -> None:
    task = Task("t", "", ["effusion", "fluid in the chest"])
    assert rewards(make_batch, [said("fluid in the chest")], task).terms["text"].tolist() == [1]


def test_discriminability_by_hand() -> None:
    assert discriminability([1.0, 0.0, 0.5], [True, False, False]) == pytest.approx(0.75 / np.std([1, 0, 0.5]))
    assert discriminability([1.0, 1.0], [True, False]) == 0
    # Means of two right and two wrong: 0.7 and 0.2; the deviation of all is 0.269258.
    assert discriminability([0.8, 0.6, 0.3, 0.1], [True, True, False, False]) == pytest.approx(0.5 / 0.269258, abs=1e-5)
    for bad in ([True, True], [False, False], [True]):
        with pytest.raises(UsageError, match="discriminability"):
            discriminability([1.0, 0.0], bad)


@pytest.mark.slow
def test_a_spread_band_teaches_what_a_narrow_one_does_not(tmp_path: Path) -> None:
    """Right answers are .94 alike and share .3 of the words, wrong ones .89 and .6: the plain sum prefers these."""
    claim = claim_of("S218")
    setting = load(claim.setting, {**claim.options, "steps": 25, "lr": 1.0})
    right = {name: setting.run(arm, 0, tmp_path)["right"] for name, arm in claim.arms.items()}
    assert right["adaptive"] > 0.6 and right["plain"] < 0.3
