"""S038: bins, utilities, the choice of what to go on with, a calibrated head, and sampling steered by it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import catalogue
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Budget, Strategy
from assay.inference.heads.joint import Bins, ByJointHead, JointHead, choose, expected_max, start_states, utility
from assay.inference.heads.joint_training import JointTraining
from assay.inference.sampling.adaptive import Adaptive
from assay.lab.settings.thinking.detours import Setting
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.states import states, width
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_groups

BINS = Bins(2, (0, 20, 181))
P1 = np.array([[0.3, 0.1], [0.4, 0.2]])
P2 = np.array([[0.1, 0.5], [0.1, 0.3]])
VALUES, TOKENS = np.array([0.0, 1.0]), np.array([10.0, 100.0])


def test_outcomes_are_numbered_by_reward_and_remaining_length() -> None:
    assert Bins(2).of(0, 0) == 0
    assert Bins(2).of(300, 1) == 9
    assert Bins(7).of(300, 1.0) == 49
    assert Bins(7).of(300, 0.6) == 33
    assert Bins(7).of(40000, 0.95) == 55
    assert Bins(2).of(255, 0) == 0 and Bins(2).of(256, 0) == 1
    assert Bins(2, (0, 1, 2, 3)).tokens.tolist() == [0, 1, 2]
    for bad in ((1, 2), (0,), (0, 5, 3)):
        with pytest.raises(UsageError):
            Bins(2, bad)


def test_utilities_of_two_samples() -> None:
    assert expected_max(VALUES, [P1.sum(1), P2.sum(1)]) == pytest.approx(0.76)
    assert float(P1.sum(0) @ TOKENS + P2.sum(0) @ TOKENS) == pytest.approx(119)
    assert expected_max(TOKENS, [P1.sum(0), P2.sum(0)]) == pytest.approx(87.4)
    sets = ([P1], [P2], [P1, P2], [P1, P1])
    for beta, exact in ((0.002, (0.526, 0.236, 0.5536, 0.7101)), (0.005, (0.415, -0.01, 0.244, 0.51525))):
        assert [utility(s, VALUES, TOKENS, beta, 0.5) for s in sets] == pytest.approx(exact)
    # 119 tokens in all and 87.4 of the longest: the first is compute, the second waiting.
    for a, cost in ((1.0, 119.0), (0.0, 87.4), (0.25, 95.3)):
        assert utility([P1, P2], VALUES, TOKENS, 0.002, a) == pytest.approx(0.76 - 0.002 * cost)


THREE = Tree.uniform(2, 3)
"""Responses of three tokens, 0 or 1 each."""


class Told(JointHead):
    """A head whose predictions are given: the chance to be right and the remaining tokens, by the tokens so far."""

    def __init__(self, right: Callable[[tuple[int, ...]], float]):
        super().__init__(1, Bins(2, (0, 1, 2, 3, 4)))
        self.right = right

    def tables(self, policy: Any, episodes: Sequence[Episode]) -> list[np.ndarray]:
        out = []
        for e in episodes:
            tokens = tuple(int(t) for t in e.tokens)
            table = np.zeros((2, 4))
            table[:, 3 - len(tokens)] = 1 - self.right(tokens), self.right(tokens)
            out.append(table)
        return out


def steered(right: Callable[[tuple[int, ...]], float], budget: Budget | int, tasks: int = 1, **options: Any) -> Any:
    strategy = Adaptive(Told(right), Sampling(3), **{"every": 1, **options})
    asked = [Task(str(i), "") for i in range(tasks)]
    return strategy(asked, TabularEngine(TabularPolicy(THREE)), budget, np.random.default_rng(0))


def test_what_is_begun_badly_is_left_and_another_begun() -> None:
    """A first token of 1 is surely wrong, of 0 surely right: all are left after one token but the last one begun."""
    answers = steered(lambda t: 0.5 if not t else float(t[0] == 0), 8, tasks=60, beta=0.01, copies=1)
    for answer in answers:
        begun = answer.meta["begun"]
        assert answer.tokens == begun - 1 + 3 and len(answer.episodes) == 1
        assert answer.text.startswith("0") or begun == 8
        assert answer.meta["worth"] == [float(answer.text.startswith("0"))]
    # One begun in 1 / 2, two in 1 / 4, ...: 120 in all, and a deviation of sqrt(60 * 2) = 11.
    assert 75 < sum(a.meta["begun"] for a in answers) < 165


def test_a_beginning_that_waits_is_taken_up_again() -> None:
    """Two samples, one at a time; any first token disappoints, so that a second is begun, and 0 is better than 1.

    The better of both is gone on with, whichever was first: it begins with 0 in 3 of 4, where the second alone would in
    2 of 4. One goes to its end and the other one token, since a whole response that is surely right needs no other.
    """

    def right(t: tuple[int, ...]) -> float:
        return 0.5 if not t else 1.0 if len(t) > 1 else 0.4 - 0.1 * t[0]

    answers = steered(right, 2, tasks=400, beta=0.05, copies=1, width=1)
    assert {(a.tokens, a.meta["begun"], len(a.episodes)) for a in answers} == {(4, 2, 1)}
    assert abs(sum(a.text.startswith("0") for a in answers) - 300) < 35


def test_beginnings_that_are_worth_it_branch() -> None:
    """All have an even chance: two are begun, and each goes on twice if four are paid for; one of them if three are."""
    for samples, tokens in ((4, 2 + 4 + 4), (3, 2 + 3 + 3), (2, 2 + 2 + 2), (1, 3)):
        [answer] = steered(lambda t: 0.5, samples, beta=0.01)
        assert (answer.meta["begun"], answer.tokens, len(answer.episodes)) == (samples, tokens, samples)
        firsts = [e.tokens[0] for e in answer.episodes]
        assert samples < 3 or firsts[0] == firsts[1]
    # Two at a time: of two beginnings the first goes on twice, and so again, which makes two begun and two branches.
    # What waited, one with a token to go and one with two, has its turn after those.
    [answer] = steered(lambda t: 0.5, 4, beta=0.01, width=2)
    assert (answer.meta["begun"], answer.tokens, len(answer.episodes)) == (4, 6 + 3, 4)
    # Longer strides leave fewer chances to branch.
    [answer] = steered(lambda t: 0.5, 4, beta=0.01, every=3)
    assert len(answer.episodes) == answer.meta["begun"] == 4 and answer.tokens == 12


@pytest.mark.parametrize(("a", "begun"), [(1.0, 1), (0.0, 2), (0.5, 2)])
def test_compute_is_paid_by_the_sample_and_waiting_by_the_longest(a: float, begun: int) -> None:
    """At .1 a token the second of two even chances gains .25, and costs .3 in compute and nothing in waiting."""
    [answer] = steered(lambda t: 0.5, 2, beta=0.1, a=a, every=3)
    assert answer.meta["begun"] == begun


@pytest.mark.parametrize(("tokens", "spent", "begun"), [(2, 1, 1), (3, 3, 1), (5, 3, 1), (6, 4, 2)])
def test_each_that_goes_on_may_go_on_to_its_end(tokens: int, spent: int, begun: int) -> None:
    """Of 2 tokens one is spent, which leaves no room for three; of 6 two are begun, and one has room to go on."""
    [answer] = steered(lambda t: 0.5, Budget(tokens=tokens), beta=0.001)
    assert (answer.tokens, answer.meta["begun"]) == (spent, begun)
    assert len(answer.text.split("/")) == min(spent, 3)


def test_copies_that_cannot_be_paid_for_do_not_take_the_place_of_others() -> None:
    """Four beginnings alike, no new sample left: each goes on once. One new sample: one branch, or a fresh start."""
    even = np.array([[0.0, 0.5], [0.0, 0.5]])
    assert choose([even] * 4, [], BINS, 1e-6, 1.0, most=4, copies=2, new=0) == [0, 1, 2, 3]
    assert choose([even] * 3, [], BINS, 1e-6, 1.0, most=4, copies=2, new=1) == [0, 0, 1, 2]
    # The last of these is a fresh start: its first copy is a new sample too.
    fresh = np.array([[0.0, 0.1], [0.0, 0.9]])
    assert choose([even, fresh], [], BINS, 1e-6, 1.0, most=4, copies=2, begun=1, new=1) == [0, 1]
    assert choose([even, fresh], [], BINS, 1e-6, 1.0, most=4, copies=2, begun=1, new=0) == [0]


def test_the_answer_is_the_whole_response_of_largest_expected_reward() -> None:
    """Known at the end alone: the last token is right or wrong, and one that is surely right is enough."""
    for answer in steered(lambda t: 0.5 if len(t) < 3 else 0.9 if t[2] == 0 else 0.2, 6, tasks=30, beta=0.01):
        worth = answer.meta["worth"]
        assert worth == [0.9 if e.tokens[2] == 0 else 0.2 for e in answer.episodes]
        assert answer.text == answer.episodes[worth.index(max(worth))].text


def test_options_of_adaptive(tmp_path: Path) -> None:
    """A ten-thousandth of a reward for a token, all of it for compute; decisions every 64 tokens."""
    head = Told(lambda t: 0.5)
    ours = {"beta": 1e-4, "a": 1.0, "every": 64, "copies": 2, "width": 16}
    for made in (Adaptive(head), catalogue.make("S038", head=head)):
        assert {name: getattr(made, name) for name in ours} == ours and made.sampling == Sampling()
    assert catalogue.make("S038", head=head, sampling=Sampling(5)).sampling == Sampling(5)
    for most in ({"beta": 0.0, "a": 0.0}, {"a": 1.0, "every": 1, "copies": 1, "width": 1}, {"beta": 2.0, "width": 7}):
        Adaptive(head, **most)
    bad: list[dict[str, Any]] = [{"beta": -0.1}, {"a": -0.1}, {"a": 1.1}, {"every": 0}, {"copies": 0}, {"width": 0}]
    for options in bad:
        with pytest.raises(UsageError, match="needs beta of at least 0"):
            Adaptive(head, **options)
    kept = JointHead(3, BINS)
    kept.save(tmp_path / "joint.safetensors")
    assert Adaptive(tmp_path / "joint.safetensors").head.bins == BINS
    with pytest.raises(UsageError, match="which this engine does not give"):
        Adaptive(head)([Task("t", "")], object(), 1, np.random.default_rng(0))  # type: ignore[arg-type]


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_expected_maximum_is_that_of_enumeration(rows: list[list[float]]) -> None:
    marginals = [np.array(r) / sum(r) for r in rows]
    values = np.array([0.0, 2.0, 5.0])
    exact = sum(
        float(np.prod([m[i] for m, i in zip(marginals, pick, strict=True)])) * max(values[i] for i in pick)
        for pick in itertools.product(range(3), repeat=len(marginals))
    )
    assert expected_max(values, marginals) == pytest.approx(exact)


def test_without_a_price_samples_are_always_added_and_at_a_high_one_hardly() -> None:
    assert choose([P1, P2], [], BINS, 0.0, 0.5, most=5, copies=5) == [0] * 5
    assert choose([P1, P2], [], BINS, 0.0, 0.5, most=4, copies=2) == [0, 0, 1, 1]
    assert choose([P1, P2], [], BINS, 1.0, 0.5, most=5, copies=5) == []
    assert choose([P1, P2], [], BINS, 1.0, 0.5, most=5, copies=5, least=1) == [0]
    # What is done counts: after a response that is surely right nothing is worth a token.
    sure = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert choose([P1, P2], [sure], BINS, 1e-6, 0.5, most=5) == []


@given(st.integers(0, 10**6), st.floats(1e-4, 2e-2), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_no_single_addition_or_removal_improves_what_was_chosen(seed: int, beta: float, a: float) -> None:
    rng = np.random.default_rng(seed)
    live = [rng.dirichlet(np.ones(4)).reshape(2, 2) for _ in range(4)]

    def worth(chosen: list[int]) -> float:
        return utility([live[i] for i in chosen], BINS.values, BINS.tokens, beta, a)

    chosen = choose(live, [], BINS, beta, a, most=6, copies=2)
    assert all(chosen.count(i) <= 2 for i in chosen)
    for k in range(len(chosen)):
        assert worth(chosen[:k] + chosen[k + 1 :]) <= worth(chosen) + 1e-9
    assert worth(chosen) >= max(0.0, *(worth([i]) for i in range(4))) - 1e-9


def sampled(policy: TabularPolicy, prompts: list[str], n: int, longest: int) -> list[Group]:
    tasks = [Task(p, p) for p in prompts]
    found = TabularEngine(policy).generate([Request(p, n, Sampling(longest), i) for i, p in enumerate(prompts)])
    groups = [Group(Ask(t, n), tuple(e)) for t, e in zip(tasks, found, strict=True)]
    return judge_groups(TabularVerifier(policy.tree), groups)


def test_a_head_learns_how_often_each_outcome_follows() -> None:
    """On a tree every node's table is what is counted: rewards and remaining lengths of the responses through it."""
    tree = Tree.of([[1.0, [1.0, 0.0]], [0.0, [0.0, [1.0, 0.0]]]])
    policy = TabularPolicy.random(tree, seed=2)
    groups = sampled(policy, ["0", "1"], 300, 3)
    bins = Bins(2, (0, 1, 2, 3, 4))
    head = JointTraining(bins, stages=1, epochs=500, lr=0.2).fit(policy, groups)
    for group in groups:
        counted = np.zeros((2, 4))
        for e, v in zip(group.episodes, group.verdicts, strict=True):
            counted[int(v.passed is True), len(e.tokens)] += 1 / len(group.episodes)
        start = group.episodes[0]
        [table] = head.tables(policy, [type(start)(start.prompt, start.tokens[:0], start.mask[:0], None, "", "length")])
        assert table == pytest.approx(counted, abs=0.01)
        assert table.sum() == pytest.approx(1)
        # At the end nothing remains, and the verdict is known.
        [end] = head.tables(policy, [start])
        assert end[int(group.verdicts[0].passed is True), 0] > 0.97


