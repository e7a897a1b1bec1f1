"""The report: complete, escaped, self-contained, and written for any part of a run."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.evaluate import Evaluation, Sample
from assay.report import format as show
from assay.report import write_report
from assay.report.page import shown
from assay.report.run import read_run
from assay.report.svg import MOST_POINTS, Series, axis_labels, line_chart, thinned, ticks
from assay.report.values import values_table

ATTACK = "<script>alert('x')</script> & </pre>"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Checks that tags nest, and collects the visible text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def parse(path: Path) -> tuple[Page, str]:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page, " ".join(" ".join(page.text).split())


def evaluation(label: str, step: int, right: int, tasks: int = 40, k: int = 4, response: str = "") -> Evaluation:
    """``right`` tasks with every sample right, the others with every sample wrong."""
    return Evaluation(
        label,
        step,
        tuple(
            Sample(
                task_id=f"arithmetic/{t}",
                prompt=f"What is {t} + {t}? {ATTACK if t == 0 else ''}",
                response=response or f"{t} + {t} = {2 * t if t < right else 2 * t + 1}\n\nAnswer: {2 * t}",
                score=float(t < right),
                passed=t < right,
                feedback="" if t < right else f"expected {2 * t}",
                length=20 + t,
                stop="eos" if t % 10 else "length",
            )
            for t in range(tasks)
            for _ in range(k)
        ),
    )


def metrics(steps: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for i in range(60):
        loss = 2.5 * math.exp(-i / 15) + 0.3 + 0.05 * rng.normal()
        rows.append(
            {
                "stage": "warmup",
                "step": i + 1,
                "time": 0.5 * i,
                "loss": loss,
                "lr": 1e-3 * min(1, (i + 1) / 20),
                "grad_norm": 1 + rng.random(),
                "tokens_per_second": 5000 + 200 * rng.normal(),
                "time/step": 0.5,
            }
        )
    for i in range(steps):
        p = 0.2 + 0.6 * (1 - math.exp(-3 * i / steps)) + 0.04 * rng.normal()
        rows.append(
            {
                "stage": "rl",
                "step": i + 1,
                "time": 30 + 4.2 * i,
                "reward/mean": p - 0.1,
                "reward/std": 0.3,
                "reward/correct": p,
                "reward/format": 0.9 - 0.2 * math.exp(-i / 20),
                "pass_rate": min(max(p, 0), 1),
                "length/mean": 60 + 0.2 * i + 3 * rng.normal(),
                "length/max": 120 + 10 * rng.random(),
                "entropy": 1.2 * math.exp(-i / 100) + 0.2,
                "kl/ref": 0.0004 * i,
                "kl/behaviour": 0.001 * rng.random(),
                "clip_fraction": 0.02 * rng.random(),
                "grad_norm": 0.4 + 0.1 * rng.random() if i != 7 else None,
                "groups/zero_variance": 0.5 - 0.2 * math.sin(i / 30),
                "truncated": 0.05 * rng.random(),
                "abstained": 0.0,
                "loss": -0.01 * rng.normal(),
                "lr": 1e-5,
                "tokens_per_second": 3000 + 100 * rng.normal(),
                "time/generate": 2.1,
                "time/verify": 0.4,
                "time/update": 1.4,
                "time/step": 4.2,
            }
        )
    return rows


def rollouts(step: int, response: str = "") -> pa.Table:
    rng = np.random.default_rng(step)
    reward = rng.random(16)
    return pa.table(
        {
            "step": [step] * 16,
            "task_id": [f"arithmetic/{i // 8}" for i in range(16)],
            "prompt": ["What is 1 + 1?"] * 16,
            "response": [response or f"step {step}, sample {i}: it is 2" for i in range(16)],
            "score": reward,
            "passed": pa.array([None if i == 3 else bool(reward[i] > 0.5) for i in range(16)], pa.bool_()),
            "feedback": [""] * 16,
            "reward": pa.array([None if i == 3 else reward[i] for i in range(16)], pa.float64()),
            "advantage": reward - reward.mean(),
            "length": [12] * 16,
            "stop": ["eos"] * 16,
        }
    )


def make_run(folder: Path, steps: int = 200) -> Path:
    """A complete synthetic run."""
    run = folder / "countdown-grpo-seed-1"
    (run / "evals").mkdir(parents=True)
    (run / "rollouts").mkdir()
    (run / "config.toml").write_text(f'seed = 1\n\n[model]\nname = "nano"  # {ATTACK}\n')
    (run / "environment.json").write_text(json.dumps({"python": "3.11", "packages": {"torch": "2.13.0"}, "gpu": None}))
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics(steps)))
    for label, step, right in [("initial", 0, 2), ("before", 0, 8), ("step-000100", 100, 26), ("after", steps, 33)]:
        evaluation(label, step, right).to_parquet(run / "evals" / f"{label}.parquet")
    for step in range(steps - 7, steps + 1):
        pq.write_table(rollouts(step), run / "rollouts" / f"step-{step:06d}.parquet")
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path)


def test_a_complete_run_is_reported_in_full(run: Path) -> None:
    path = write_report(run)
    assert path == run / "report.html"
    page, text = parse(path)
    # 8 of 40 tasks before, 33 after: pass@1 is known without computing it.
    assert "20.0% → 82.5%" in text
    assert "+62.5" in text
    assert re.search(r"\+62\.5 points, 95% \[\+4\d\.\d, \+7\d\.\d\]", text)
    for title in (
        "Reward",
        "Pass rate",
        "Response length",
        "Entropy",
        "KL divergence",
        "Clipped tokens",
        "Gradient norm",
        "Groups without variance",
        "Cut off, abstained, unmarked",
        "Reward terms",
        "Warm-up",
        "Where the time went",
    ):
        assert title in text
    # 2.1, 0.4 and 1.4 of 4.2 seconds, 200 times.
    for share in ("generation 50.0%, 7 min 00 s", "verification 9.5%", "update 33.3%", "other 7.1%, 1 min 00 s"):
        assert share in text
    for kind in ("Gained", "Still wrong", "Still right"):
        assert kind in text
    assert "packages.torch" in text and "2.13.0" in text
    assert "What is missing" not in text and "interrupted" not in text
    # The learning rate never changes, which takes a line and no chart.
    assert page.tags.count("svg") == 12 + 1 + 4 and "Never changed, so not drawn. Learning rate: 1e\u22125." in text
    source = path.read_text(encoding="utf-8")
    assert (
        source.count('role="img"') == source.count("aria-label=") == 17
        and 'aria-label="Entropy against step"' in source
    )
    assert source.count("<summary>Values</summary>") == 16
    assert path.stat().st_size < 1_500_000
    assert not list(run.glob(".report*"))


def test_the_page_is_self_contained_and_escaped(run: Path) -> None:
    evaluation("after", 200, 33, response=ATTACK).to_parquet(run / "evals" / "after.parquet")
    pq.write_table(rollouts(200, response=ATTACK), run / "rollouts" / "step-000200.parquet")
    path = write_report(run)
    page, text = parse(path)
    assert "script" not in page.tags and page.links == []
    source = path.read_text()
    assert "<script" not in source and "url(" not in source and "@import" not in source
    # Task prompt, evaluated response, rollout and configuration all show the attack as text.
    assert text.count(ATTACK) >= 4


def test_changes_that_do_not_exclude_zero_are_not_coloured(run: Path) -> None:
    evaluation("after", 200, 9).to_parquet(run / "evals" / "after.parquet")
    source = write_report(run).read_text()
    cell = re.search(r'<span class="(\w+)">\+2\.5</span>', source)
    assert cell is not None and cell[1] == "even"


def test_what_changed_is_shown_by_responses_that_changed(run: Path) -> None:
    def mixed(label: str, step: int, passed: list[bool]) -> Evaluation:
        said = [("a right one" if ok else "a wrong one", float(ok), ok) for ok in passed]
        return Evaluation(
            label, step, tuple(Sample("t", "?", text, score, ok, "", 3, "eos") for text, score, ok in said)
        )

    def shown(before: list[bool], after: list[bool]) -> list[str]:
        mixed("before", 0, before).to_parquet(run / "evals" / "before.parquet")
        mixed("after", 200, after).to_parquet(run / "evals" / "after.parquet")
        part = write_report(run).read_text().split("The same tasks, before and after")[1].split("Rollouts of the")[0]
        return re.findall("<pre>(a .*?)</pre>", part)

    assert shown([True, True, False], [True, False, False]) == ["a right one", "a wrong one"]
    assert shown([True, False, False], [True, True, True]) == ["a wrong one", "a right one"]
    assert shown([False, False, False], [False, False, True]) == ["a wrong one", "a right one"]
    assert shown([False, True, False], [True, False, False]) == []


def test_an_interrupted_run_says_so(run: Path) -> None:
    (run / "evals" / "after.parquet").unlink()
    (run / "environment.json").unlink()
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "rl", "step": 201, "rew')
    (run / "evals" / "broken.parquet").write_bytes(b"PAR1 but no more")
    (run / "rollouts" / "step-000300.parquet").write_bytes(b"")
    _, text = parse(write_report(run))
    assert "no final evaluation" in text and "step 200" in text and "latest evaluation is at step 100" in text
    assert "20.0% → 65.0%" in text
    for note in ("environment.json is missing", "metrics.jsonl: line", "broken.parquet", "step-000300.parquet"):
        assert note in text


def test_every_part_may_be_missing(run: Path) -> None:
    for name in ("config.toml", "environment.json", "metrics.jsonl"):
        kept = (run / name).read_bytes()
        (run / name).unlink()
        _, text = parse(write_report(run))
        assert f"{name} is missing" in text
        (run / name).write_bytes(kept)
    for folder, sentence in (("evals", "There are no evaluations"), ("rollouts", "There are no stored rollouts")):
        moved = (run / folder).rename(run / "aside")
        _, text = parse(write_report(run))
        assert sentence in text
        moved.rename(run / folder)


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("seed = 0\n")
    _, text = parse(write_report(tmp_path))
    assert "no RL step has been recorded" in text and "No evaluation has been stored" in text


def test_a_single_step_and_odd_values(tmp_path: Path) -> None:
    row = {"stage": "rl", "step": 1, "time": 2.0, "reward/mean": 0.0, "entropy": float("nan"), "kl/ref": None, "lr": ""}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + '\n[1]\n{"stage": "other", "step": 1}\n\n')
    _, text = parse(write_report(tmp_path))
    assert "Reward" in text and "Entropy" not in text and "KL divergence" not in text
    assert "metrics.jsonl: line" in text


def test_a_step_repeated_after_a_resume_counts_once(tmp_path: Path) -> None:
    rows = [{"stage": "rl", "step": s, "reward/mean": r} for s, r in ((1, 0.1), (2, 0.2), (2, 0.7), (3, 0.3))]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_run(tmp_path).column("rl", "reward/mean") == ([1, 2, 3], [0.1, 0.7, 0.3])


def test_only_the_last_steps_of_the_rollouts_are_read(run: Path) -> None:
    (run / "rollouts" / "step-000001.parquet").write_bytes(b"never opened")
    found = read_run(run)
    assert {r.step for r in found.rollouts} == {196, 197, 198, 199, 200}
    assert found.notes == []
    source = write_report(run).read_text()
    rewards = sorted(r.reward for r in found.rollouts if r.reward is not None)
    assert f"reward {show.number(rewards[-1])}" in source and f"reward {show.number(rewards[0])}" in source


def test_evaluations_of_other_tasks_are_not_compared(run: Path) -> None:
    evaluation("after", 200, 9, tasks=50).to_parquet(run / "evals" / "after.parquet")
    _, text = parse(write_report(run))
    assert "of different tasks" in text


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="not a run"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.5, 1]), (0, 100, [0, 50, 100]), (0.013, 0.021, [0.01, 0.015, 0.02, 0.025]), (5, 5, [2, 4, 6, 8])],
)
def test_ticks_are_round_and_cover(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, 4) == pytest.approx(expected)


def test_axis_labels_have_the_digits_they_need() -> None:
    assert axis_labels([1, 1.05, 1.1], False) == ["1.00", "1.05", "1.10"]
    assert axis_labels([-0.5, 0, 0.5], True) == ["\u221250%", "0%", "50%"]
    assert axis_labels([0, 2000], False) == ["0", "2,000"]
    assert axis_labels([0, 1e-5], False) == ["0", "1e-5".replace("-", "\u2212")]


def test_a_line_breaks_where_a_value_is_missing() -> None:
    svg = line_chart([Series("s", range(6), [1, 2, math.nan, 4, 5, 6])])
    assert svg.count("<polyline") == 2 and "nan" not in svg
    assert line_chart([Series("s", [1, 2], [math.nan, math.inf])]) == ""


def test_points_lie_where_the_axis_says() -> None:
    svg = line_chart([Series("s", [0, 10], [0.0, 1.0])], share=True, floor=0.0, ceiling=1.0)
    line = re.search(r'<polyline class="line c1" points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)"', svg)
    assert line is not None
    labels = dict(re.findall(r'y="([\d.]+)">(\d+%)', svg))
    heights = {label: float(y) - 3.5 for y, label in labels.items()}
    assert heights["0%"] == pytest.approx(float(line[2]), abs=0.11)
    assert heights["100%"] == pytest.approx(float(line[4]), abs=0.11)


def test_a_table_has_what_a_chart_draws() -> None:
    lines = [
        Series("a<b", [1, 2, 3], [0.5, math.nan, 0.25], [0.25, 0, 0], [1, 0, 0.5]),
        Series("c", [2, 4], [1.0, 0.0]),
    ]
    cells = re.findall("<t[hd]>(.*?)</t[hd]>", values_table(lines, share=True, x_label="k"))
    assert cells[:3] == ["k", "a&lt;b", "c"]
    assert cells[3:] == [
        *("1", "50.0% [25.0%, 100.0%]", show.MISSING),
        *("2", show.MISSING, "100.0%"),
        *("3", "25.0% [0.0%, 50.0%]", show.MISSING),
        *("4", show.MISSING, "0.0%"),
    ]
    assert values_table([Series("s", [1], [math.nan])]) == ""


def test_curves_that_coincide_are_told_apart() -> None:
    style = resources.files("assay.report").joinpath("style.css").read_text(encoding="utf-8")
    dashes = dict(re.findall(r"\.line\.c(\d) \{ stroke-dasharray: ([\d. ]+);", style))
    assert set(dashes) == set("23456") and len(set(dashes.values())) == 5


@given(st.lists(st.floats(), min_size=1, max_size=8), st.booleans(), st.sampled_from([None, 0.0]))
def test_no_values_break_a_chart(values: list[float], share: bool, floor: float | None) -> None:
    svg = line_chart([Series("s", range(len(values)), values)], share=share, floor=floor)
    placed = re.findall(r' (?:x|y|x1|x2|y1|y2|cx|cy|points)="([^"]*)"', svg)
    numbers = [float(v) for attribute in placed for v in re.split("[ ,]", attribute) if v]
    assert all(-1 <= v <= 400 for v in numbers)
    assert bool(svg) == any(abs(v) < 1e300 for v in values)


def test_long_curves_are_averaged_and_keep_their_mean() -> None:
    long = Series("s", list(range(16_000)), [float(i % 7) for i in range(16_000)])
    short = thinned(long)
    assert len(short.x) == len(short.y) == MOST_POINTS
    assert np.mean(short.y) == pytest.approx(np.mean(long.y))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.12345, "0.123"),
        (1234.5, "1,234"),
        (-0.5, "\u22120.5"),
        (3e-6, "3e\u22126"),
        (2.5e12, "2.5e12"),
        (None, "\u2013"),
        (math.nan, "\u2013"),
        (math.inf, "∞"),
        (100, "100"),
        (0.1 + 0.2, "0.3"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert show.number(value) == text


def test_durations_and_shares() -> None:
    assert [show.duration(s) for s in (4.2, 65, 3600 * 3 + 425)] == ["4.2 s", "1 min 05 s", "3 h 07 min"]
    assert show.percent(0.4123) == "41.2%" and show.points(-0.031) == "\u22123.1" and show.count(12345.0) == "12,345"


def test_what_was_drawn_is_shown_and_nothing_else_is_html() -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    found = str(shown(f"<think>x</think>{url} data:image/svg+xml;base64,AAAA <img src={url}>"))
    assert found.count("<img") == 2 == found.count(f'<img class="drawn" alt="picture" src="{url}">')
    assert "&lt;think&gt;x" in found and "&lt;img src=" in found and "data:image/svg+xml" in found
    assert str(shown("x" * 7000 + url)).startswith("x" * 3000 + "\n\n[… 1,000 characters left out …]")
    assert str(shown(None)) == ""
