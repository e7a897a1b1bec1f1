"""The gated length penalty: worked numbers, the gate, and its two limits."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from choices import RIGHT, WRONG, Choices, response
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import make
from assay.errors import UsageError
from assay.lab.settings import load
from assay.lab.settings.bandits.lengths import chain
from assay.method import Method
from assay.rewards.length.gated import GatedLength
from assay.types import Ask, Episode, Group, Task, Verdict

Sample = tuple[bool | None, int]


def batch_of(*prompts: list[Sample]) -> Batch:
    groups = []
    for i, samples in enumerate(prompts):
        episodes = tuple(
            Episode(np.zeros(0, np.int64), np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n, np.float32), "", "eos")
            for _, n in samples
        )
        verdicts = tuple(Verdict(float(bool(p)), p) for p, _ in samples)
        groups.append(Group(Ask(Task(str(i), "?"), len(samples)), episodes, verdicts))
    return Batch.from_groups(groups, torch.float64)


def rewards(batch: Batch, **options: float) -> list[float]:
    return GatedLength(**options)(batch).values.tolist()


EXAMPLE: list[Sample] = [(True, 100), (True, 200), (True, 300), (False, 50)]


def test_the_penalty_by_hand() -> None:
    assert rewards(batch_of(EXAMPLE), share=1.0) == pytest.approx([0.954579, 0.9, 0.845421, 0], abs=1e-6)


def test_a_single_right_response_pays_half() -> None:
    assert rewards(batch_of([(True, 70), (False, 9)]), share=1.0, alpha=0.3) == pytest.approx([0.85, 0])


def solved(share: float, n: int = 8) -> list[Sample]:
    return [(i < share * n, i + 1) for i in range(n)]


def test_the_best_share_of_the_batch_is_gated() -> None:
    batch = batch_of(*map(solved, (0.25, 1, 0.5, 0.75, 0)))
    gated = GatedLength(share=0.4)(batch).terms["gated"].reshape(5, 8)[:, 0]
    assert gated.tolist() == [0, 1, 0, 1, 0]


def test_ties_go_to_the_earlier_prompt_and_the_number_is_rounded_down() -> None:
    batch = batch_of(*[solved(0.5)] * 5)
    for share, count in ((0.0, 0), (0.19, 1), (0.2, 1), (0.39, 1), (0.6, 3), (1.0, 5)):
        gated = GatedLength(share=share)(batch).terms["gated"].reshape(5, 8)[:, 0]
        assert gated.tolist() == [1.0] * count + [0.0] * (5 - count)


def test_a_prompt_that_is_never_solved_is_never_gated() -> None:
    batch = batch_of(solved(0), solved(0.5))
    assert GatedLength(share=1.0)(batch).terms["gated"].reshape(2, 8)[:, 0].tolist() == [0, 1]


def test_the_gate_by_a_threshold() -> None:
    batch = batch_of(*map(solved, (0.25, 1, 0.5, 0.75, 0)))
    gated = GatedLength(share=0.0, threshold=0.75)(batch).terms["gated"].reshape(5, 8)[:, 0]
    assert gated.tolist() == [0, 1, 0, 1, 0]


groups = st.lists(
    st.lists(st.tuples(st.sampled_from([True, False, None]), st.integers(1, 40)), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@given(groups)
def test_without_a_share_it_is_grpo(prompts: list[list[Sample]]) -> None:
    ours, plain = make("S221", share=0.0).value(batch_of(*prompts)), Method().value(batch_of(*prompts))
    assert torch.equal(ours.advantages, plain.advantages) and torch.equal(ours.rewards, plain.rewards)


@given(groups, st.floats(0, 0.99))
def test_shorter_right_beats_longer_right_beats_wrong(prompts: list[list[Sample]], alpha: float) -> None:
    batch = batch_of(*prompts)
    values = GatedLength(share=1.0, alpha=alpha)(batch).values
    for group in batch.prompt_group.unique():
        rows = (batch.prompt_group == group).nonzero()[:, 0].tolist()
        right = sorted((len(batch.episodes[i].tokens), float(values[i])) for i in rows if batch.verdicts[i].passed)
        assert all(a[1] >= b[1] - 1e-12 for a, b in pairwise(right))
        assert all(value > 0 for _, value in right)
        assert all(values[i] == 0 for i in rows if not batch.verdicts[i].passed)


def test_an_abstention_has_no_reward_and_its_length_does_not_count() -> None:
    batch = batch_of([*EXAMPLE, (None, 5000)])
    found = GatedLength(share=1.0)(batch)
    assert found.valid is not None and found.valid.tolist() == [True] * 4 + [False]
    assert found.values[:3].tolist() == pytest.approx([0.954579, 0.9, 0.845421], abs=1e-6)


def test_prompts_without_a_verdict_count_in_the_batch_and_are_not_gated() -> None:
    batch = batch_of([(None, 1)], solved(0.5), [(None, 2), (None, 3)], solved(1), solved(0.1))
    gated = GatedLength(share=0.4)(batch).terms["gated"]
    assert set(batch.prompt_group[gated > 0].tolist()) == {1, 3}


def test_the_whole_group_is_known_only_over_the_batch() -> None:
    """A prompt is gated or not by its neighbours in the batch."""
    behind = make("S221").value(batch_of(solved(0.5), solved(0.75)))
    ahead = make("S221").value(batch_of(solved(0.5), *[solved(0.25)] * 4))
    assert not bool(behind.reward_terms["gated"][:8].any()) and bool(behind.reward_terms["gated"][8:].all())
    assert bool(ahead.reward_terms["gated"][:8].all()) and not bool(ahead.reward_terms["gated"][8:].any())


def lengths(share: float, updates: int = 40, runs: int = 4) -> tuple[float, float]:
    """Mean length, and chance of solving a hard prompt, of a policy of lengths 1 to 6 that is asked easy ones too."""
    hard = np.array([0.0, 0.02, 0.05, 0.15, 0.5, 0.6])
    rng = np.random.default_rng(0)

    def judge(kind: int, choice: int) -> Verdict:
        return RIGHT if (rng.random() < hard[choice] if kind else choice > 0) else WRONG

    method = make("S221", share=share)
    policy = Choices(torch.zeros(runs, 6, dtype=torch.float64), [response(n + 1) for n in range(6)])
    for _ in range(updates):
        policy.step(method, method.value(policy.batch(8, judge, kinds=2)), 1.0)
    p = policy.chances.numpy()
    return float((p @ np.arange(1, 7)).mean()), float((p @ hard).mean())


def test_in_training_the_gate_shortens_less_than_a_penalty_everywhere_and_keeps_more_right() -> None:
    """From lengths of 3.5 and 0.22 right; without the penalty longer answers win on the hard prompts."""
    none, gated, always = map(lengths, (0.0, 0.2, 1.0))
    assert none[0] > gated[0] + 0.3 > always[0] + 0.6
    assert none[1] > gated[1] > always[1] + 0.05


def test_the_defaults_and_their_limits() -> None:
    """A fifth of the prompts pay, and with it at most a fifth of a right answer's worth; all limits may be taken."""
    for reward in (make("S221").reward, GatedLength()):
        assert (reward.share, reward.alpha, reward.threshold) == (0.2, 0.2, None)
    assert make("S221", share=1, alpha=1).reward == GatedLength(share=1, alpha=1)
    batch = batch_of(*map(solved, (1, 0.5)))
    gated = GatedLength(share=0.0, threshold=1.0)(batch).terms["gated"].reshape(2, 8)[:, 0]
    assert gated.tolist() == [1, 0]
    assert rewards(batch_of([(True, 9), (True, 9)]), share=1.0, alpha=0.0) == [1, 1]


