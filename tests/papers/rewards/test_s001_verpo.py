"""VeRPO: the paper's weights and advantages by hand-computed numbers, its limits, and its state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import find
from assay.errors import RunError, UsageError
from assay.lab.settings.bandits import choices
from assay.method import Method, make_method
from assay.rewards.outcome.weighted_tests import WeightedTests, difficulty_weights
from assay.types import Ask, Episode, Group, Task, Turn, Verdict

ROWS = ["11100", "11000", "11110", "10000"]


def parts(row: str) -> dict[str, float | None]:
    return {f"test {j:03d}": {"1": 1.0, "0": 0.0, "?": None, "-": None}[c] for j, c in enumerate(row)}


def episode(length: int = 3, turns: tuple[Turn, ...] = ()) -> Episode:
    zeros = np.zeros(length, dtype=np.int64)
    return Episode(zeros, zeros, zeros == 0, np.zeros(length, dtype=np.float32), "", "eos", turns=turns)


def verdict(row: str) -> Verdict:
    passed = None if row == "-" else set(row) == {"1"}
    return Verdict(float(bool(passed)), passed, parts(row))


def batch_of(*groups: list[str], task: str = "t") -> Batch:
    made = [
        Group(Ask(Task(f"{task}{g}", "?"), len(rows)), tuple(episode() for _ in rows), tuple(map(verdict, rows)))
        for g, rows in enumerate(groups)
    ]
    return Batch.from_groups(made, dtype=torch.float64)


def advantages(rows: list[str], **options: object) -> np.ndarray:
    return make_method(find("S001").factory(**options)).value(batch_of(rows)).advantages[:, 0].numpy()


def test_weights_by_hand() -> None:
    """Without density: e^0, e^-1, e^-2; alpha 0 makes tests equal; a density of two at one rate halves."""
    rates = np.array([0, 0.5, 1])
    assert difficulty_weights(rates, sigma=None) == pytest.approx([1, 0.367879, 0.135335], abs=1e-6)
    assert difficulty_weights(rates, 0.0, None).tolist() == [1, 1, 1]
    assert difficulty_weights(np.array([0.5, 0.5]), delta=0.0) == pytest.approx([0.183940] * 2, abs=1e-6)
    assert difficulty_weights(np.array([0.5]), delta=1.0) == pytest.approx([0.183940], abs=1e-6)
    assert difficulty_weights(np.array([0.0])) == pytest.approx([1 / 1.000001], abs=1e-12)
    # At a distance of sigma the other counts e^-1/2.
    assert difficulty_weights(np.array([0.0, 0.1]), 0.0, 0.1, 0.0) == pytest.approx([1 / 1.606531] * 2, abs=1e-6)
    assert difficulty_weights(np.array([]))[:].tolist() == []
    made, method = WeightedTests(), find("S001").factory()
    assert made == method.reward and (made.alpha, made.sigma, made.delta, made.beta) == (2.0, 0.1, 1e-6, 1.0)
    assert (made.gamma, made.calibrate, made.memory, made.tests) == (1.0, True, 0.0, "")
    assert method.credit.group_relative


def test_weights_of_the_worked_example() -> None:
    got = difficulty_weights(np.array([1, 0.75, 0.5, 0.25, 0]), 2.0, 0.1, 1e-6)
    assert got == pytest.approx([0.129639, 0.205106, 0.338161, 0.557535, 0.957908], abs=1e-6)


def test_rewards_and_advantages_of_the_worked_example_where_no_response_passes_all() -> None:
    batch = batch_of(ROWS)
    reward = WeightedTests(alpha=2, sigma=0.1, delta=1e-6)(batch)
    assert reward.values.tolist() == pytest.approx([0.672906, 0.334744, 1.230441, 0.129639], abs=1e-6)
    assert reward.terms["outcome"].tolist() == [0, 0, 0, 0]
    assert advantages(ROWS) == pytest.approx([0.080973, -0.257188, 0.638508, -0.462294], abs=1e-6)


def test_clones_of_a_test_move_the_calibrated_advantages_little_and_flip_the_others() -> None:
    cloned = [row[:2] + row[1] * 10 + row[2:] for row in ROWS]
    assert advantages(cloned) == pytest.approx([0.0364, -0.2045, 0.5939, -0.4258], abs=5e-5)
    assert advantages(ROWS, calibrate=False)[1] == pytest.approx(-0.2798, abs=5e-5)
    assert advantages(cloned, calibrate=False)[1] == pytest.approx(0.2780, abs=5e-5)


def test_groups_without_a_signal_are_rare_beside_the_outcome_reward() -> None:
    rng = np.random.default_rng(0)
    groups = [["".join(rng.choice(["0", "1"], 8)) for _ in range(8)] for _ in range(60)]
    outcome = Method(credit=make_method("S001").credit)

    def silent(method: Method) -> float:
        batch = method.value(batch_of(*groups))
        return float(np.mean([(batch.advantages[batch.group == g].abs() < 1e-9).all() for g in range(len(groups))]))

    assert silent(make_method("S001")) == 0
    assert silent(outcome) > 0.9


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_equal_pass_vectors_say_nothing(tests: int, size: int, right: bool) -> None:
    assert advantages([("1" if right else "10" * 4)[:1] * tests] * size) == pytest.approx(np.zeros(size), abs=1e-12)


def test_one_test_is_a_rescaled_outcome() -> None:
    got = advantages(["1", "0", "0", "1"])
    binary = np.array([0.5, -0.5, -0.5, 0.5])
    assert got == pytest.approx(binary * (1 + math.exp(-1) / (1 + 1e-6)))


@settings(max_examples=30)
@given(st.lists(st.text("01", min_size=4, max_size=4), min_size=2, max_size=6))
def test_the_reference_computation(rows: list[str]) -> None:
    p = np.array([[int(c) for c in row] for row in rows], dtype=float)
    rho = p.mean(0)
    density = np.array([sum(math.exp(-((a - b) ** 2) / 0.02) for b in rho) for a in rho])
    local = p @ (np.exp(-2 * rho) / (density + 1e-6))
    outcome = p.all(1).astype(float)
    assert advantages(rows) == pytest.approx(outcome - outcome.mean() + local - local.mean(), abs=1e-12)


def test_an_abstention_leaves_the_statistics_and_the_update() -> None:
    with_it = make_method("S001").value(batch_of([*ROWS, "-"]))
    assert with_it.valid.tolist() == [True] * 4 + [False]
    assert with_it.advantages[:4, 0].numpy() == pytest.approx(advantages(ROWS))
    assert with_it.advantages[4].tolist() == [0, 0, 0]


def test_a_test_that_could_not_be_told_neither_praises_nor_blames() -> None:
    local = WeightedTests().local([parts("1"), parts("0"), parts("?")])
    assert WeightedTests().local([parts("1")]) == pytest.approx([math.exp(-2) / (1 + 1e-6)], abs=1e-12)
    assert local[2] == pytest.approx((local[0] + local[1]) / 2)
    assert WeightedTests().local([parts("?"), parts("?")]).tolist() == [0, 0]


def test_a_response_that_ran_nothing_passed_nothing() -> None:
    dense = WeightedTests().local([parts("110"), {}, {"other": 1.0}])
    assert dense[1] == 0
    assert WeightedTests(tests="test").local([parts("110"), {"other": 1.0}])[1] == 0


def multi_turn(*samples: list[str]) -> Batch:
    """Samples of several turns of two tokens each; the last row is the verdict's."""
    episodes, verdicts = [], []
    for rows in samples:
        turns = [Turn(t, 2 * t, 2 * t + 2, verdict=verdict(row)) for t, row in enumerate(rows)]
        turns[-1] = replace(turns[-1], verdict=None)
        episodes.append(episode(2 * len(rows), tuple(turns)))
        verdicts.append(verdict(rows[-1]))
    return Batch.from_groups(
        [Group(Ask(Task("t", "?"), len(samples)), tuple(episodes), tuple(verdicts))], torch.float64
    )


