"""Credit of steps: published worked numbers, the exact gradient, what it has in common with credits of turns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from turned import turned

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.credit.step_reward import StepReward
from assay.credit.step_rloo import StepRLOO
from assay.credit.turns.turn_group import TurnGroup
from assay.errors import UsageError
from assay.method import make_method
from assay.policies.tabular import TabularPolicy, Tree, enumerate_groups
from assay.signals.steps import Steps
from assay.types import Ask, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

TANGO = {"place": "suffix_sum", "convex": True}


def stepped(make_batch, rows, outcomes, sizes=None, groups=None, after=0, ends=True) -> Batch:
    """Responses with a reward on the end of each step (or on its first token), and ``after`` tokens outside steps."""
    sizes = sizes or [[1] * len(row) for row in rows]
    batch = make_batch([sum(size) + after for size in sizes], list(outcomes), groups=groups)
    batch.signals = {"steps": torch.full(batch.tokens.shape, -1)}
    batch.token_rewards = torch.zeros_like(batch.advantages)
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        for k, (a, b) in enumerate(pairwise(np.cumsum([0, *size]).tolist())):
            batch.signals["steps"][i, a:b] = k
            batch.token_rewards[i, b - 1 if ends else a] = row[k]
    return batch


def rows_of(batch: Batch, found: torch.Tensor) -> list[list[float]]:
    return [row[: len(e.tokens)].tolist() for row, e in zip(found, batch.episodes, strict=True)]


def near(got, want, digits=1e-6) -> bool:
    return all(a == pytest.approx(b, abs=digits) for a, b in zip(got, want, strict=True))


VERDICTS = [[1 / 3, 1 / 3, -1 / 3], [0.5, 0.5]]


def test_suffix_sums_of_compared_steps_beside_the_outcome(make_batch) -> None:
    """RL Tango: three steps, the last one bad, of a wrong response; two good ones of a right response."""
    batch = stepped(make_batch, VERDICTS, [0, 1], after=1)
    alone = StepReward(place="suffix_sum", outcome=None)(batch)
    assert near(rows_of(batch, alone), [[-1.350276, -1.543173, -1.736069, 0], [1.350276, 0.675138, 0]])
    tenth = StepReward(**TANGO, weight=0.1)(batch)
    want = [[-0.771423, -0.790712, -0.810002, -0.636396], [0.771423, 0.703909, 0.636396]]
    assert near(rows_of(batch, tenth), want)
    half = rows_of(batch, StepReward(**TANGO, weight=0.5)(batch))
    assert half[0][:3] == pytest.approx([-1.028691, -1.125139, -1.221587], abs=1e-6)


def test_steps_compared_over_the_group_and_added_to_the_outcome(make_batch) -> None:
    """OPRL: implicit rewards of two and three turns, compared over all five, plus the compared outcome."""
    batch = stepped(make_batch, [[0.4, -0.2], [-0.6, 0.2, 0.1]], [1, -1], [[2, 1], [1, 3, 1]])
    exact = {"ddof": 0, "epsilon": 0.0}
    credit = StepReward(**exact, outcome={"name": "grpo", **exact})
    want = [2.204433, 2.204433, 0.483815], [-2.663264, *[-0.369107] * 3, -0.655876]
    assert near(rows_of(batch, credit(batch)), want)
    merged = rows_of(batch, StepReward(**exact, merged=True)(batch))
    values = np.array([1.4, 0.8, -1.6, -0.8, -0.9])
    z = ((values - values.mean()) / values.std()).tolist()
    assert near(merged, [[z[0], z[0], z[1]], [z[2], *[z[3]] * 3, z[4]]], 1e-9)


def test_tokens_compared_over_the_group_with_the_outcome_in_them(make_batch) -> None:
    """CAPO: 2 for a right response, -1 on each token of a flawed step."""
    batch = stepped(make_batch, [[0, -1, 0], [-1, 0]], [2, 0], [[2, 2, 1], [2, 1]])
    credit = StepReward(unit="token", merged=True, ddof=0, epsilon=0.0)
    want = [[1.042572, 1.042572, 0.208514, 0.208514, 1.042572], [-1.459601, -1.459601, -0.625543]]
    assert near(rows_of(batch, credit(batch)), want)


def test_placement_of_plain_values(make_batch) -> None:
    batch = stepped(make_batch, [[1.0, -2.0], [4.0]], [8, 16], [[2, 1], [2]], after=1, ends=False)
    plain = {"kind": "none", "outcome": None}
    placed = {place: rows_of(batch, StepReward(place=place, **plain)(batch)) for place in PLACES}
    assert placed["step_end"] == [[0, 1, -2, 0], [0, 4, 0]]
    assert placed["broadcast"] == [[1, 1, -2, 0], [4, 4, 0]]
    assert placed["suffix_sum"] == [[-1, -1, -2, 0], [4, 4, 0]]
    joined = {place: rows_of(batch, StepReward(place=place, kind="none", merged=True)(batch)) for place in PLACES}
    assert joined["step_end"] == [[0, 1, 6, 0], [0, 20, 0]]
    assert joined["broadcast"] == [[9, 9, 6, 0], [20, 20, 0]]
    assert joined["suffix_sum"] == [[7, 7, 6, 0], [20, 20, 0]]
    by_token = {"kind": "none", "merged": True, "unit": "token", "weight": 0.5}
    assert rows_of(batch, StepReward(place="step_end", **by_token)(batch)) == [[0, 0.5, -1, 8], [0, 2, 16]]
    assert rows_of(batch, StepReward(place="suffix_sum", **by_token)(batch)) == [[7.5, 7.5, 7, 8], [18, 18, 16]]


PLACES = ("step_end", "broadcast", "suffix_sum")


def test_tokens_that_are_not_learned_from(make_batch) -> None:
    """A step's value stands on its learnable tokens; a step without any is in no statistics."""
    batch = stepped(make_batch, [[3.0, 9.0, 1.0], [5.0]], [0, 0], [[2, 1, 2], [1]])
    batch.mask[0, 1] = batch.mask[0, 2] = False
    batch.token_rewards[0, 0] = 3.0
    credit = StepReward(kind="center", outcome=None)
    assert rows_of(batch, credit(batch)) == [[0, 0, 0, -2, -2], [2]]
    ends = rows_of(batch, replace(credit, place="step_end")(batch))
    assert ends == [[0, 0, 0, 0, -2], [2]]