def test_the_second_stage_learns_from_expected_rewards() -> None:
    """With an end that does not tell right from wrong, the first head expects the rate; that is the second's label."""
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(source="nano", nano={"hidden": 16, "layers": 1, "heads": 2, "context": 32}), 0)
    engine = HFEngine(policy)
    [episodes] = engine.generate([Request("1+1=", 1, Sampling(4), 0)])
    same = [type(episodes[0])(**{**{f: getattr(episodes[0], f) for f in episodes[0].__slots__}, "stop": "eos"})] * 4
    group = Group(Ask(Task("t", "1+1="), 4), tuple(same), tuple([Verdict.right()] * 2 + [Verdict.wrong()] * 2))
    bins = Bins(3, (0, 2, 9))
    first = JointTraining(bins, stages=1, epochs=300).fit(policy, [group])
    second = JointTraining(bins, stages=2, epochs=300).fit(policy, [group])
    [a], [b] = first.tables(policy, same[:1]), second.tables(policy, same[:1])
    assert a.sum(1) == pytest.approx([0.5, 0, 0.5], abs=0.03)
    assert b.sum(1) == pytest.approx([0, 1, 0], abs=0.03)


def test_what_is_not_known_to_have_ended_is_left_out(tmp_path: Path) -> None:
    tree = Tree.uniform(2, 3, rewards=[1, 0] * 4)
    policy = TabularPolicy(tree)
    with pytest.raises(UsageError, match="nothing to learn"):
        JointTraining().fit(policy, sampled(policy, [""], 5, 2))
    head = JointTraining(Bins(2, (0, 1, 2, 3, 4)), 1, epochs=5).fit(policy, sampled(policy, [""], 20, 3))
    head.save(tmp_path / "joint.safetensors")
    again = JointHead.load(tmp_path / "joint.safetensors")
    assert again.bins == head.bins and torch.equal(again.linear.weight, head.linear.weight)