def test_turns_have_advantages_of_their_own() -> None:
    samples = [["100", "110", "111"], ["000"], ["110", "100"]]
    batch = make_method("S001", reward={"gamma": 0.9, "beta": 0.5}).value(multi_turn(*samples))
    p = np.array([[int(c) for c in row] for rows in samples for row in rows], dtype=float)
    rho = p.mean(0)
    density = np.exp(-((rho[:, None] - rho) ** 2) / 0.02).sum(1)
    local = p @ (np.exp(-2 * rho) / (density + 1e-6))
    outcome = np.array([0.9**3, 0, 0])
    turn_part = 0.5 * (local - local.mean())
    want = [turn_part[:3] + outcome[0], turn_part[3:4], turn_part[4:]]
    for i, found in enumerate(want):
        values = found - outcome.mean()
        assert batch.advantages[i, : 2 * len(values)].numpy() == pytest.approx(np.repeat(values, 2))
        assert not batch.advantages[i, 2 * len(values) :].any()


def test_turns_of_one_token_and_a_turn_that_says_nothing() -> None:
    """One test; turns fail, pass; pass. Its rate is 2/3, its weight e^(-4/3) / (1 + 1e-6); outcomes 1/4 and 1/2."""
    turns = (Turn(0, 0, 1, verdict=verdict("0")), Turn(1, 1, 3), Turn(2, 3, 3))
    zeros = np.zeros(5, dtype=np.int64)
    mask = np.array([True, True, True, True, False])
    one = Episode(zeros, zeros, mask, np.zeros(5, dtype=np.float32), "", "eos", turns=turns)
    group = Group(Ask(Task("t", "?"), 2), (one, episode(1)), (verdict("1"), verdict("1")))
    made = find("S001").factory(gamma=0.5)
    batch = made.value(Batch.from_groups([group], torch.float64))
    w = math.exp(-4 / 3) / (1 + 1e-6)
    assert batch.reward_terms["tests"].tolist() == pytest.approx([w / 2, w])
    assert batch.reward_terms["outcome"].tolist() == [0.25, 0.5]
    assert batch.token_rewards is not None
    assert batch.token_rewards.tolist() == [pytest.approx([-w / 2, 0, w / 2, 0, 0]), [0] * 5]
    # Outcomes are 0.125 from their mean; turns 0, w and w from theirs, 2 w / 3. After its turns a sample has its own.
    want = [-0.125 - 2 * w / 3, -0.125 + w / 3, -0.125 + w / 3, -0.125 + w / 2 - 2 * w / 3, 0]
    assert batch.advantages[0].tolist() == pytest.approx(want)
    assert batch.advantages[1].tolist() == pytest.approx([0.125 + w / 3, 0, 0, 0, 0])


