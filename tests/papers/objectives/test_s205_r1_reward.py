"""StableReinforce: ratios, filtered advantages and rewards by hand-computed numbers, and the judge's three tries."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from choices import Choices, response
from hypothesis import given
from hypothesis import strategies as st

from assay import catalogue
from assay.batch import Batch
from assay.credit.reinforce_pp import ReinforcePlusPlus
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.named import make_strategies
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.objectives.s205_r1_reward import BoundedRatio, ConsistencyReward, InlierReturns, answer_of, question
from assay.registry import build
from assay.types import Ask, Episode, Group, Task, Verdict

WELL = "<think>First looks better.\n\nSo response 1 wins.</think><answer>1</answer>"
BARE = "So response 1 wins. <answer>1</answer>"


def test_ratios_are_bounded_before_the_surrogate(make_batch):
    batch = make_batch([3], advantages=torch.tensor([[-1.0, -1.0, -1.0]], dtype=torch.float64))
    logprobs = torch.tensor([[0.0, 10.0, -10.0]], dtype=torch.float64, requires_grad=True)
    loss = BoundedRatio()(logprobs, batch)
    # A < 0: the larger of rho and 0.8 counts.
    assert loss.value.item() == pytest.approx((1 + 1000 + 0.8) / 3)
    (found,) = torch.autograd.grad(loss.value, logprobs)
    assert found[0].tolist() == pytest.approx([1 / 3, 0, 0])
    assert loss.metrics["bounded_fraction"] == pytest.approx(2 / 3)
    wide = BoundedRatio(least=1e-9, greatest=1e9)(logprobs, batch).value.item()
    assert wide == pytest.approx((1 + math.exp(10) + 0.8) / 3)


def test_a_token_far_off_has_a_finite_loss_in_single_precision(make_batch):
    batch = make_batch([3])
    batch.mask[0, 2] = False
    batch.advantages = torch.tensor([[-1.0, 1.0, 0.0]])
    logprobs = torch.tensor([[200.0, -200.0, 500.0]], requires_grad=True)
    loss = BoundedRatio(aggregation="sequence_mean")(logprobs, batch)
    loss.value.backward()
    assert loss.value.item() == pytest.approx((1000 - 0.001) / 2) and torch.isfinite(logprobs.grad).all()


def test_outliers_are_dropped(make_batch):
    values = [0.0] * 18 + [1.0, 12.0]
    batch = make_batch([1] * 20, values)
    found = InlierReturns()(batch)[:, 0].tolist()
    assert found == pytest.approx([-0.248761] * 18 + [0.133948, 0.0], abs=1e-6)
    assert InlierReturns(outlier=5.0)(batch)[-1, 0].item() == pytest.approx(4.343752, abs=1e-6)


def test_equal_returns_and_single_tokens_have_no_advantage(make_batch):
    assert not InlierReturns()(make_batch([1] * 5, [0.1 + 0.2] * 5)).any()
    assert not InlierReturns()(make_batch([1], [3.0])).any()
    assert InlierReturns()(make_batch([0, 0], [1.0, 0.0])).shape == (2, 0)


class Judge:
    """Replies in turn; counts what it was asked."""

    def __init__(self, *replies: str):
        self.replies, self.asked, self.seeds = list(replies), [], []

    def generate(self, requests):
        self.asked += [r.prompt for r in requests]
        self.seeds += [r.seed for r in requests]
        return [[reply_of(self.replies.pop(0) if self.replies else "?")] for _ in requests]


def reply_of(text: str) -> Episode:
    zeros = np.zeros(1, dtype=np.int64)
    return Episode(zeros, zeros, zeros == 0, None, text, "eos")


def rewarded(judge, *responses: tuple[str, bool | None]):
    episodes = tuple(reply_of(text) for text, _ in responses)
    verdicts = tuple(Verdict(float(bool(p)), p) for _, p in responses)
    group = Group(Ask(Task("t", ""), len(responses)), episodes, verdicts)
    return ConsistencyReward(judge)(Batch.from_groups([group], torch.float64))


@pytest.mark.parametrize(
    ("text", "passed", "reply", "want"),
    [
        (WELL, True, "1", 2.0),
        (WELL, True, "0", 1.0),
        (WELL, False, "1", 0.5),
        (BARE, True, "1", 1.5),
        (WELL, True, "cannot tell", 1.5),
        (BARE, False, "1", 0.0),
        (WELL, True, "Output: 1.", 2.0),
        (WELL, True, "10 or 0.1", 1.5),
        (WELL, True, "1 or 0", 1.5),
    ],
)
def test_rewards(text, passed, reply, want):
    reward = rewarded(Judge(*[reply] * 3), (text, passed))
    assert reward.values.item() == pytest.approx(want) and reward.valid.item()


def test_the_judge_is_asked_about_right_answers_only_and_thrice_at_most():
    judge = Judge("?", "1", "?", "?")
    reward = rewarded(judge, (WELL, True), (BARE, True), (WELL, False), ("no tags", True), (WELL, None))
    assert reward.terms["consistency"].tolist() == [0, 1, 0, 0, 0]
    assert reward.valid.tolist() == [True] * 4 + [False]
    assert len(judge.asked) == 4 and judge.asked[0] == judge.asked[2] == judge.asked[3]
    assert len(set(judge.seeds)) == 4


def test_without_a_judge_nothing_is_consistent():
    assert rewarded(None, (WELL, True)).values.item() == 1.5


def test_the_judge_sees_the_end_of_the_reasoning_and_the_answer():
    text = "<think>" + "\n".join(f"line {i}" for i in range(9)) + "</think><answer> B </answer>"
    asked = question(text)
    assert "line 6\nline 7\nline 8\n" in asked and "line 5" not in asked and "\nB\n" in asked and "<" not in asked


@pytest.mark.parametrize(
    ("answer", "shown"), [("1", "Response 1 is better."), (" 2 ", "Response 2 is better."), ("3", "3")]
)
def test_the_judge_is_told_in_words_which_response_was_chosen(answer, shown):
    asked = question(f"<think>The second one counts right.</think><answer>{answer}</answer>")
    assert f"\nThe second one counts right.\n\nAnswer:\n{shown}\n" in asked


def test_the_judge_is_asked_once_more_with_another_seed_and_reads_on():
    """Seeds are of text and attempt alone; a reply that is readable ends the questions about that response."""
    judge = Judge("?", "?", "1", "0")
    reward = rewarded(judge, (WELL, True), (BARE, True))
    assert reward.terms["consistency"].tolist() == [1, -1] and len(judge.asked) == 4
    again = Judge("1")
    rewarded(again, (WELL, True))
    assert again.seeds == judge.seeds[:1] and all(0 <= s < 2**56 for s in judge.seeds)
    once = Judge("?", "1")
    assert not ConsistencyReward(once, tries=1)._ask([WELL])[0] and len(once.asked) == 1


def test_weights_of_the_reward():
    """0.25 + 1 + 2 for a well-formed right and consistent judgement; no judge is asked without an answer."""
    judge = Judge("1")
    reward = ConsistencyReward(judge, format_weight=0.25, consistency_weight=2.0)
    group = Group(Ask(Task("t", ""), 1), (reply_of(WELL),), (Verdict.right(),))
    found = reward(Batch.from_groups([group], torch.float64))
    assert found.values.item() == pytest.approx(3.25)
    assert {k: v.item() for k, v in found.terms.items()} == {"format": 1, "accuracy": 1, "consistency": 1}


def test_defaults():
    """Ratios in [0.001, 1000], three deviations, a clip of 0.2, a divergence of 0.001 in the reward, 0.5 and 0.5."""
    method = catalogue.make("S205")
    for objective in (method.objective, BoundedRatio(aggregation="sequence_mean")):
        assert (objective.least, objective.greatest, objective.clip_low, objective.clip_high) == (1e-3, 1e3, 0.2, 0.2)
        assert objective.aggregation == "sequence_mean" and not objective.kl_weight
    for credit in (method.credit, InlierReturns()):
        assert (credit.outlier, credit.ddof, credit.epsilon) == (3, 0, 1e-8)
    assert isinstance(catalogue.make("S205", kl_weight=0).reward, ConsistencyReward)
    reward = ConsistencyReward()
    assert (reward.format_weight, reward.consistency_weight, reward.tries) == (0.5, 0.5, 3)
    assert (reward.sampling.max_tokens, reward.sampling.temperature) == (64, 0.1)
    assert ConsistencyReward(tries=1).tries == 1 and BoundedRatio(least=1.0, greatest=1.0).least == 1
    for bad in ({"least": 0.0}, {"greatest": 0.5}):
        with pytest.raises(UsageError, match="S205"):
            BoundedRatio(**bad)
    assert "outliers" in InlierReturns().summary["normalisation"]


def test_the_divergence_is_a_reward_at_every_token(make_batch):
    """- 0.5 (log pi_old - log pi_ref) at each of two tokens, and the verdict at the last: returns 0.75 and 0.875."""
    batch = make_batch([2, 2], [1.0, 0.0], passed=[True, False])
    batch.signals["policy_logprobs"] = torch.full((2, 2), -1.0, dtype=torch.float64)
    batch.signals["reference_logprobs"] = torch.full((2, 2), -1.25, dtype=torch.float64)
    method = make_method(catalogue.make("S205", kl_weight=0.5))
    method.worth(batch)
    method.compare(batch)
    returns = torch.tensor([[0.75, 0.875], [-0.25, -0.125]]).double()
    want = (returns - returns.mean()) / returns.std(correction=0)
    assert torch.allclose(batch.advantages, want, atol=1e-6)
    make_method(catalogue.make("S205")).worth(batch)
    assert batch.token_rewards.flatten().tolist() == pytest.approx([-0.001 * 0.25] * 4), "0.001 unless told"


def test_the_deviation_that_z_is_by(make_batch):
    """Returns 0, 0, 0, 4: z = (4 - 1) / sqrt 3 with the population's deviation, 3 / 2 with the unbiased one."""
    batch = make_batch([1] * 4, [0.0, 0, 0, 4])
    for ddof, z in ((0, math.sqrt(3)), (1, 1.5)):
        assert InlierReturns(ddof=ddof)(batch)[3, 0].item() == pytest.approx(z)
        assert InlierReturns(outlier=z + 1e-6, ddof=ddof, epsilon=0.0)(batch)[3, 0].item() == pytest.approx(z)
        assert InlierReturns(outlier=z - 1e-6, ddof=ddof, epsilon=0.0)(batch)[3, 0].item() == 0
    # An epsilon of 1 in the variance of 3: 3 / 2.
    assert InlierReturns(epsilon=1.0)(batch)[3, 0].item() == pytest.approx(1.5)
    assert InlierReturns(ddof=1)(make_batch([1, 1], [0.0, 2.0]))[:, 0].tolist() == pytest.approx(
        [-(0.5**0.5), 0.5**0.5]
    )