def test_the_state_after_the_prompt_is_where_the_first_token_comes_from() -> None:
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(source="nano", nano={"hidden": 16, "layers": 2, "heads": 2, "context": 32}), 0)
    engine = HFEngine(policy)
    [[e]] = engine.generate([Request("1+1=", 1, Sampling(3), 0)])
    [start] = start_states(policy, [e])
    with torch.no_grad():
        logp = policy.head.logits(start, 1.0).log_softmax(-1)
        after = policy.head.logits(states(policy, [e])[0][0], 1.0).log_softmax(-1)
    assert float(logp[e.tokens[0]]) == pytest.approx(float(e.logprobs[0]), abs=1e-4)
    if len(e.tokens) > 1:
        assert float(after[e.tokens[1]]) == pytest.approx(float(e.logprobs[1]), abs=1e-4)


@pytest.fixture(scope="module")
def world() -> tuple[TabularPolicy, JointHead]:
    setting = Setting(problems=3, solutions=60)
    policy = setting.policy(0)
    groups = sampled(policy, ["0", "1", "2"], 60, 11)
    return policy, JointTraining(Bins(7, tuple(range(13))), epochs=60, lr=0.2).fit(policy, groups)


@pytest.mark.slow
def test_budgets_are_kept_and_the_answer_is_one_of_those_made(world: tuple[TabularPolicy, JointHead]) -> None:
    policy, head = world
    tasks = [Task(f"{i}/{k}", str(i)) for i in range(3) for k in range(4)]
    for budget in (Budget(samples=1), Budget(samples=5), Budget(tokens=7), Budget(tokens=40), Budget(6, 60)):
        for beta in (0.0, 0.01, 1.0):
            strategy = Adaptive(head, Sampling(11), beta=beta, every=2)
            for a in strategy(tasks, TabularEngine(policy), budget, np.random.default_rng(0)):
                assert a.text and a.text in {e.text for e in a.episodes}
                assert 1 <= a.tokens <= (budget.tokens or 10**6)
                assert a.meta["begun"] <= (budget.samples or 10**6)
                assert a.scoring == 0