def test_within_what_is_compared(make_batch) -> None:
    batch = stepped(make_batch, [[1.0, 3.0], [7.0], [0.0, 10.0]], [0] * 3, groups=[0, 0, 1])
    centred = {"kind": "center", "outcome": None}
    found = {w: rows_of(batch, StepReward(within=w, **centred)(batch)) for w in ("response", "group", "batch")}
    assert found["response"] == [[-1, 1], [0], [-5, 5]]
    assert near(found["group"], [[-8 / 3, -2 / 3], [10 / 3], [-5, 5]])
    assert near(found["batch"], [[-3.2, -1.2], [2.8], [-4.2, 5.8]])
    kept = StepReward(within="response", singleton="keep_raw", **centred)(batch)
    assert rows_of(batch, kept)[1] == [7]


def test_what_is_not_scored_has_its_outcome_alone(make_batch) -> None:
    """Unscored steps are in no statistics; without a scored one nothing is taken from the outcome."""
    batch = stepped(make_batch, [*VERDICTS, [9.0]], [0, 1, 1], groups=[0, 0, 0])
    batch.reward_terms = {"scored": torch.tensor([1.0, 1.0, 0.0])}
    credit = StepReward(**TANGO, weight=0.1)
    outcome = GRPO()(batch_without(batch))
    assert near(rows_of(batch, credit(batch))[2:], [[0.9 * float(outcome[2, 0])]])
    first = rows_of(batch, StepReward(place="suffix_sum", outcome=None)(batch))[0]
    assert first == pytest.approx([-1.350276, -1.543173, -1.736069], abs=1e-6)
    batch.reward_terms = {"scored": torch.zeros(3)}
    assert torch.equal(credit(batch), outcome)
    batch.weights[1] = 0.0
    batch.reward_terms = {}
    assert not bool(credit(batch)[1].any())


def batch_without(batch: Batch) -> Batch:
    return replace(batch, token_rewards=None)


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=3), min_size=2, max_size=4),
    st.sampled_from(["center", "center_std", "none"]),
)
def test_of_turns_it_is_the_credit_of_turns(rows, kind) -> None:
    """Turns as steps, compared over the task, then summed or not: the same numbers by code that knows turns."""
    batch = turned(rows, [float(i) for i in range(len(rows))])
    batch.signals = {"steps": batch.turn}
    for place, sums in (("broadcast", "none"), ("suffix_sum", "after")):
        want = TurnGroup("task", sums, of="turns", kind=kind, episode=1.0)(batch)
        outcome = {"center": {"name": "grpo", "normalise": False}, "center_std": "grpo", "none": "reinforce"}[kind]
        got = StepReward(place=place, kind=kind, outcome=outcome)(batch)
        assert torch.allclose(got, want, atol=1e-9)


def test_the_credit_of_prime_is_that_of_steps_of_one_token(make_batch) -> None:
    """Its worked numbers: q of three tokens and of two, beta 0.05, the first response right."""
    q = [[0.2, -0.1, 0.4], [-0.3, 0.1]]
    batch = stepped(make_batch, [[0.05 * x for x in row] for row in q], [1, 0])
    found = StepRLOO(Steps("fixed", 1), "step", silence_ends=False)(batch)
    assert near(rows_of(batch, found), [[1.04, 1.025, 1.025], [-1.0266667, -1.0033333]])