def test_a_turn_that_could_not_be_judged_neither_praises_nor_blames() -> None:
    """Turns fail, pass and abstain: the rate is 1/2, which is what the third counts."""
    turns = tuple(Turn(t, t, t + 1, verdict=verdict(row)) for t, row in enumerate(["0", "1", "-"]))
    batch = Batch.from_groups([Group(Ask(Task("t", "?"), 1), (episode(3, turns),), (verdict("0"),))], torch.float64)
    found = WeightedTests()(batch)
    w = math.exp(-1) / (1 + 1e-6)
    assert found.tokens is not None and found.tokens[0].tolist() == pytest.approx([-w / 2, w / 2, 0])


def test_an_empty_response_has_a_turn_and_an_abstention_none() -> None:
    batch = Batch.from_groups(
        [Group(Ask(Task("t", "?"), 3), (episode(0), episode(2), episode(2)), tuple(map(verdict, ["0", "1", "-"])))],
        torch.float64,
    )
    found = WeightedTests()(batch)
    w = math.exp(-1) / (1 + 1e-6)
    assert found.tokens is None and found.valid is not None
    assert found.terms["tests"].tolist() == pytest.approx([0, w, 0]) and found.valid.tolist() == [True, True, False]


def test_tasks_without_tests_have_the_plain_verdict() -> None:
    reward, task = WeightedTests(tests="test"), Task("t", "?")
    assert reward.plain(task, Verdict(1.0, True, {})) and reward.plain(task, Verdict(1.0, True, {"style": 1.0}))
    assert not reward.plain(task, verdict("1")) and "tests" in reward.reads_more


