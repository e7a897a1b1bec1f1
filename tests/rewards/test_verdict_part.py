"""A verdict's part as a reward, and the bandit of choices whose verdicts have parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.catalogue.claim import claim_of
from assay.errors import RunError, UsageError
from assay.lab.settings.bandits.choices import Setting
from assay.registry import build
from assay.types import Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
PAPERS = ("S003", "S012", "S019", "S036", "S108", "S141", "S167", "S122")


def test_parts_by_hand(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([1] * 5)
    batch.verdicts = [
        Verdict(1.0, True, {"a": 0.5}),
        Verdict(0.0, False, {}),
        Verdict(0.0, False, {"a": None}),
        Verdict(0.0, None, {"a": 1.0}),
        Verdict.abstain("no verifier was asked"),
    ]
    reward = build("reward", {"name": "part", "part": "a", "scale": 2.0})(batch)
    assert reward.values.tolist() == [1, 0, 0, 2, 0]
    assert reward.valid is not None and reward.valid.tolist() == [True, False, False, False, False]
    filled = build("reward", {"name": "part", "part": "a", "missing": 0.25})(batch)
    assert filled.values[1].item() == 0.25 and filled.valid.tolist()[:3] == [True, True, False]
    batch.verdicts = [Verdict(0.0, False, {"a": float("nan")})] * 5
    with pytest.raises(RunError, match=r"'a' of row 0 \(task task-0\)"):
        build("reward", {"name": "part", "part": "a"})(batch)
    with pytest.raises(UsageError):
        build("reward", {"name": "part", "part": ""})


def test_choices_are_measured_exactly(tmp_path: Path) -> None:
    choices: Any = (((0.25, True, {"a": 1.0}), (0.75, False, {})), ((1.0, False, {"a": 0.5}),))
    still = Setting(choices, spread=0.0, steps=1, lr=0.0).run({"name": "grpo"}, 0, tmp_path)
    assert still["right"] == pytest.approx(0.125) == still["area"]
    assert still["part a"] == pytest.approx((0.25 + 0.5) / 2) and still["choice 1"] == pytest.approx(0.5)
    learned = Setting(choices, steps=60).run({"name": "grpo"}, 0, tmp_path)
    assert learned["choice 0"] > 0.9 and learned["rollouts"] == 60 * 32
    wrong: Any = ((choices[0],), (((0.5, True, {}),), choices[1]))
    for bad in wrong:
        with pytest.raises(UsageError):
            Setting(bad)
    with pytest.raises(UsageError):
        Setting(choices, (1.0,))


@pytest.mark.parametrize("key", PAPERS)
def test_claims_can_be_run(key: str, tmp_path: Path) -> None:
    claim = claim_of(key)
    assert claim.setting == "choices"
    for arm in claim.arms.values():
        found = Setting(**{**claim.options, "steps": 2}).run(arm, 0, tmp_path)
        assert claim.measure in found


def test_arms_of_a_seed_start_alike_and_choices_do_not(tmp_path: Path) -> None:
    """Choices that are alike do not start exactly so, or a method could seem to keep them together."""
    alike: Any = (((1.0, True, {}),), ((1.0, True, {}),))
    first, again, other = (Setting(alike, steps=1, lr=0.0).run({"name": "grpo"}, seed, tmp_path) for seed in (0, 0, 1))
    assert first["choice 0"] == again["choice 0"] != other["choice 0"]
    assert first["choice 0"] != pytest.approx(0.5, abs=1e-3)