@pytest.mark.parametrize("size", [2, 3])
def test_summed_step_rewards_beside_a_leave_one_out_outcome_give_the_gradient(size) -> None:
    """In expectation over groups, exactly that of E[R + sum r], R and r with their own parts of the credit."""
    policy = TabularPolicy.random(Tree.of([0.0, [1.0, 0.0], [[1.0], [0.0, 0.75]]]), seed=1)
    leaves, chance = enumerate_groups(policy, size)
    episodes = policy.leaf_episodes(leaves.flatten())
    score = dict(zip(policy.tree.paths, policy.tree.rewards.tolist(), strict=True))
    groups = [
        Group(
            Ask(Task(str(i), ""), size),
            tuple(made),
            tuple(Verdict(score[tuple(e.tokens.tolist())], True) for e in made),
        )
        for i, made in enumerate(episodes[j : j + size] for j in range(0, len(episodes), size))
    ]
    batch = Batch.from_groups(groups, torch.float64)
    batch.logprobs = policy.forward(batch).logprobs.detach()
    batch.signals = {"steps": torch.where(batch.mask, torch.arange(batch.mask.shape[1]), -1)}
    batch.rewards = torch.tensor([v.score for v in batch.verdicts], dtype=torch.float64)
    batch.token_rewards = torch.where(batch.mask, 0.3 * batch.tokens + 0.1, 0).to(torch.float64)
    batch.advantages = StepReward(place="suffix_sum", kind="none", outcome="rloo")(batch)
    logprobs = policy.forward(batch).logprobs
    loss = (-(batch.advantages * logprobs).sum(-1).reshape(-1, size).mean(-1) * chance.detach()).sum()
    (found,) = torch.autograd.grad(loss, policy.logits)
    placed = torch.tensor([sum(0.3 * t + 0.1 for t in path) for path in policy.tree.paths])
    value = (policy.leaf_logprobs().exp() * (policy.tree.rewards + placed)).sum()
    (exact,) = torch.autograd.grad(value, policy.logits)
    assert torch.allclose(found, -exact, atol=1e-12)


def test_the_weight_decays_over_the_run_and_is_kept(make_batch) -> None:
    batch = stepped(make_batch, VERDICTS, [0, 1])
    credit = StepReward(**TANGO, weight=0.1, final=0.001)
    credit.planned(300)
    for done, alpha in ((0, 0.1), (75, 0.0316228), (150, 0.01), (299, 0.00101547), (300, 0.001), (900, 0.001)):
        credit.load_state_dict({"done": done})
        assert credit.alpha == pytest.approx(alpha, rel=1e-5)
        credit(batch)
        assert credit.state_dict() == {"done": done + 1}
    other = StepReward(**TANGO, weight=0.1, final=0.001, over=10)
    other.load_state_dict({"done": 5})
    assert other.alpha == pytest.approx(0.01)
    untold = StepReward(weight=0.1, final=0.001)
    untold(batch)
    assert untold.alpha == pytest.approx(0.1)


def test_without_weight_it_is_the_outcomes_credit(make_batch) -> None:
    batch = stepped(make_batch, VERDICTS, [0, 1], after=1)
    for convex in (False, True):
        assert torch.allclose(StepReward(weight=0.0, convex=convex)(batch), GRPO()(batch_without(batch)))
    assert not bool(StepReward(weight=1.0, convex=True)(batch)[:, -1].any())


def test_options() -> None:
    for bad, said in (
        ({"weight": -1}, "at least 0"),
        ({"weight": 1.5, "convex": True}, r"in \[0, 1\]"),
        ({"weight": 0.1, "final": 0.2}, "at most weight 0.1"),
        ({"final": 0.0}, "above 0"),
        ({"over": 0}, "at least 1"),
        ({"merged": True, "convex": True}, "merged"),
        ({"merged": True, "outcome": "rloo"}, "merged"),
    ):
        with pytest.raises(UsageError, match=said):
            StepReward(**bad)
    made = make_method("grpo", credit={"name": "step_reward", "steps": {"by": "newline"}, "outcome": "rloo"}).credit
    assert made.steps == Steps("newline") and made.needs == {Steps("newline")} and made.group_relative
    assert [type(m).__name__ for m in made.members] == ["RLOO"]
    assert StepReward(merged=True).members == [] and not StepReward(within="batch", outcome=None).group_relative
    assert made.summary == {"baseline": "steps of the group", "normalisation": "std"}
    with pytest.raises(UsageError, match="one for the whole"):
        make_method("grpo", credit="step_reward", objective="gspo")