def test_what_is_not_learned_from_is_in_no_statistic(make_batch):
    batch = make_batch([1, 1, 1], [1.0, 0.0, 50.0])
    batch.weights = torch.tensor([1.0, 1.0, 0.0]).double()
    assert InlierReturns()(batch)[:, 0].tolist() == pytest.approx([1, -1, 0], abs=1e-6)


def test_options():
    method = make_method("S205")
    assert {"policy_logprobs", "reference_logprobs"} <= method.needs and method.credit.level == "token"
    assert "reference_logprobs" not in make_method("S205", reward="verdict").needs
    for seam, bad in (("objective", {"least": 2.0}), ("credit", {"outlier": 0.0})):
        with pytest.raises(UsageError, match="S205"):
            make_method("S205", **{seam: bad})
    with pytest.raises(UsageError, match="tries"):
        ConsistencyReward(tries=0)
    with pytest.raises(UsageError, match="gspo_token"):
        make_method("S205", objective="gspo")


class Judging:
    """A reward model that gives the same judgements of a pair in turn."""

    def __init__(self, *texts: str):
        self.texts = texts

    def generate(self, requests):
        return [[reply_of(self.texts[i % len(self.texts)]) for i in range(r.n)] for r in requests]


def voted(*texts: str, k: int | None = None, **options):
    strategy = build("inference", {"name": "voting", **options})
    [answer] = strategy([Task("pair", "Which is better?")], Judging(*texts), k or len(texts), np.random.default_rng(0))
    return answer


