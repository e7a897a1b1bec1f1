"""Unsupervised rewards: certainties by hand and by exact sums, frequencies, sharpening and the collapse step."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from spelled import nano, responses

from assay.errors import UsageError
from assay.lab.settings.bandits import choices
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.papers.rewards.s023_urlvr import FOOLED, collapse_step, sharpened, urlvr
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.likelihood.intrinsic import Certainty, Frequency
from assay.rewards.likelihood.self_verdict import SelfVerdict
from assay.rewards.outcome.majority import MajorityVote
from assay.rewards.outcome.vote import Ballot
from assay.signals.base import Models
from assay.types import Task
from assay.verify.text.compare import same


def test_sharpening_by_the_worked_numbers():
    wanted = [0.644405, 0.831253, 0.930509, 0.973261, 0.989994, 0.996296]
    assert sharpened(0.4, 1.0, 6) == pytest.approx(wanted, abs=1e-6)
    p = 0.4
    for found in sharpened(0.4, 0.7, 5):
        p = p * math.exp(1 / 0.7) / (p * math.exp(1 / 0.7) + 1 - p)
        assert found == pytest.approx(p)
    # The gap to 1 shrinks by e^(-1/beta) a step.
    late = sharpened(0.4, 1.0, 12)
    assert (1 - late[-1]) / (1 - late[-2]) == pytest.approx(math.exp(-1), rel=1e-3)
    for p, beta in ((1.0, 1.0), (0.0, 1.0), (0.4, 0.0)):
        with pytest.raises(UsageError, match="sharpened"):
            sharpened(p, beta)
    assert len(sharpened(0.4, 1.0)) == 1 and sharpened(0.4, 1.0, 0) == []


@pytest.mark.parametrize(("p", "beta"), [(0.4, 1.0), (0.9, 0.5), (0.02, 3.0)])
def test_a_step_is_the_optimum_with_a_divergence(p, beta):
    """Found by search: of chances q, the greatest q - beta KL(q || p)."""

    def loss(q):
        return -q + beta * (q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p)))

    best = minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}).x
    assert sharpened(p, beta) == pytest.approx([best], abs=1e-6)
    # Far out, where e^x is too large for a number.
    assert sharpened(0.5, 1e-3, 1) == [1.0] and sharpened(1e-300, 10.0, 1)[0] == pytest.approx(1e-300 * math.exp(0.1))


@pytest.mark.parametrize(
    ("reward", "kind"),
    [
        ("majority", MajorityVote),
        ("other_wordings", MajorityVote),
        ("frequency", Frequency),
        ("self_verification", SelfVerdict),
        *((kind, Certainty) for kind in ("self_certainty", "token_entropy", "trajectory_entropy", "disparity")),
    ],
)
def test_each_reward_and_its_rollout(reward, kind):
    method = urlvr(reward, kl_weight=0.25)
    assert type(method.reward) is kind and method.objective.kl_weight == 0.25
    assert method.rollout == ("paraphrased" if reward == "other_wordings" else "single_turn")
    if kind is Certainty:
        assert method.reward.kind == reward
    if kind is MajorityVote:
        assert method.reward.voters == ("others" if reward == "other_wordings" else "own")
    assert type(urlvr().reward) is MajorityVote and urlvr().objective.kl_weight == 0
    assert Certainty().kind == "self_certainty"


def test_collapse_step():
    assert collapse_step([0.9, 0.5, 0.009, 0.5]) == 2
    assert collapse_step([0.9, 0.01]) is None and collapse_step([]) is None
    assert collapse_step([0.9, 0.014]) is None and collapse_step([0.9, 0.4, 0.2], below=0.3) == 2


def test_the_majority_and_what_the_log_says_of_it(make_batch):
    """Answers 4, 4, 5 and none of one prompt, of which 5 is right; 7 of another, which is right."""
    tasks = [Task("t", "?", "5")] * 4 + [Task("u", "?", "7")]
    passed = [False, False, True, False, True]
    batch = make_batch([1] * 5, [0.0] * 5, passed=passed, tasks=tasks, texts=["4", "4", "5", "", "7"])
    batch.prompt_group[:] = torch.tensor([0, 0, 0, 0, 1])
    found = urlvr(rules=("boxed",)).reward(batch)
    assert found.values.tolist() == [1, 1, 0, 0, 1]
    assert found.terms["majority_ratio"].tolist() == pytest.approx([2 / 3] * 4 + [1])
    assert found.terms["label_right"].tolist() == [0] * 4 + [1]
    assert found.terms["reward_right"].tolist() == [0, 0, 0, 1, 1]
    share = urlvr("frequency", rules=("boxed",)).reward(batch)
    assert share.values.tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 0, 1])


ANSWERS = ["3", "3.0", "6/2", "3.", " $3$", "\\text{3}", "three", "THREE", "Three", "1,000", "1e3", "-0", "0"]


def test_two_answers_are_one_as_the_verifier_of_texts_and_numbers_says(make_batch):
    for one, other in itertools.combinations(ANSWERS, 2):
        batch = make_batch([1, 1], texts=[rf"\boxed{{{one}}}", rf"\boxed{{{other}}}"])
        for equal, alike in (("same", same(one, other)), ("exact", one.strip() == other.strip())):
            ballot = Ballot(equal=equal)
            answers = ballot.answers(batch)
            assert ballot.agree(batch, 0, 1, answers) is alike, (one, other)
            assert ballot.of(batch, [0, 1], answers).clusters == (0, int(not alike))


def test_certainties_against_the_policy_itself(make_batch):
    policy = TabularPolicy(Tree.uniform(3, 2))
    with torch.no_grad():
        policy.logits.copy_(torch.from_numpy(np.random.default_rng(0).standard_normal(tuple(policy.logits.shape))))
    batch = make_batch([2, 2, 0])
    batch.tokens[:] = torch.tensor([[0, 2], [1, 1], [0, 0]])
    for episode, row in zip(batch.episodes, batch.tokens, strict=True):
        episode.tokens[:] = row[: len(episode.tokens)].numpy()
    kinds = ("self_certainty", "token_entropy", "trajectory_entropy", "probability")
    parts = {kind: Certainty(kind) for kind in kinds}
    compute_signals(batch, frozenset().union(*(p.needs for p in parts.values())), Models(policy))
    for i, path in enumerate(([0, 2], [1, 1])):
        nodes = [0, int(policy.tree.children[0, path[0]])]
        logp = [torch.log_softmax(policy.logits[n].detach(), -1) for n in nodes]
        own = [float(row[t]) for row, t in zip(logp, path, strict=True)]
        wanted = {
            "self_certainty": np.mean([float(-row.mean()) for row in logp]),
            "token_entropy": np.mean([float((row.exp() * row).sum()) for row in logp]),
            "trajectory_entropy": np.mean(own),
            "probability": math.exp(sum(own)),
        }
        found = {kind: part(batch).values[i].item() for kind, part in parts.items()}
        assert found == pytest.approx(wanted, abs=1e-5)
    assert all(part(batch).valid.tolist() == [True, True, False] for part in parts.values())


def test_the_probability_prefers_short_responses_and_the_mean_does_not(make_batch):
    batch = make_batch([1, 3])
    batch.signals = {"policy_logprobs": torch.full((2, 3), -0.2, dtype=torch.float64)}
    short, long = Certainty("probability")(batch).values.tolist()
    assert (short, long) == pytest.approx((math.exp(-0.2), math.exp(-0.6)))
    assert Certainty("trajectory_entropy")(batch).values.tolist() == pytest.approx([-0.2, -0.2])


def test_the_disparity_is_of_the_answers_tokens_alone():
    policy = nano()
    texts = ["1+1<answer>42</answer>", "9", "<answer></answer>"]
    part = make_method("grpo", reward={"name": "S023", "reward": "disparity", "rules": ["answer_tag", "boxed"]}).reward
    batch = responses(policy, texts)
    compute_signals(batch, part.needs, Models(policy))
    found = part(batch)
    vocabulary = [np.array([k]) for k in range(len(policy.tokenizer))]
    after = [len(policy.encode_response(said, end=False)) for said in ("1+1<answer>", "1+1<answer>4")]
    whole = responses(policy, texts[:1])
    gaps = []
    for place in after:
        chances = policy.continuations(whole, [[place] * len(vocabulary)], [vocabulary])[0, :, 0].exp()
        first, second, *_ = sorted(chances.tolist(), reverse=True)
        gaps.append(first - second)
    assert found.values.tolist() == pytest.approx([np.mean(gaps), 0, 0], abs=1e-5)
    assert found.valid.all() and list(found.terms) == ["disparity"]


def test_frequencies(make_batch):
    tasks = [Task("t", "?", "4")] * 5
    batch = make_batch(
        [1] * 5, [0.0] * 5, passed=[True, True, False, False, None], tasks=tasks, texts=["4", "4.0", "5", "", "4"]
    )
    batch.prompt_group[:] = 0
    found = Frequency()(batch)
    assert found.values.tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 0, 0])
    assert found.valid.tolist() == [True] * 4 + [False]


@pytest.mark.parametrize(
    "reward", ["majority", "frequency", "other_wordings", "self_certainty", "probability", "disparity"]
)
def test_every_reward_by_name(reward):
    method = make_method("grpo", reward={"name": "S023", "reward": reward}).reward
    assert type(method).__name__ in {"MajorityVote", "Frequency", "Certainty"}
    with pytest.raises(UsageError, match="reward"):
        make_method("grpo", reward={"name": "S023", "reward": "luck"})


def test_a_wrong_majority_is_learned_until_it_collapses(tmp_path):
    """Of answers with chances 0.3, 0.5, 0.1 and 0.1 the first is right; the second is what the majority says."""
    right = [[[1.0, True, {}]], *([[[1.0, False, {}]]] * 3)]
    assert [math.exp(x) for x in FOOLED] == pytest.approx([0.3, 0.5, 0.1, 0.1])
    setting = choices.Setting(right, FOOLED, steps=10, prompts=2, group=32)
    found = setting.run({"name": "S023"}, 0, tmp_path)
    assert found["choice 1"] > 0.9 and found["right"] < 0.05
