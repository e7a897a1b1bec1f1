"""InTRO: the worked example, its expected gradient by enumeration, its limits, and where the answer is written."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from assay import catalogue
from assay.batch import Batch
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import make_method
from assay.papers.objectives.s163_intro import AnswerView, AnswerWeights
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.templates import through_template
from assay.signals.base import Models
from assay.types import Ask, Group, Message, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

Q, P = [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]


def two_views(plain=P, answered=Q) -> TabularPolicy:
    """A question ``0`` and the same with its answer, ``1``: a choice among as many arms, each with its own chances."""
    tree = Tree.of([[0] * len(plain), [0] * len(answered)])
    logits = torch.zeros(tree.children.shape, dtype=torch.float64)
    logits[1, : len(plain)] = torch.tensor(plain, dtype=torch.float64).log()
    logits[2, : len(answered)] = torch.tensor(answered, dtype=torch.float64).log()
    return TabularPolicy(tree, logits)


def asked(policy: TabularPolicy, arms: list[int], passed: list[bool | None] | None = None, reference="1") -> Batch:
    prompt = np.array([0])
    tokens = torch.tensor(arms)[:, None]
    episodes = policy.episodes(tokens, torch.ones(len(arms), dtype=torch.int64), prompts=[prompt] * len(arms))
    verdicts = [Verdict(float(p is True), p) for p in (passed or [True] * len(arms))]
    task = Task("t", "0", reference=reference)
    return Batch.from_groups([Group(Ask(task, len(arms)), tuple(episodes), tuple(verdicts))], torch.float64)


def models(policy: TabularPolicy, seed: int = 0) -> Models:
    def encode(prompt):
        return np.array([int(prompt)])

    return Models(policy, policy.twin(), rng=np.random.default_rng(seed), encode=encode)


def slope(policy: TabularPolicy, batch: Batch, objective: AnswerView) -> torch.Tensor:
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    (found,) = torch.autograd.grad(objective(output.logprobs, batch).value, policy.logits)
    return found


def test_the_worked_example(make_batch):
    batch = make_batch([1], passed=[True])
    prior = torch.tensor([[[0.2, 0.1, 0.4]]], dtype=torch.float64).log().requires_grad_()
    posterior = torch.tensor([[[0.4, 0.1, 0.1]]], dtype=torch.float64).log()
    batch.signals["answer_weights"] = (posterior - prior.detach()).exp()
    batch.live = {"candidate_logprobs": prior}
    loss = AnswerView(n=3)(torch.zeros(1, 1, dtype=torch.float64), batch)
    assert loss.value.item() == pytest.approx(1.916845, abs=1e-6)
    (found,) = torch.autograd.grad(loss.value, prior)
    assert found[0, 0].tolist() == pytest.approx([-2 / 3, -1 / 3, -1 / 12])


def test_the_expected_gradient_is_that_of_the_divergence():
    """Over every draw of own token and one candidate: on the logits p - q, that of KL(q || p)."""
    policy = two_views()
    total = torch.zeros_like(policy.logits)
    for own, other in product(range(3), repeat=2):
        batch = asked(policy, [own])
        candidates = torch.tensor([[[own, other]]])
        batch.signals["candidates"] = candidates
        batch.signals["answer_weights"] = torch.tensor([[[Q[c] / P[c] for c in (own, other)]]], dtype=torch.float64)
        total += P[own] * P[other] * slope(policy, batch, AnswerView(n=2))
    assert total[1].tolist() == pytest.approx([0.3, 0.0, -0.3])
    assert not total[[0, 2]].any(), "the answered view is not changed"


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_signal_weighs_its_candidates(n):
    """Own token first, weights q / p of whatever was drawn, candidates drawn like the policy."""
    policy = two_views()
    batch = asked(policy, [i % 3 for i in range(300)])
    weights = AnswerWeights(n=n, template="{answer}")(batch, models(policy))
    candidates = batch.signals["candidates"]
    assert torch.equal(candidates[..., 0], batch.tokens) and weights.shape == (300, 1, n)
    want = torch.tensor(Q)[candidates] / torch.tensor(P)[candidates]
    assert torch.allclose(weights, want.double(), atol=1e-6)
    if n > 1:
        shares = torch.bincount(candidates[..., 1:].flatten(), minlength=3) / candidates[..., 1:].numel()
        assert shares.tolist() == pytest.approx(P, abs=0.08)


def test_weights_are_clipped_and_an_impossible_posterior_weighs_nothing():
    policy = two_views([1e-6, 0.5, 0.5], [0.9, 0.1, 0.0])
    batch = asked(policy, [0, 1, 2])
    weights = AnswerWeights(n=1, clip=200, template="{answer}")(batch, models(policy))
    assert weights.flatten().tolist() == pytest.approx([200, 0.2, 0.0], abs=1e-5)
    batch.signals["answer_weights"] = weights
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    assert AnswerView(n=1)(output.logprobs, batch).metrics["intro/clipped"] == pytest.approx(1 / 3)


def test_where_the_answer_says_nothing_the_expected_gradient_is_zero():
    policy = two_views(P, P)
    total = torch.zeros_like(policy.logits)
    for own in range(3):
        batch = asked(policy, [own])
        batch.signals["answer_weights"] = AnswerWeights(n=1, template="{answer}")(batch, models(policy))
        total += P[own] * slope(policy, batch, AnswerView(n=1))
        assert batch.signals["answer_weights"].item() == pytest.approx(1)
    assert total.abs().max() < 1e-7


def test_only_right_responses_with_a_reference_teach():
    policy = two_views()
    method = make_method("S163", objective={"template": "{answer}"})
    batch = asked(policy, [0, 1, 2, 0], [True, False, None, True])
    (signal,) = method.objective.needs
    batch.signals[signal.name] = signal(batch, models(policy))
    method.value(batch)
    assert batch.weights.tolist() == [1, 0, 0, 1] and batch.totals is not None and batch.totals.sequences == 2
    assert not batch.signals["answer_weights"][1:3].any() and batch.signals["answer_weights"][[0, 3]].all()
    for without in (asked(policy, [0], [False]), asked(policy, [0], reference=None)):
        without.signals[signal.name] = signal(without, models(policy))
        method.value(without)
        assert not slope(policy, without, method.objective).any()


def test_a_prompt_that_leaves_no_room_is_left_out():
    policy = two_views()
    policy.context = 1
    batch = asked(policy, [0, 1])
    assert not AnswerWeights(n=2, template="{answer}")(batch, models(policy)).any()


def test_the_posterior_may_be_the_reference_policy():
    policy = two_views()
    view = models(policy)
    with torch.no_grad():
        policy.logits[2] = torch.tensor([0.0, 0, 0])
    batch = asked(policy, [0])
    for which, q in (("policy", 1 / 3), ("reference", Q[0])):
        weights = AnswerWeights(n=1, template="{answer}", posterior=which)(batch, view)
        assert weights.item() == pytest.approx(q / P[0], abs=1e-6)
        assert which in AnswerWeights(posterior=which).models


def test_candidates_are_weighed_at_every_position_of_the_rationale_and_nowhere_else():
    """Rationales of two decisions and of one; with the answer, the second decision is 3 to 1 instead of 1 to 1."""
    tree = Tree.of([[[0, 0], 0], [[0, 0], 0]])
    logits = torch.zeros(tree.children.shape, dtype=torch.float64)
    logits[tree.node([1, 0]), 0] = np.log(3.0)
    logits[tree.node([1])] = torch.tensor([0.0, np.log(4.0)])
    policy = TabularPolicy(tree, logits)
    tokens, lengths = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2, 1])
    episodes = policy.episodes(tokens, lengths, prompts=[np.array([0])] * 2)
    group = Group(Ask(Task("t", "0", reference="1"), 2), tuple(episodes), (Verdict.right(),) * 2)
    batch = Batch.from_groups([group], torch.float64)
    alone = AnswerWeights(n=1, template="{answer}")(batch, models(policy))
    assert torch.allclose(alone[..., 0], torch.tensor([[0.4, 0.5], [1.6, 0.0]]).double(), atol=1e-6)
    assert batch.signals["candidates"][..., 0].tolist() == [[0, 1], [1, 0]]
    weights = AnswerWeights(n=4, template="{answer}")(batch, models(policy))
    candidates = batch.signals["candidates"]
    first, second = torch.tensor([0.4, 1.6]).double(), torch.tensor([1.5, 0.5]).double()
    assert torch.allclose(weights[:, 0], first[candidates[:, 0]], atol=1e-6)
    assert torch.allclose(weights[0, 1], second[candidates[0, 1]], atol=1e-6)
    assert not weights[1, 1].any() and candidates[0, :, 0].tolist() == [0, 1]


def test_the_loss_is_a_mean_over_rationales_tokens_and_candidates(make_batch):
    """Rationales of 1 and 3 tokens, two candidates: what is logged is over the four tokens together."""
    batch = make_batch([1, 3], passed=[True, True])
    logprobs = torch.full((2, 3, 2), -2.0, dtype=torch.float64)
    weights = torch.tensor([[[1.0, 3.0], [0, 0], [0, 0]], [[200.0, 0.0], [0.0, 0.0], [1.0, 1.0]]], dtype=torch.float64)
    batch.signals["answer_weights"], batch.live = weights, {"candidate_logprobs": logprobs}
    found = AnswerView(n=2)(torch.zeros(2, 3, dtype=torch.float64), batch)
    # Mean weights of the tokens: 2; 100, 0 and 1.
    assert found.value.item() == pytest.approx(2.0 * (2 + 101 / 3) / 2)
    assert found.metrics == pytest.approx({"intro/weight": 103 / 4, "intro/shown": 3 / 4, "intro/clipped": 1 / 8})


def test_defaults_and_limits():
    """Five candidates and weights of at most 200; what exactly fits the context is used."""
    method = catalogue.make("S163")
    for part in (AnswerView(), AnswerWeights(), method.objective):
        assert (part.n, part.clip, part.posterior) == (5, 200, "policy")
    (signal,) = method.objective.needs
    assert (signal.n, signal.clip, signal.template) == (5, 200, method.objective.template)
    assert method.objective.summary["clip"] == "at most 200" and AnswerView(n=1, clip=0.5).n == 1
    policy = two_views()
    policy.context = 2
    assert AnswerWeights(n=2, template="{answer}")(asked(policy, [0, 1]), models(policy)).all()


def test_the_answer_is_written_into_the_prompt():
    assert through_template("2+2=", "{question} ({answer})", answer=4) == "2+2= (4)"
    assert through_template("{x}", "{question} ({answer})", answer=4) == "{x} (4)", "a question is no template"
    chat = (
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
        Message(role="user", content="c"),
    )
    shown = through_template(chat, "{question}!{answer}", answer=1)
    assert [m["content"] for m in shown] == ["a", "b", "c!1"]
    task = Task("t", "2+2=", reference=4)
    seen = []
    policy = two_views()
    batch = replace(asked(policy, [0]), tasks=[task])
    AnswerWeights(n=1)(batch, replace(models(policy), encode=lambda p: seen.append(p) or np.array([1])))
    assert seen[0].startswith("2+2=\n") and "answer is 4" in seen[0]


def test_options():
    for bad in ({"n": 0}, {"clip": 0.0}, {"template": "{question}"}, {"template": "{answer} {other}"}):
        with pytest.raises(UsageError, match="S163"):
            make_method("S163", objective=bad)
    method = make_method("S163")
    with pytest.raises(UsageError, match="do nothing"):
        make_method(method, credit="rloo")


@pytest.mark.slow
def test_it_finds_the_posterior():
    """From [0.8, 0.15, 0.05] by sampled steps to within 0.05 of q."""
    policy, objective = two_views([0.8, 0.15, 0.05], Q), AnswerView(n=5, template="{answer}")
    (signal,) = objective.needs
    view, rng = models(policy), np.random.default_rng(1)
    for step in range(60):
        p = policy.log_policy()[1].exp().detach().numpy()
        batch = asked(policy, rng.choice(3, 32, p=p / p.sum()).tolist())
        batch.signals[signal.name] = signal(batch, view)
        found = slope(policy, batch, objective)
        with torch.no_grad():
            policy.logits -= (1.0 if step < 40 else 0.3) * found
    assert policy.log_policy()[1].exp().tolist() == pytest.approx(Q, abs=0.05)


def test_the_lab_shows_the_posterior_of_the_start(tmp_path):
    """P(right | answer) = p / (p + doubt (1 - p)), from the trees' own leaves."""
    setting = load("answers", {"steps": 1, "tasks": 1, "doubt": 0.1})
    found = setting.run({"name": "S163", "objective": {"template": "{answer}"}}, 3, tmp_path)
    p = found["start"]
    assert found["shown"] == pytest.approx(p / (p + 0.1 * (1 - p))) and found["rollouts"] == 32
    said_nothing = load("answers", {"steps": 1, "tasks": 1, "doubt": 1.0}).run({"name": "grpo"}, 3, tmp_path)
    assert said_nothing["shown"] == pytest.approx(p)
    with pytest.raises(UsageError, match="doubt"):
        load("answers", {"doubt": 2.0})