def says(verdict: object) -> str:
    return f"<think>The other one is worse.</think><answer>{verdict}</answer>"


@pytest.mark.parametrize(
    ("judgements", "verdict", "share"),
    [
        ([1] * 8 + [2] * 7, "1", 8 / 15),
        ([2] * 8 + [1] * 7, "2", 8 / 15),
        ([2, 1] * 5 + [None] * 5, "2", 1 / 2),
        ([1] * 4 + [2] * 5 + [None] * 6, "2", 5 / 9),
        ([None] * 14 + [2], "2", 1.0),
    ],
)
def test_the_verdict_of_fifteen_judgements(judgements, verdict, share):
    """Those without an answer tag have no vote, however often they name a response in their last line."""
    answer = voted(*["I would say\n1" if j is None else says(j) for j in judgements])
    assert answer_of(answer.text) == verdict and answer.meta["share"] == pytest.approx(share)
    assert len(answer.episodes) == 15


def test_without_a_readable_judgement_it_abstains():
    assert voted(*["response 1"] * 15).abstains
    assert voted(says(1), says(1), says(2), least=0.8).abstains


def test_voting_makes_a_judge_that_is_right_six_times_in_ten_right_eight_times_in_ten():
    """P(8 or more of 15 are right) at 0.6 is 0.7869, and at 0.5 still one half; from the rule at each count."""
    won = [answer_of(voted(*[says(1)] * c, *[says(2)] * (15 - c)).text) == "1" for c in range(16)]

    def chance(p: float) -> float:
        return sum(w * math.comb(15, c) * p**c * (1 - p) ** (15 - c) for c, w in enumerate(won))

    assert chance(0.6) == pytest.approx(0.7869, abs=1e-4) and chance(0.5) == pytest.approx(0.5)


