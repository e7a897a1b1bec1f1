"""Evaluations: pass@k against enumeration, intervals against SciPy and coverage, storage, and the evaluation loop."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from assay.engines.base import Request, Sampling
from assay.errors import RunError, UsageError
from assay.evaluate import Evaluation, Sample, difference, evaluate, mean_interval, paired_interval, wilson
from assay.statistics.intervals import degrees_with, score_difference, score_interval
from assay.statistics.pass_at_k import pass_at_k
from assay.types import Episode, Stop, Task, Verdict


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(case: tuple[int, int, int]) -> None:
    n, c, k = case
    subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-14)


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
@settings(deadline=None)
def test_pass_at_k_equals_exact_binomials(case: tuple[int, int, int]) -> None:
    n, c, k = case
    missed = math.comb(n - c, k)
    total = math.comb(n, k)
    # Exact integers: their quotient is rounded once.
    assert pass_at_k(n, c, k) == pytest.approx((total - missed) / total, rel=1e-10, abs=0)


def test_pass_at_k_is_unbiased_over_draws() -> None:
    # E over c ~ Binomial(n, p) of the estimate is 1 - (1 - p)^k, summed over all c.
    n, p, k = 12, 0.17, 5
    c = np.arange(n + 1)
    expectation = float(stats.binom.pmf(c, n, p) @ pass_at_k(np.full(n + 1, n), c, k))
    assert expectation == pytest.approx(1 - (1 - p) ** k, abs=1e-12)


def test_pass_at_k_is_vectorised_and_keeps_small_probabilities() -> None:
    assert pass_at_k([10, 8, 4], [3, 0, 4], 2) == pytest.approx([1 - 42 / 90, 0, 1])
    assert float(pass_at_k(10**7, 1, 1)) == pytest.approx(1e-7, rel=1e-12)
    assert not np.signbit(pass_at_k([8], [0], 3)).any()


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        ([8, 3], [1, 1], 4, "at least 4 judged samples per task, got 3"),
        ([4], [1], 0, "k >= 1"),
        ([4], [5], 1, "correct"),
        ([4], [-1], 1, "correct"),
    ],
)
def test_pass_at_k_refuses(n: list[int], c: list[int], k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (7, 10), (10, 10), (250, 1000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_wilson_equals_scipy(successes: int, trials: int, confidence: float) -> None:
    expected = stats.binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    assert wilson(successes, trials, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_refuses() -> None:
    for successes, trials in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="proportion"):
            wilson(successes, trials)


def test_percentile_interval_of_a_tiny_sample_by_enumeration() -> None:
    # All 4^4 resamples of four values are the exact bootstrap distribution.
    values = [0.0, 0.2, 0.3, 1.0]
    means = [sum(r) / 4 for r in itertools.product(values, repeat=4)]
    found = mean_interval(values, resamples=40_000, method="percentile")
    assert (found.low, found.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.02)
    assert found.value == pytest.approx(0.375)


def test_mean_interval_is_near_the_normal_one_for_many_tasks() -> None:
    values = np.random.default_rng(0).beta(2, 3, 2000)
    half = 1.96 * values.std() / math.sqrt(2000)
    found = mean_interval(values, bounds=(0, 1))
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def test_intervals_are_reproducible_and_fast() -> None:
    values = np.random.default_rng(1).random(1000)
    first = mean_interval(values)
    start = time.perf_counter()
    assert mean_interval(values) == first
    drawn = mean_interval(values, method="BCa")
    assert mean_interval(values, method="BCa", resamples=2000) == drawn
    assert time.perf_counter() - start < 3.0
    assert mean_interval(values, method="BCa", seed=1) != drawn
    # Of a thousand values all constructions are one.
    assert (first.low, first.high) == pytest.approx((drawn.low, drawn.high), abs=0.05 * (drawn.high - drawn.low))


def test_mean_interval_covers_the_mean() -> None:
    # 300 data sets of 40 skewed task values; 95% intervals must hold the mean about 95% of the time.
    rng = np.random.default_rng(2)
    found = [mean_interval(rng.beta(0.5, 2, 40), bounds=(0, 1)) for _ in range(300)]
    assert 0.90 <= np.mean([i.low <= 0.2 <= i.high for i in found]) <= 0.985


def test_values_without_variance_do_not_claim_certainty() -> None:
    assert mean_interval([1.0] * 20, bounds=(0, 1)).low == pytest.approx(wilson(20, 20)[0])
    half = mean_interval([0.5] * 20, bounds=(0, 1))
    unseen = wilson(0, 20)[1]
    assert (half.low, half.high) == pytest.approx((0.5 - unseen / 2, 0.5 + unseen / 2))
    same = paired_interval([0.5, 1.0], [0.5, 1.0], bounds=(-1, 1))
    assert same.low == -same.high and same.high == pytest.approx(wilson(0, 2)[1])
    one = mean_interval([3.0])
    assert one.value == 3 and np.isnan([one.low, one.high]).all()


def test_binary_values_give_wilsons_interval() -> None:
    found = mean_interval([1.0] * 3 + [0.0] * 7, bounds=(0, 1))
    assert (found.value, found.low, found.high) == (0.3, *wilson(3, 10))


def score_of(gained: int, lost: int, total: int, difference: float) -> float:
    """Standard errors between a difference and the one seen, under the likeliest shares that have it."""
    least, most = max(0.0, -difference), (1 - difference) / 2

    def unlikely(q: float) -> float:
        shares = np.array([q + difference, q, 1 - difference - 2 * q]).clip(1e-300)
        return -float(np.array([gained, lost, total - gained - lost]) @ np.log(shares))

    q = optimize.minimize_scalar(unlikely, bounds=(least, most), method="bounded", options={"xatol": 1e-12}).x
    return float((gained - lost - total * difference) / np.sqrt(total * (2 * q + difference - difference**2)))


@pytest.mark.parametrize(("gained", "lost", "total"), [(12, 2, 50), (0, 1, 44), (5, 5, 20), (1, 0, 3), (30, 20, 50)])
def test_differences_of_single_samples_have_tangos_interval(gained: int, lost: int, total: int) -> None:
    """Its ends are 1.96 standard errors away, under the likeliest shares that have them, found by searching."""
    found = score_difference(gained, lost, total)
    assert found.value == (gained - lost) / total
    assert score_of(gained, lost, total, found.low) == pytest.approx(1.959964, abs=1e-3)
    assert score_of(gained, lost, total, found.high) == pytest.approx(-1.959964, abs=1e-3)
    turned = score_difference(lost, gained, total)
    assert (-turned.high, -turned.low) == pytest.approx((found.low, found.high))
    x = np.repeat([1.0, -1.0, 0.0], (gained, lost, total - gained - lost))
    same, twice = mean_interval(x, bounds=(-1, 1)), mean_interval(2 * x, bounds=(-2, 2))
    assert (same.low, same.high, twice.high) == pytest.approx((found.low, found.high, 2 * found.high))


def test_tangos_interval_covers_by_enumeration() -> None:
    """Of 50 tasks, 4 % gained and 2 % lost: gains and losses with an interval each would cover 99 %."""
    n, won, lost = 50, 0.04, 0.02
    pairs = [(b, c) for b in range(13) for c in range(10)]  # all but 2e-6 of them
    ends = [score_difference(b, c, n) for b, c in pairs]
    held = np.array([i.low <= won - lost <= i.high for i in ends])
    share = stats.multinomial.pmf([(b, c, n - b - c) for b, c in pairs], n, [won, lost, 1 - won - lost])
    assert share.sum() > 1 - 1e-5 and float(share @ held) == pytest.approx(0.969, abs=0.001)
    none = score_difference(0, 0, 20)
    assert (none.low, none.high) == pytest.approx((-wilson(0, 20)[1], wilson(0, 20)[1]))
    every = score_difference(4, 0, 4)
    assert every.high == 1 and 0 < every.low < 0.1
    assert (score_difference(0, 4, 4).low, score_difference(0, 4, 4).high) == pytest.approx((-1, -every.low))
    for wrong in ((0, 0, 0), (2, 2, 3), (-1, 0, 3)):
        with pytest.raises(ValueError, match="gained"):
            score_difference(*wrong)


def test_what_is_added_to_a_variance_is_known() -> None:
    """By hand of 0, .2 and .4: variance .04 / 3, and .1 (.2^2 + .8^2) / 6 of two tenths of values at the bounds."""
    assert degrees_with(0.0, 2.0, 9) == 9 and degrees_with(2.0, 2.0, 9) == 36 and degrees_with(1.0, 0.0, 9) == math.inf
    seen, room = 0.04 / 3, 0.1 * (0.2**2 + 0.8**2) / 6
    degrees = 2 * ((seen + room) / seen) ** 2
    # .16 / .0247 are 6.5 trials, more than there are values.
    expected = score_interval(0.2, 0.16 / (seen + room), degrees)
    found = mean_interval([0.0, 0.2, 0.4], bounds=(0, 1))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("values", [[], [float("nan")], [[1.0, 2.0]]])
def test_mean_interval_refuses(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite values"):
        mean_interval(values)


def test_mean_interval_refuses_values_out_of_bounds() -> None:
    with pytest.raises(ValueError, match="outside the bounds"):
        mean_interval([0.5, 1.5], bounds=(0, 1))


def test_pairing_removes_what_the_tasks_share() -> None:
    rng = np.random.default_rng(3)
    before = rng.random(200) * 0.8
    after = before + 0.1 + 0.01 * rng.normal(size=200)
    paired = paired_interval(before, after)
    assert 0.097 < paired.low < paired.value < paired.high < 0.103
    assert mean_interval(after).high - mean_interval(after).low > 10 * (paired.high - paired.low)
    with pytest.raises(ValueError, match="same tasks"):
        paired_interval([1, 2], [1])


def sample(task: str, passed: bool | None, **other: object) -> Sample:
    values: dict[str, object] = {
        "task_id": task,
        "prompt": f"ask {task}",
        "response": "r",
        "score": float(passed is True),
        "passed": passed,
        "feedback": "",
        "length": 10,
        "stop": "eos",
    }
    return Sample(**(values | other))  # type: ignore[arg-type]


def rows(table: dict[str, Sequence[bool | None]]) -> tuple[Sample, ...]:
    return tuple(sample(task, passed) for task, results in table.items() for passed in results)


def test_metrics_by_hand() -> None:
    e = Evaluation(
        "before",
        0,
        (
            sample("a", True, score=1.0, length=4),
            sample("a", False, score=0.5, length=6),
            sample("a", None, length=8, stop="length"),
            sample("b", False, length=10, stop="context"),
            sample("b", False, length=12),
            sample("b", False, length=14),
            sample("c", None, length=16, stop="error"),
            sample("c", None, length=18),
            sample("c", None, length=20),
        ),
    )
    m = e.metrics()
    # a: 1 of 2 judged; b: 0 of 3; c: nothing judged.
    assert m["pass@1"] == pytest.approx((0.5 + 0) / 2) and m["pass@1/tasks"] == 2
    assert m["pass@2"] == pytest.approx((1 + 0) / 2) and m["pass@2/tasks"] == 2
    assert m["pass@3"] == 0 and m["pass@3/tasks"] == 1
    assert m["pass@1/low"] <= m["pass@1"] <= m["pass@1/high"]
    assert m["score/mean"] == pytest.approx((0.75 + 0) / 2)
    assert m["length/mean"] == 12
    assert m["truncated"] == pytest.approx(2 / 9) and m["abstained"] == pytest.approx(4 / 9)
    assert m["tasks"] == 3 and m["samples"] == 9
    assert not any(key.startswith("pass@4") for key in m)


@pytest.mark.parametrize(("k", "expected"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_pass_at_k_is_reported_for_powers_of_two_and_k(k: int, expected: list[int]) -> None:
    e = Evaluation("x", 0, rows({"a": [True] * k, "b": [False] * k}))
    assert [int(key[5:]) for key in e.metrics() if key.startswith("pass@") and "/" not in key] == expected


def test_nothing_judged_leaves_the_rates_out() -> None:
    m = Evaluation("x", 0, rows({"a": [None, None]})).metrics()
    assert m["abstained"] == 1 and not any(k.startswith(("pass@", "score")) for k in m)


def test_difference_is_paired_by_task_whatever_the_order() -> None:
    before = Evaluation("before", 0, rows({"a": [True, False], "b": [False, False], "c": [True, True]}))
    after = Evaluation("after", 9, rows({"c": [True, True], "b": [True, False], "a": [True, True]}))
    found = difference(before, after)
    assert (found.before, found.after, found.tasks) == pytest.approx((0.5, 2.5 / 3, 3))
    assert found.interval.value == pytest.approx(1 / 3)
    # Differences of .5, .5 and 0: three tasks cannot rule out a loss.
    assert -1 <= found.interval.low < 0 and 0.5 < found.interval.high <= 1
    assert difference(before, after, k=2).interval.value == pytest.approx(1 / 3)


def test_difference_leaves_out_tasks_that_were_not_judged() -> None:
    before = Evaluation("before", 0, rows({"a": [True], "b": [None]}))
    after = Evaluation("after", 9, rows({"a": [False], "b": [True]}))
    found = difference(before, after)
    assert (found.before, found.after, found.tasks) == (1, 0, 1)


def test_difference_refuses_other_tasks() -> None:
    before, after = Evaluation("x", 0, rows({"a": [True]})), Evaluation("y", 0, rows({"a": [True], "b": [True]}))
    with pytest.raises(UsageError, match=r"different tasks \(0 only in the first, 1 only in the second\)"):
        difference(before, after)
    with pytest.raises(UsageError, match="smaller k"):
        difference(before, before, k=2)


def test_parquet_round_trip(tmp_path: Path) -> None:
    e = Evaluation(
        "step-000050",
        50,
        (
            sample("a", None, feedback="timed out", stop="length"),
            sample("b", True, response="naïve ✓ \x00 <b>", reward=0.25, score=1 / 3),
        ),
    )
    path = tmp_path / "evals" / "step.parquet"
    e.to_parquet(path)
    assert Evaluation.from_parquet(path) == e
    assert [p.name for p in path.parent.iterdir()] == ["step.parquet"]
    assert pq.read_table(path)["label"].to_pylist() == ["step-000050"] * 2
    Evaluation("again", 51, ()).to_parquet(path)
    assert Evaluation.from_parquet(path) == Evaluation("again", 51, ())


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.parquet"
    old = Evaluation("old", 1, rows({"a": [True]}))
    old.to_parquet(path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        Evaluation("new", 2, rows({"a": [False]})).to_parquet(path)
    assert Evaluation.from_parquet(path) == old and len(list(tmp_path.iterdir())) == 1


def test_text_that_is_not_unicode_is_stored(tmp_path: Path) -> None:
    Evaluation("x", 0, (sample("a", True, response="cut \ud83d"),)).to_parquet(tmp_path / "e.parquet")
    assert Evaluation.from_parquet(tmp_path / "e.parquet").samples[0].response == "cut ?"


def test_reading_something_else_is_an_error_for_people(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    with pytest.raises(RunError, match="cannot read"):
        Evaluation.from_parquet(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(RunError, match="cannot read"):
        Evaluation.from_parquet(path)
    import pyarrow as pa

    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(RunError, match="not an evaluation: it lacks feedback, length"):
        Evaluation.from_parquet(path)


class Echo:
    """Answers with the seed's parity; one task's generation fails."""

    def __init__(self) -> None:
        self.calls: list[list[Request]] = []

    def encode(self, prompt: object) -> np.ndarray:
        return np.zeros(1, dtype=np.int64)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.calls.append(list(requests))
        return [[self.episode(r, i) for i in range(r.n)] for r in requests]

    def episode(self, request: Request, i: int) -> Episode:
        stop: Stop = "error" if request.prompt == "q3" else "eos"
        mask = np.array([True, True, False])
        rng = np.random.default_rng([request.seed, i])
        return Episode(np.zeros(1), np.zeros(3), mask, None, str(rng.integers(2)), stop)


def is_one(task: Task, response: str) -> Verdict:
    return Verdict.right() if response == "1" else Verdict.wrong(f"{response} is not 1")


def run(chunk: int, seed: int = 0, engine: Echo | None = None) -> Evaluation:
    tasks = [Task(f"t{i}", f"q{i}") for i in range(7)]
    return evaluate(
        tasks,
        engine or Echo(),
        is_one,
        samples=3,
        sampling=Sampling(),
        rng=np.random.default_rng(seed),
        label="before",
        step=0,
        chunk=chunk,
    )


def test_evaluate_asks_once_per_task_and_keeps_their_order() -> None:
    engine = Echo()
    e = run(3, engine=engine)
    assert [len(call) for call in engine.calls] == [3, 3, 1]
    assert [r.n for call in engine.calls for r in call] == [3] * 7
    assert len({r.seed for call in engine.calls for r in call}) == 7
    assert list(e.by_task()) == [f"t{i}" for i in range(7)] and e.k == 3
    assert all(s.passed is (s.response == "1") for s in e.samples if s.task_id != "t3")
    assert {s.length for s in e.samples} == {2}
    assert {(s.passed, s.feedback) for s in e.by_task()["t3"]} == {(None, "generation failed")}


def test_evaluate_depends_on_the_seed_and_not_on_the_chunk() -> None:
    assert run(1) == run(100) != run(100, seed=1)


def test_evaluate_reports_progress() -> None:
    seen: list[tuple[int, int]] = []
    tasks = [Task(f"t{i}", "q") for i in range(5)]
    evaluate(
        tasks,
        Echo(),
        is_one,
        samples=1,
        sampling=Sampling(),
        rng=np.random.default_rng(0),
        label="x",
        step=0,
        chunk=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(2, 5), (4, 5), (5, 5)]


def test_evaluate_refuses() -> None:
    def ask(tasks: list[Task], samples: int = 1) -> None:
        evaluate(
            tasks, Echo(), is_one, samples=samples, sampling=Sampling(), rng=np.random.default_rng(0), label="x", step=0
        )

    with pytest.raises(UsageError, match="id 'a'"):
        ask([Task("a", "q"), Task("a", "q")])
    with pytest.raises(UsageError, match="at least one task"):
        ask([])
    with pytest.raises(UsageError, match="at least one task, one sample"):
        ask([Task("a", "q")], samples=0)


def test_an_engine_that_answers_too_little_is_noticed() -> None:
    class Short(Echo):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            return super().generate(requests)[:-1]

    with pytest.raises(RunError, match="asked for 3 responses"):
        run(7, engine=Short())
