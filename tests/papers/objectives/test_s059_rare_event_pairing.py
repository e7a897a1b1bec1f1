"""Rare-event pairing: worked advantages, what normalisation undoes, and which prompts are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.grpo import GRPO
from assay.curriculum.paired import Paired, Probe
from assay.engines.tabular import TabularVerifier
from assay.errors import RunError, UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.bandits.problems import Setting
from assay.method import Method
from assay.papers.objectives.s059_rare_event_pairing import PairWeighted, SignedOutcome
from assay.registry import build
from assay.tasks.listed import Listed
from assay.tasks.split import split
from assay.types import Ask, Episode, Group, Task, Verdict

EPISODE = Episode(np.zeros(0, np.int64), np.zeros(2, np.int64), np.ones(2, bool), np.zeros(2, np.float32), "", "eos")


def judged(task: Task, right: int, of: int, abstained: int = 0) -> Group:
    verdicts = [Verdict.right()] * right + [Verdict.wrong()] * (of - right) + [Verdict.abstain("?")] * abstained
    return Group(Ask(task, len(verdicts)), (EPISODE,) * len(verdicts), tuple(verdicts))


def pair_batch(hard: int = 1, easy: int = 7, of: int = 8) -> Batch:
    tasks = [Task(role, role, meta={"pair": 0, "role": role}) for role in ("hard", "easy")]
    return Batch.from_groups([judged(tasks[0], hard, of), judged(tasks[1], easy, of)], torch.float64)


def advantages(**options: Any) -> list[float]:
    return make("S059", **options).value(pair_batch()).advantages[:, 0].tolist()


def test_rare_outcomes_are_amplified() -> None:
    found = advantages()
    assert found == pytest.approx([2.474874] + [-0.353553] * 7 + [0.353553] * 7 + [-2.474874], abs=1e-5)


@pytest.mark.parametrize("penalty", [0.5, 1.0, 2.0])
def test_the_penalty_cancels_within_a_prompt_and_scales_without_division(penalty: float) -> None:
    assert advantages(penalty=penalty) == pytest.approx(advantages(), abs=1e-5)
    rare, common = {0.5: (1.3125, 0.1875), 1.0: (1.75, 0.25), 2.0: (2.625, 0.375)}[penalty]
    want = [rare] + [-common] * 7 + [common] * 7 + [-rare]
    assert advantages(penalty=penalty, norm="mean") == pytest.approx(want, abs=1e-12)


def test_pooling_the_pair_destroys_the_amplification() -> None:
    found = advantages(norm="pair")
    want = [0.968246] + [-0.968246] * 7 + [0.968246] * 7 + [-0.968246]
    assert found == pytest.approx(want, abs=1e-5)


def test_pairs_without_a_mark_are_neighbours() -> None:
    groups = [judged(Task(str(i), "?"), right, 8) for i, right in enumerate([1, 7, 2, 6])]
    found = make("S059", norm="pair").value(Batch.from_groups(groups, torch.float64)).advantages[:, 0]
    assert found[:16].tolist() == pytest.approx(advantages(norm="pair"))
    assert found[16].item() == pytest.approx(0.968246, abs=1e-5)


def test_weights_of_the_two_prompts() -> None:
    plain = advantages()
    assert advantages(hard_weight=2.0, easy_weight=0.5) == pytest.approx(
        [2 * a for a in plain[:8]] + [a / 2 for a in plain[8:]]
    )


@given(st.integers(0, 8), st.integers(0, 8))
def test_with_the_defaults_it_is_grpo_on_the_pair(hard: int, easy: int) -> None:
    method = make("S059")
    found = method.value(pair_batch(hard, easy)).advantages
    plain = Method(credit=GRPO(epsilon=1e-12)).value(pair_batch(hard, easy)).advantages
    assert torch.allclose(found, plain, atol=1e-4)


def test_an_abstention_leaves_the_group() -> None:
    batch = make("S059").value(Batch.from_groups([judged(Task("a", "?"), 1, 8, abstained=2)], torch.float64))
    assert batch.active.tolist() == [True] * 8 + [False] * 2
    assert batch.advantages[0, 0].item() == pytest.approx(2.474874, abs=1e-5)


# The choice


def stream_of(n: int) -> Any:
    return split(Listed([Task(str(i), f"q{i}", reference=i) for i in range(n)]), 0.0, 0, 0)[0]


def probed(rates: dict[str, int], group: int = 8, steps: int = 20, **options: Any) -> Paired:
    """A curriculum that saw each task solved so many times of ``group``."""
    part = build("curriculum", {"name": "paired", **options}, stream=stream_of(len(rates)), prompts=2, group=group)
    for step in range(steps):
        asks = part.next(step)
        if not asks[0].task.meta.get("probe"):
            break
        part.observe([judged(ask.task, rates[ask.task.id], group) for ask in asks])
    return part


RATES = {"0": 0, "1": 8, "2": 4, "3": 2, "4": 1, "5": 7, "6": 6, "7": 3}


def test_the_rarest_success_goes_with_the_rarest_failure() -> None:
    part = probed(RATES, candidates=8)
    asks = part.next(99)
    assert [(a.task.id, a.task.meta["role"], a.n) for a in asks] == [("4", "hard", 8), ("5", "easy", 8)]
    assert not any(a.task.meta.get("probe") for a in asks)


def test_the_usual_choice_is_by_variance() -> None:
    assert [a.task.id for a in probed(RATES, candidates=8, choose="variance").next(0)] == ["7", "2"]


@given(st.lists(st.integers(0, 8), min_size=4, max_size=12))
def test_no_prompt_is_chosen_that_was_always_or_never_solved(right: list[int]) -> None:
    rates = {str(i): r for i, r in enumerate(right)}
    possible = {i for i, r in enumerate(right) if 1 <= r <= 2}, {i for i, r in enumerate(right) if 6 <= r <= 7}
    try:
        part = probed(rates, candidates=4, steps=40)
        hard, easy = (int(a.task.id) for a in part.next(0))
    except RunError:
        assert not all(possible)
    else:
        assert hard in possible[0] and easy in possible[1]


def known(rates: dict[str, tuple[int, int]], **options: Any) -> Paired:
    """A curriculum that has seen so many of so many responses right."""
    part = Paired(stream_of(1), 2, options.pop("group", 8), **options)
    for key, (right, judged_) in rates.items():
        part._probes[key] = Probe(Task(key, key), {}, right, judged_)
    return part


def test_the_bounds_of_hard_and_easy() -> None:
    """Of 8 responses 2 are right at most, or wrong at most; of equal ones the first seen comes first."""
    counts = {"a": (2, 8), "b": (3, 8), "c": (5, 8), "d": (6, 8), "e": (1, 8), "f": (7, 8), "g": (1, 8), "h": (0, 0)}
    part = known(counts)
    assert part._hard() == ["e", "g", "a"] and part._easy() == ["f", "d"] and part._choice() == [("e", "f")]
    assert known(counts, most=3)._hard() == ["e", "g", "a", "b"]
    assert known(counts, pairs=2)._choice() == [("e", "f"), ("g", "d")]
    assert known(counts, pairs=3)._choice() == []
    # The share counts, whatever the number of judged responses: 1 of 3 is above 2 / 8.
    assert known({"x": (1, 3), "y": (1, 4), "z": (3, 4)})._choice() == [("y", "z")]


def test_no_prompt_is_its_own_partner() -> None:
    """With two responses each what is right once is both hard and easy."""
    part = known({"a": (1, 2), "b": (1, 2), "c": (1, 2)}, group=2)
    assert part._hard() == part._easy() == ["a", "b", "c"] and part._choice() == [("a", "b")]
    assert known({"a": (1, 2)}, group=2)._choice() == []


def test_variance_takes_those_nearest_to_a_half_the_lower_one_first() -> None:
    counts = {"a": (8, 8), "b": (7, 8), "c": (5, 8), "d": (2, 8), "e": (4, 8), "f": (0, 8), "g": (0, 0)}
    assert known(counts, choose="variance")._choice() == [("e", "c")]
    assert known(counts, choose="variance", pairs=2)._choice() == [("e", "c"), ("d", "b")]
    assert known(counts, choose="variance", pairs=3)._choice() == []


def test_probing_goes_on_until_there_is_a_pair_and_ends_after_ten_times_the_candidates() -> None:
    part = build("curriculum", {"name": "paired", "candidates": 4}, stream=stream_of(100), prompts=2, group=8)
    seen = []
    for step in range(5):
        asks = part.next(step)
        assert all(a.task.meta["probe"] and a.n == 8 for a in asks)
        seen += [a.task.id for a in asks]
        # Hard ones alone in the first steps, though the candidates are reached; an easy one in the last.
        part.observe([judged(a.task, 7 if step == 4 else 1, 8) for a in asks])
        assert bool(part._chosen) == (step == 4)
    assert len(set(seen)) == 10 and part._asked == 10
    never = build("curriculum", {"name": "paired", "candidates": 2}, stream=stream_of(100), prompts=2, group=8)
    for step in range(10):
        never.observe([judged(a.task, 0, 8) for a in never.next(step)])
    with pytest.raises(RunError, match=r"no pair among 20 prompts: 0 are solved sometimes but in at most 0\.25 of the"):
        never.next(10)
    early = build("curriculum", {"name": "paired", "candidates": 4}, stream=stream_of(8), prompts=2, group=8)
    early.observe([judged(a.task, r, 8) for a, r in zip(early.next(0), (1, 7), strict=True)])
    assert not early._chosen, "a pair is there, and too few were asked"
    alike = build(
        "curriculum",
        {"name": "paired", "candidates": 1, "choose": "variance"},
        stream=stream_of(30),
        prompts=2,
        group=8,
    )
    for step in range(5):
        alike.observe([judged(a.task, 8, 8) for a in alike.next(step)])
    with pytest.raises(RunError, match="too few are solved sometimes"):
        alike.next(5)


def test_what_is_observed_of_others_is_not_counted() -> None:
    part = build("curriculum", {"name": "paired", "candidates": 2}, stream=stream_of(4), prompts=2, group=8)
    first, second = part.next(0)
    strangers = [Task("stranger", "?", meta={"probe": True}), Task(first.task.id, "?")]
    part.observe([judged(task, 4, 8) for task in strangers])
    assert [probe.judged for probe in part._probes.values()] == [0, 0]
    part.observe([judged(first.task, 1, 8), judged(second.task, 7, 8)])
    assert part._chosen == [(first.task.id, second.task.id)]
    part.observe([judged(first.task, 8, 8)] * 3)
    assert part._probes[first.task.id].rate == 25 / 32 and part._chosen == [(first.task.id, second.task.id)]


def test_pairs_take_turns_over_steps_of_an_odd_number_of_prompts() -> None:
    part = known({"a": (1, 8), "b": (2, 8), "c": (7, 8), "d": (6, 8)}, pairs=2)
    part._chosen, part.prompts = part._choice(), 3
    steps = [[(a.task.id, a.task.meta["pair"], a.task.meta["role"]) for a in part.next(step)] for step in range(2)]
    assert steps[0] == [("a", 0, "hard"), ("c", 0, "easy"), ("b", 1, "hard")] == steps[1]
    part.prompts = 2
    assert [[a.task.id for a in part.next(step)] for step in (0, 1, 2)] == [["a", "c"], ["b", "d"], ["a", "c"]]


def test_a_pair_fills_the_step_and_several_take_turns() -> None:
    part = probed(RATES, candidates=8, pairs=2)
    part.prompts = 6
    assert [a.task.id for a in part.next(0)] == ["4", "5", "3", "6", "4", "5"]
    assert [a.task.meta["pair"] for a in part.next(0)] == [0, 0, 1, 1, 2, 2]
    part.prompts = 2
    assert [a.task.id for a in part.next(0)] != [a.task.id for a in part.next(1)]


def test_pools_keep_hard_and_easy_prompts_apart() -> None:
    part = probed(RATES, candidates=8)
    sources = {"4": "easy", "5": "hard", "3": "hard", "6": "easy"}
    for key, probe in part._probes.items():
        probe.task = Task(key, "?", meta={"source": sources.get(key, "easy")})
    part.pools = ("hard", "easy")
    assert part._choice() == [("3", "6")]


def test_probes_change_no_weight_and_abstentions_say_nothing() -> None:
    part = build("curriculum", {"name": "paired", "candidates": 2}, stream=stream_of(4), prompts=2, group=8)
    asks = part.next(0)
    batch = make("S059").value(Batch.from_groups([judged(a.task, 4, 8) for a in asks]))
    assert not bool(batch.weights.any()) and batch.totals is not None and batch.totals.tokens == 0
    part.observe([judged(asks[0].task, 1, 4, abstained=4), judged(asks[1].task, 0, 0, abstained=8)])
    first, second = part._probes.values()
    assert (first.right, first.judged) == (1, 4) and second.judged == 0
    assert part._choice() == []


def test_a_resumed_run_asks_the_same_pair() -> None:
    part = probed(RATES, candidates=8)
    twin = build("curriculum", {"name": "paired", "candidates": 8}, stream=stream_of(8), prompts=2, group=8)
    twin.load_state_dict(part.state_dict())
    assert [(a.task, a.n) for a in twin.next(5)] == [(a.task, a.n) for a in part.next(5)]
    assert twin.state_dict() == part.state_dict() and twin.stream.state_dict()["position"] == 0


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(RunError, match="0 are solved sometimes"):
        probed({str(i): 0 for i in range(4)}, candidates=2, steps=40)
    with pytest.raises(UsageError, match="2 or more"):
        Paired(stream_of(2), 1, 8)
    for option in ("candidates", "most", "pairs"):
        with pytest.raises(UsageError, match="at least 1"):
            Paired(stream_of(2), 2, 8, **{option: 0})
        assert getattr(Paired(stream_of(2), 2, 8, **{option: 1}), option) == 1
    assert SignedOutcome(0.0).penalty == 0
    with pytest.raises(UsageError, match="penalty"):
        make("S059", penalty=-1.0)


def test_the_method() -> None:
    method = make("S059", candidates=16, most=3)
    assert type(method.select).__name__ == "Unprobed"
    assert method.curriculum["candidates"] == 16 and method.curriculum["most"] == 3 and method.group_relative


def test_pools_are_those_that_are_named() -> None:
    named = make("S059", pools=("aime", "deepscaler")).curriculum
    part = build("curriculum", named, stream=stream_of(4), prompts=2, group=8)
    assert tuple(part.pools) == ("aime", "deepscaler")


def test_the_defaults_of_the_method_and_of_its_parts() -> None:
    method = make("S059")
    assert method.curriculum == {"name": "paired", "candidates": 64, "most": 2, "choose": "pair", "pairs": 1}
    assert SignedOutcome.relabels, "a division by the group's deviation undoes it"
    assert SignedOutcome() == method.reward and PairWeighted() == method.credit
    batch = Batch.from_groups([judged(Task("a", "?"), 1, 2, abstained=1)], torch.float64)
    found = SignedOutcome()(batch)
    assert found.values.tolist() == [1, -1, 0] and found.valid.tolist() == [True, True, False]
    assert SignedOutcome(0.0)(batch).values.tolist() == [1, 0, 0]
    part = Paired(stream_of(1), 2, 8)
    assert (part.candidates, part.most, part.choose, part.pairs, part.pools) == (64, 2, "pair", 1, None)
    words = {norm: PairWeighted(norm).summary for norm in ("group", "mean", "pair")}
    assert [words[n]["normalisation"] for n in words] == ["group std", "none", "pair std"]
    assert [words[n]["baseline"] for n in words] == ["group mean", "group mean", "pair mean"]


def test_prompts_without_a_role_have_weight_one() -> None:
    groups = [judged(Task("a", "?"), 1, 8)]
    found = make("S059", hard_weight=3.0, easy_weight=5.0).value(Batch.from_groups(groups, torch.float64)).advantages
    assert found[0, 0].item() == pytest.approx(2.474874, abs=1e-5)


def test_rewards_that_hardly_differ_are_hardly_told_apart() -> None:
    """A deviation of 1e-6, as much as is added to it, halves -+0.707107."""
    batch = Batch.from_groups([judged(Task("a", "?"), 1, 2)], torch.float64)
    batch.rewards = torch.tensor([2**0.5 * 1e-6, 0.0], dtype=torch.float64)
    assert PairWeighted()(batch)[:, 0].tolist() == pytest.approx([0.353553, -0.353553], abs=1e-6)


def test_training_moves_the_two_prompts_of_the_pair_alone() -> None:
    """Six independent problems of chances 0.88, 0.5 and 0.12: after probing, one of the first and one of the last."""
    kinds = ((2, 1.0, 0.0, 2.0), (2, 1.0, 0.0, 0.0), (2, 1.0, 0.0, -2.0))
    policy = Setting(kinds=kinds, spread=0.0).policy(0)
    start, moved = policy.theta.detach().clone(), []

    def watch(step: int, batch: Batch, metrics: Any) -> None:
        moved.append((policy.theta.detach() != start).nonzero()[:, 0].tolist())

    tasks = [Task(str(i), str(i), kind="tabular") for i in range(6)]
    method = {"name": "S059", "options": {"candidates": 6}}
    train(policy, tasks, TabularVerifier(policy.tree), method, Training(12, 2, 8, 1.0), 0, watch)
    assert moved[0] == [] and len(moved[-1]) == 2, "probing changed a weight, or training more than the pair"
    easy, hard = moved[-1]
    assert easy in (0, 1) and hard in (4, 5)
    assert all(found in ([], moved[-1]) or set(found) < set(moved[-1]) for found in moved)