def test_it_is_a_strategy_of_the_command_line():
    named = make_strategies("sample,voting", sampling=Sampling(64, 1.0))
    assert named["voting"].sampling.max_tokens == 64


@given(st.lists(st.floats(-6.9, 6.9), min_size=1, max_size=5), st.floats(-2, 2))
def test_within_the_limits_it_is_the_clipped_surrogate(make_batch, gaps, advantage):
    batch = make_batch([len(gaps)])
    batch.advantages[:] = advantage
    logprobs = torch.tensor([gaps], dtype=torch.float64)
    assert torch.equal(BoundedRatio()(logprobs, batch).value, ClippedSurrogate()(logprobs, batch).value)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.integers(1, 3))
def test_without_outliers_it_is_reinforce_plus_plus(make_batch, rewards, length):
    batch = make_batch([length] * len(rewards), rewards)
    batch.token_rewards = torch.full(batch.mask.shape, -0.1, dtype=torch.float64)
    found, want = InlierReturns(outlier=100.0, ddof=1)(batch), ReinforcePlusPlus()(batch)
    np.testing.assert_allclose(found, want, atol=1e-9)


def test_in_training_consistent_right_judgements_win():
    """Four judgements, alike at first: right and argued so, right against it, wrong, and right without form."""
    texts = (WELL, WELL.replace("response 1 wins", "response 2 wins"), WELL.replace(">1<", ">2<"), BARE)

    class Reads(Judge):
        def generate(self, requests):
            return [[reply_of("1" if "response 1 wins" in r.prompt else "0")] for r in requests]

    method = make_method(catalogue.make("S205", judge=Reads(), kl_weight=0))
    policy = Choices(torch.zeros(2, 4, dtype=torch.float64), [response(text=t) for t in texts])
    for _ in range(40):
        batch = method.value(policy.batch(16, lambda _, k: Verdict.wrong() if k == 2 else Verdict.right()))
        for _ in range(2):
            policy.step(method, batch, 0.3)
    assert policy.chances[:, 0].min() > 0.8