def test_another_reward_with_turns_is_refused_in_words() -> None:
    batch = multi_turn(["10", "11"], ["00"])
    batch.token_rewards = torch.zeros(batch.mask.shape, dtype=torch.float64)
    with pytest.raises(RunError, match="weighted_tests"):
        make_method("S001").credit(batch)


def test_memory_counts_earlier_groups_of_the_same_task_and_is_kept_in_the_state() -> None:
    reward = WeightedTests(memory=0.5, sigma=0.1)
    reward.local([parts("10"), parts("10")], "a")
    assert reward.local([parts("11"), parts("00")], "b") == pytest.approx(
        WeightedTests().local([parts("11"), parts("00")])
    )
    other = WeightedTests(memory=0.5)
    other.load_state_dict(reward.state_dict())
    for one in (reward, other):
        got = one.local([parts("11"), parts("00")], "a")
        rates = np.array([(1 + 0.5 * 2) / (2 + 0.5 * 2), 1 / (2 + 0.5 * 2)])
        assert got == pytest.approx([difficulty_weights(rates).sum(), 0])
    assert other.state_dict() == reward.state_dict()


def test_the_tasks_seen_longest_ago_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr("assay.rewards.outcome.weighted_tests.KEPT", 2)
    reward = WeightedTests(memory=0.5)
    for task in "abac":
        reward.local([parts("1")], task)
    assert list(reward.seen) == ["a", "c"]


def test_options_are_adjusted_by_name_and_checked() -> None:
    assert make_method("S001", reward={"alpha": 0.5}).reward.alpha == 0.5
    assert WeightedTests(alpha=0.0, delta=0.0, beta=0.0, gamma=1.0, memory=0.0).gamma == 1
    assert "seen" not in repr(WeightedTests())
    with pytest.raises(UsageError, match="seen"):
        make_method("S001", reward={"seen": {}})
    bads = ({"alpha": -1.0}, {"sigma": 0.0}, {"gamma": 0.0}, {"gamma": 1.5}, {"memory": 1.0}, {"memory": -0.1})
    for bad in (*bads, {"beta": -0.1}, {"delta": -0.1}):
        with pytest.raises(UsageError, match="must be"):
            make_method("S001", reward=bad)


def test_many_tests_are_quick() -> None:
    rng = np.random.default_rng(1)
    rates = rng.integers(0, 11, 20_000) / 10
    got = difficulty_weights(rates)
    few = difficulty_weights(np.array([0.0, 1.0]), delta=0.0)
    assert got.shape == (20_000,) and (got < few.max()).all()


def test_it_acts_in_training(tmp_path) -> None:
    """Programs that pass the first 0 to 3 of four tests: the outcome teaches nothing, and the best are learned."""
    rows = [[[1.0, k == 4, {f"test {j}": float(j < k) for j in range(4)}]] for k in range(5)]
    setting = choices.Setting(rows, logits=[0, 0, 0, 0, -20], spread=0.0, steps=10, prompts=1, lr=3.0)
    outcome = {"name": "grpo", "credit": {"name": "grpo", "normalise": False}}
    alone, dense = (setting.run(arm, 0, tmp_path) for arm in (outcome, {"name": "S001"}))
    assert alone["choice 3"] == pytest.approx(0.25) and alone["part test 0"] == pytest.approx(0.75)
    assert dense["choice 3"] > 0.5 and dense["part test 0"] > 0.9