def test_right_responses_of_one_length_all_pay_half() -> None:
    assert rewards(batch_of([(True, 7)] * 3), share=1.0, alpha=0.4) == pytest.approx([0.8] * 3)
    # Two lengths that are close together are told apart all the same: z = -1 and 1.
    close = rewards(batch_of([(True, 1000), (True, 1001)]), share=1.0, alpha=1.0)
    assert close == pytest.approx([1 - 0.268941, 1 - 0.731059], abs=1e-5)
    # 1e-7 is added to their deviation of 1/2: z = 1 / 1.0000002, and not 1, whose sigmoid is 0.7310585786.
    close = rewards(batch_of([(True, 1), (True, 2)]), share=1.0, alpha=1.0)
    assert close == pytest.approx([0.7310585393, 0.2689414607], abs=2e-10)


@pytest.mark.parametrize(
    "bad", [{"share": 1.2}, {"share": -0.1}, {"alpha": 2.0}, {"alpha": -0.1}, {"threshold": 0.0}, {"threshold": 1.5}]
)
def test_options_out_of_range(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be in"):
        make("S221", **bad)


def test_an_empty_batch() -> None:
    assert GatedLength()(Batch.from_groups([])).values.tolist() == []


# The lab's setting


def test_all_lengths_are_equally_likely_at_first() -> None:
    policy = chain(6)
    assert policy.tree.lengths.tolist() == [1, 2, 3, 4, 5, 6]
    assert policy.leaf_logprobs().exp().tolist() == pytest.approx([1 / 6] * 6)


def test_a_run_of_lengths_measures_the_policy(tmp_path: Path) -> None:
    found = load("lengths", {"steps": 2, "lr": 0.0, "spread": 0.0}).run({"name": "S221"}, 0, tmp_path)
    assert found["hard"] == pytest.approx(1.32 / 6) and found["easy"] == pytest.approx(5 / 6)
    assert found["length"] == -found["shorter"] == pytest.approx(3.5) and found["rollouts"] == 160
    with pytest.raises(UsageError, match="one chance each"):
        load("lengths", {"easy": [1.0], "hard": [0.5]})