@pytest.mark.slow
def test_a_higher_price_buys_fewer_tokens(world: tuple[TabularPolicy, JointHead]) -> None:
    policy, head = world
    tasks = [Task(f"{i}/{k}", str(i)) for i in range(3) for k in range(20)]
    spent = []
    for beta in (0.0, 0.01, 0.03, 1.0):
        found = Adaptive(head, Sampling(11), beta=beta, every=1)(
            tasks, TabularEngine(policy), 8, np.random.default_rng(0)
        )
        spent.append(np.mean([a.tokens for a in found]))
    assert spent == sorted(spent, reverse=True) and spent[0] > 2 * spent[-1]


@pytest.mark.slow
def test_the_head_is_calibrated_on_new_responses(world: tuple[TabularPolicy, JointHead]) -> None:
    """Mean expected reward after the prompt and the share that comes out right, for each problem.

    From 60 responses to each the first stage is within .05. The second, whose labels are what the first expects near
    the end, is a little further off.
    """
    policy, head = world
    groups = sampled(policy, ["0", "1", "2"], 60, 11)
    first = JointTraining(Bins(7, tuple(range(13))), stages=1, epochs=60, lr=0.2).fit(policy, groups)
    for group in sampled(policy, ["0", "1", "2"], 500, 11):
        pairs = [(group.task, e) for e in group.episodes]
        right = np.mean([v.passed is True for v in group.verdicts])
        for made, most in ((first, 0.05), (head, 0.12)):
            score = ByJointHead(made).score(pairs, TabularEngine(policy), np.random.default_rng(0))
            assert abs(np.mean([s.value for s in score]) - right) < most


def test_the_paper_names_the_strategy(world: tuple[TabularPolicy, JointHead]) -> None:
    made = catalogue.find("S038").factory(world[1], Sampling(3))  # type: ignore[misc]
    assert isinstance(made, Strategy) and isinstance(made, Adaptive)
    assert world[1].linear.weight.shape[1] == width(world[0])
    with pytest.raises(UsageError):
        Adaptive(world[1], beta=-1)
