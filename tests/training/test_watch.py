"""Signs of a gamed reward: found where they are, seldom where they are not, said once, and the same after a resume."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running

import assay
from assay.records.run_folder import RunFolder
from assay.records.sign import TITLES
from assay.report import write_report
from assay.training.watching.metrics import repetition, rollout_metrics
from assay.training.watching.signs import TRACKED, held_out, in_training, shift, windows
from assay.types import Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


# Synthetic histories


def noise(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """Standard normal, each value correlated by ``phi`` with the one before."""
    x = rng.normal(size=n)
    for i in range(1, n):
        x[i] = phi * x[i - 1] + np.sqrt(1 - phi**2) * x[i]
    return x


def history(seed: int = 0, n: int = 120, phi: float = 0.5, **means: Any) -> dict[str, np.ndarray]:
    """A steady run with the noise of some hundred samples a step; ``means`` replace those of metrics."""
    rng = np.random.default_rng(seed)
    usual = {
        "reward/mean": (0.4, 0.05),
        "reward/std": (0.45, 0.03),
        "score/mean": (0.4, 0.06),
        "length/mean": (100.0, 15.0),
        "repetition": (0.2, 0.04),
        "entropy": (1.0, 0.15),
        "verdict_correlation": (0.8, 0.08),
        "hollow_wins": (0.4, 0.15),
    }
    names = {k.replace("/", "_"): k for k in usual}
    means = {names[k]: v for k, v in means.items()}
    return {k: means.get(k, mean) + sd * noise(rng, n, phi) for k, (mean, sd) in usual.items()}


def looked(found: dict[str, np.ndarray], every: int = 1) -> dict[str, int]:
    """Signs of a run that is looked at every so many steps, each with the step at which it first appears."""
    said: dict[str, int] = {}
    for t in range(every, len(found["entropy"]) + 1, every):
        part = {k: v[:t].tolist() for k, v in found.items()}
        for sign in in_training(part, range(1, t + 1), list(said)):
            said[sign.kind] = t
    return said


RAMP = np.concatenate([np.zeros(60), np.linspace(0, 1, 30), np.ones(30)])
"""Nothing for sixty steps, then a change over thirty."""


@pytest.mark.parametrize(
    ("kind", "means"),
    [
        ("length", {"length_mean": 100 + 200 * RAMP}),
        ("repetition", {"repetition": 0.2 + 0.4 * RAMP}),
        ("agreement", {"verdict_correlation": 0.8 - 0.6 * RAMP}),
        ("entropy", {"entropy": 1.5 - 1.45 * RAMP}),
        ("hollow", {"reward_mean": 0.4 + 0.3 * RAMP, "hollow_wins": 0.4 + 0.5 * RAMP}),
    ],
)
def test_each_sign_is_found_by_itself_and_not_before_it_is_there(kind: str, means: dict[str, np.ndarray]) -> None:
    said = [looked(history(seed, phi=0.3, **means)) for seed in range(8)]
    assert all(s.keys() == {kind} for s in said)
    assert all(60 < s[kind] <= 120 for s in said)


@pytest.mark.parametrize(
    "means",
    [
        {"length_mean": 100 + 200 * RAMP},
        {"repetition": 0.2 + 0.4 * RAMP},
        {"verdict_correlation": 0.8 - 0.6 * RAMP},
        {"entropy": 1.5 - 1.45 * RAMP},
        {"reward_mean": 0.4 + 0.3 * RAMP, "hollow_wins": 0.4 + 0.5 * RAMP},
    ],
)
def test_none_is_a_sign_where_the_verdicts_get_better(means: dict[str, np.ndarray]) -> None:
    better = {"score_mean": 0.4 + 0.4 * RAMP}
    assert [looked(history(seed, phi=0.3, **means, **better), 5) for seed in range(8)] == [{}] * 8


def test_a_reward_gamed_from_the_first_step_is_seen() -> None:
    climb = 1 - np.exp(-np.arange(40) / 6)
    means = {"length_mean": 20 + 200 * climb, "reward_mean": 0.1 + 0.8 * climb, "hollow_wins": 1.0}
    said = looked(history(n=40, phi=0.0, **means))
    assert said.keys() == {"length", "hollow"} and max(said.values()) <= 25


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("learns", [False, True])
def test_at_most_one_honest_run_in_twenty_is_blamed(phi: float, learns: bool) -> None:
    n = 150
    better = 1 - np.exp(-3 * np.arange(n) / n)
    means = {
        "score_mean": 0.2 + 0.6 * better,
        "reward_mean": 0.2 + 0.6 * better,
        "length_mean": 100 * (1 + 2 * better),
        "entropy": np.exp(-4 * better),
    }
    blamed = sum(bool(looked(history(seed, n, phi, **(means if learns else {})), 5)) for seed in range(40))
    assert blamed <= 2


def test_nothing_is_said_before_there_are_two_windows_or_with_nothing_known() -> None:
    wild = {k: [0.0, 0.0, 0.0, 0.0, 1e9, 1e9, 1e9, 1e9, 1e9] for k in TRACKED}
    assert in_training(wild, range(9)) == []
    unknown = {k: [float("nan")] * 40 for k in TRACKED}
    assert in_training(unknown, range(40)) == []
    assert windows(9) == (slice(4, 9), [])


def test_without_verdicts_the_sentence_says_so() -> None:
    found = history(n=60, length_mean=np.repeat([50.0, 300.0], 30), score_mean=np.nan)
    (sign,) = in_training({k: v.tolist() for k, v in found.items()}, range(1, 61))
    assert sign.kind == "length" and "no verdict" in sign.text and sign.since < 31


def test_windows_lie_a_power_of_two_of_windows_back() -> None:
    now, earlier = windows(100)
    assert now == slice(80, 100)
    assert earlier == [slice(0, 20), slice(40, 60)]
    assert windows(1000)[1][-1].stop - windows(1000)[1][-1].start == 25


def test_the_chance_of_a_shift_is_that_of_welch_off_straight_lines() -> None:
    # Off their lines 0, 1, 2, 3 and 10, 11, 12, 13 the windows are off by (1, -1, -1, 1) / 2 each: 1 / 2 / 4 squared.
    off = np.array([0.5, -0.5, -0.5, 0.5])
    found = shift(np.concatenate([np.arange(4) + off, 10 + np.arange(4) + off]), slice(0, 4), slice(4, 8), False)
    assert found is not None and found.rise == pytest.approx(10)
    # Both errors are 1/8, so t = 10 / sqrt(1/4) = 20 with 4 degrees of freedom: p = 1.8e-5 by a table.
    assert found.chance == pytest.approx(1.84e-5, rel=0.01)


@pytest.mark.parametrize(
    ("rise", "interval", "expected"),
    [
        (0.3, (0.0, -0.03, 0.03), True),
        (0.3, (-0.2, -0.25, -0.15), True),
        (0.3, (0.25, 0.2, 0.3), False),  # it did get better
        (0.3, (0.03, 0.01, 0.05), False),  # a little, but surely
        (0.3, (0.0, -0.2, 0.2), False),  # too few tasks to tell
        (0.0, (-0.2, -0.25, -0.15), False),  # the reward did not rise
    ],
)
def test_reward_up_and_held_out_tasks_not(rise: float, interval: tuple[float, float, float], expected: bool) -> None:
    found = history(n=80, reward_mean=0.4 + rise * np.repeat([0.0, 1.0], 40))
    gain, low, high = interval
    sign = held_out({k: v.tolist() for k, v in found.items()}, range(1, 81), 0.5, 0.5 + gain, gain, low, high)
    assert (sign is not None) == expected
    if sign:
        assert f"held-out pass@1 went from 0.500 to {0.5 + gain:.3f}" in sign.text


# What they are looked for in


@pytest.mark.parametrize(
    ("tokens", "share"),
    [([], 0.0), ([1, 1, 1], 0.0), ([1, 2, 3, 4], 0.0), ([7] * 10, 6 / 7), ([1, 2, 3, 4, 5, 1, 2, 3, 4], 1 / 6)],
)
def test_repetition_is_the_share_of_4_grams_that_were_there_before(tokens: list[int], share: float) -> None:
    assert repetition(np.array(tokens, dtype=np.int64)) == pytest.approx(share)


def test_hollow_wins_and_the_correlation_by_hand(make_batch: Any) -> None:
    batch = make_batch([1] * 7, passed=[True, False, False, True, False, None, True])
    batch.verdicts = [Verdict(float(v.passed or 0), v.passed) for v in batch.verdicts]
    batch.prompt_group[:] = batch.prompt_group.new_tensor([0, 0, 0, 1, 1, 1, 2])
    batch.rewards[:] = batch.rewards.new_tensor([0.0, 1.0, 0.0, 1.0, 0.0, 9.0, 1.0])
    found = rollout_metrics(batch)
    # Of the two winners (the abstention is none, nor who is alone) the first is wrong, its mean being 1/3.
    assert found["hollow_wins"] == 0.5
    assert found["score/mean"] == found["pass_rate"] == 0.5
    x, y = [0, 1, 0, 1, 0, 1], [1, 0, 0, 1, 0, 1]
    assert found["verdict_correlation"] == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_unmarked_responses_are_counted_by_themselves(make_batch: Any) -> None:
    batch = make_batch([1] * 4, rewards=[1.0, 0.0, 0.0, 0.0], passed=[True, False, False, None])
    batch.verdicts[2] = Verdict(0.0, False, {"marked": 0.0}, "locate: no answer is marked")
    found = rollout_metrics(batch)
    assert (found["unmarked"], found["abstained"], found["pass_rate"]) == (0.25, 0.25, pytest.approx(1 / 3))


def test_numbers_that_cannot_be_told_are_left_out(make_batch: Any) -> None:
    batch = make_batch([1, 1], rewards=[1.0, 1.0], passed=[True, True])
    assert not {"hollow_wins", "verdict_correlation"} & rollout_metrics(batch).keys()
    batch = make_batch([1, 1], rewards=[1.0, 0.0], passed=[None, None])
    assert not {"hollow_wins", "verdict_correlation", "score/mean"} & rollout_metrics(batch).keys()


# In a run


def digits(task: Any, response: str) -> float:
    """A reward that any policy can game."""
    return sum(map(str.isdigit, response)) / 12


def gamed(folder: Path, **arguments: Any) -> Path:
    sections = running.recipe(
        folder,
        rollout={"prompts": 4, "group": 8, "max_tokens": 12, "max_rows": 64},
        train={"steps": 24, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
        run={"checkpoint_every": 8},
        warmup={"steps": 0},
    )
    sections["method"] = {"name": "grpo"}
    assay.train(sections, **arguments)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gamed(tmp_path_factory.mktemp("gamed") / "run", reward=digits, quiet=True)


def signs(folder: Path) -> Any:
    return json.loads((folder / "signs.json").read_text())


def test_a_run_on_form_is_told_of_once_with_examples(run: Path) -> None:
    found = signs(run)
    kinds = [sign["kind"] for sign in found]
    assert "hollow" in kinds and len(kinds) == len(set(kinds))
    for sign in found:
        assert 10 <= sign["step"] <= 24
        assert 1 <= len(sign["examples"]) <= 3
        stored = running.tables(run, "rollouts")[f"step-{sign['step']:06d}.parquet"]
        for example in sign["examples"]:
            assert any(example.items() <= row.items() for row in stored)
            assert example["reward/digits"] == pytest.approx(digits(None, example["response"]))


def test_the_log_has_one_line_for_each_sign(tmp_path: Path, run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gamed(tmp_path / "run", reward=digits)
    lines = [line for line in capfd.readouterr().err.splitlines() if "sign of a gamed reward" in line]
    assert len(lines) == len(signs(run))
    for line, sign in zip(lines, signs(run), strict=True):
        assert line == (
            f"step {sign['step']}: sign of a gamed reward, {TITLES[sign['kind']]}: since step {sign['since']} "
            f"{sign['text']}"
        )


@pytest.mark.slow
def test_a_resumed_run_says_the_same(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = RunFolder.log

    def logged(self: RunFolder, stage: str, step: int, metrics: dict[str, float]) -> None:
        original(self, stage, step, metrics)
        if step in (7, first):
            signal.raise_signal(signal.SIGTERM)

    folder, first = tmp_path / "run", signs(run)[0]["step"]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", logged)
        gamed(folder, reward=digits, quiet=True)
        assert signs(folder) == []
        assay.train(resume=folder, reward=digits, quiet=True)
        assert signs(folder) == [sign for sign in signs(run) if sign["step"] == first]
    assay.train(resume=folder, reward=digits, quiet=True)
    assert signs(folder) == signs(run)
    # From an earlier checkpoint, what was seen after it is seen again, once.
    (folder / "checkpoints" / "rl-000024" / "trainer.pt").unlink()
    assay.train(resume=folder, reward=digits, quiet=True)
    assert signs(folder) == signs(run)


@pytest.mark.slow
def test_a_run_on_verdicts_shows_no_sign(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = gamed(tmp_path / "run")
    assert signs(folder) == []
    assert "gamed" not in capfd.readouterr().err


# In the report


def test_the_report_shows_signs_and_their_rollouts(run: Path, tmp_path: Path) -> None:
    text = write_report(run).read_text()
    assert "Is the reward being gamed?" in text
    for sign in signs(run):
        assert TITLES[sign["kind"]].capitalize() in text
        assert f"first seen after step {sign['step']}" in text
    assert "No sign of it" not in text


def test_the_report_tells_no_sign_from_no_watch_and_from_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    assert "kept no watch" in write_report(tmp_path).read_text()
    (tmp_path / "signs.json").write_text("[]")
    assert "No sign of it was seen" in write_report(tmp_path).read_text()
    (tmp_path / "signs.json").write_text('[{"kind": "leng')
    assert "signs.json could not be read" in write_report(tmp_path).read_text()
    attack = "<script>alert(1)</script>"
    row = dict.fromkeys(("score", "passed", "reward", "advantage", "length"), None)
    texts = dict.fromkeys(("task_id", "prompt", "response", "feedback", "stop"), attack)
    sign = {"kind": "length", "step": 9, "since": 1, "text": attack, "numbers": {attack: 1.0}}
    (tmp_path / "signs.json").write_text(json.dumps([{**sign, "examples": [{"step": 9, **row, **texts}]}]))
    text = write_report(tmp_path).read_text()
    assert "<script" not in text and text.count("&lt;script&gt;") >= 5
