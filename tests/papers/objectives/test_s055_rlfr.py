"""RLFR: the flow-matching error and its rewards by hand, what the field learns, and which states it reads."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.objectives.s055_rlfr import FlowReward, OutcomeAndFlow, kept_scores
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.signals.base import Models
from assay.signals.flow import Velocity, deviation
from assay.signals.flow_score import FlowScore
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_error_of_a_state():
    seen = {}

    def velocity(x, t, condition, layer):
        seen.update(x=x, t=t, condition=condition, layer=layer)
        return torch.tensor([[0.5, -0.5]])

    h, n = torch.tensor([[1.0, -1.0]]), torch.tensor([[0.2, 0.4]])
    found = deviation(velocity, h, h * 3, 0.5, torch.tensor([0.8]), n)
    assert seen["x"][0].tolist() == pytest.approx([0.84, -0.72]) and found.item() == pytest.approx(0.45)
    assert 0.8 / 0.2 * found.item() == pytest.approx(1.8)
    assert deviation(lambda x, t, c, layer: h - n, h, h, 0.5, torch.tensor([0.8]), n).item() == 0


S = [4.0, 1.0, 3.0, 2.0, 3.5]


def test_the_scores_that_are_kept():
    s, valid = torch.tensor([S], dtype=torch.float64), torch.ones(1, 5, dtype=torch.bool)
    assert kept_scores(s, valid, 0.0, None)[0].tolist() == pytest.approx([1, 0, 2 / 3, 1 / 3, 2.5 / 3])
    assert kept_scores(s, valid, 0.6, 15)[0].tolist() == pytest.approx([1, 0, 2 / 3, 0, 2.5 / 3])
    assert kept_scores(s, valid, 0.6, 2)[0].tolist() == pytest.approx([1, 0, 0, 0, 2.5 / 3])
    assert not kept_scores(torch.full((1, 5), 7.0), valid, 0.0, None).any()
    assert not kept_scores(s, ~valid, 0.0, None).any()
    hole = valid.clone()
    hole[0, 0] = False
    assert kept_scores(s, hole, 0.6, None)[0].tolist() == pytest.approx([0, 0, 0.8, 0, 1])


def scored(make_batch, scores=None, rewards=(1.0, 0.0)) -> Batch:
    batch = make_batch([5] * len(rewards), list(rewards), None, [r >= 1 for r in rewards])
    batch.signals["flow_score"] = torch.tensor([scores or S] * len(rewards), dtype=torch.float64)
    return batch


def test_the_worked_advantages(make_batch):
    """With an outcome of 0.866 the returns to go of -0.01 times the kept scores."""
    batch = scored(make_batch, rewards=(1.0, 1.0, 0.0, 0.0))
    reward = FlowReward()(batch)
    batch.rewards, batch.token_rewards = reward.values, reward.tokens
    got = OutcomeAndFlow()(batch)
    assert got[0].tolist() == pytest.approx([0.841, 0.851, 0.851, 0.857667, 0.857667], abs=1e-4)
    assert (got[0] - got[2]).tolist() == pytest.approx([2 * 0.866025] * 5, abs=1e-5)
    assert reward.terms["flow"].tolist() == pytest.approx([-0.025] * 4) and reward.values.tolist() == [1, 1, 0, 0]


def test_only_the_outcome_is_standardised(make_batch):
    """GRPO's own credit would take the punishment into the deviation; here equal outcomes leave it as it is."""
    batch = scored(make_batch, rewards=(1.0, 1.0))
    batch.token_rewards = FlowReward()(batch).tokens
    assert OutcomeAndFlow()(batch)[0, 0].item() == pytest.approx(-0.025)


def test_without_a_coefficient_it_is_grpo(make_batch):
    batch = scored(make_batch)
    batch.token_rewards = FlowReward(coef=0.0)(batch).tokens
    assert torch.allclose(OutcomeAndFlow()(batch), GRPO()(batch))
    batch.token_rewards = None
    assert torch.equal(OutcomeAndFlow()(batch), GRPO()(batch))


def test_unscored_tokens_are_neither_punished_nor_compared(make_batch):
    batch = scored(make_batch, [*S[:4], float("nan")])
    assert FlowReward()(batch).tokens[0].tolist() == pytest.approx([-0.01, 0, -0.02 / 3, 0, 0])
    batch.mask[0, 0] = False
    assert FlowReward()(batch).tokens[0].tolist() == pytest.approx([0, 0, -0.01, 0, 0])
    batch = scored(make_batch, [float("nan")] * 5)
    assert not FlowReward()(batch).tokens.any()


def test_the_field_starts_at_zero_and_reads_all_that_it_is_given():
    torch.manual_seed(0)
    field = Velocity(6, 16, 2)
    x, c, t = torch.randn(5, 6), torch.randn(5, 6), torch.rand(5)
    assert not field(x, t, c, 0.5).any()
    for parameter in field.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    base = field(x, t, c, 0.5)
    for other in (field(x + 1, t, c, 0.5), field(x, t / 2, c, 0.5), field(x, t, c + 1, 0.5), field(x, t, c, 0.25)):
        assert (other - base).abs().max() > 1e-4


def test_the_field_tells_typical_states_from_others():
    """h = tanh(c A) + noise: typical states score far below those of another context or shifted ones."""
    torch.manual_seed(0)
    mix = torch.randn(8, 8)
    field = Velocity(8, 64, 2)
    optimizer = torch.optim.Adam(field.parameters(), lr=4e-3)

    def states(n: int):
        c = torch.randn(n, 8)
        return (c @ mix).tanh() + 0.1 * torch.randn(n, 8), c

    for _ in range(300):
        h, c = states(64)
        loss = deviation(field, h, c, 0.5, torch.sigmoid(torch.randn(64)), torch.randn_like(h)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        h, c = states(512)
        t, n = torch.full((512,), 0.8), torch.randn_like(h)
        typical, shuffled, shifted = (
            4 * deviation(field, x, c, 0.5, t, n).mean().item() for x in (h, h.roll(1, 0), h + 2)
        )
    assert typical < shuffled / 5 and typical < shifted / 5


@pytest.fixture(scope="module")
def nano() -> CausalLM:
    torch.manual_seed(0)
    return CausalLM.load(ModelConfig(source="nano", nano={"hidden": 32, "layers": 4, "heads": 2, "context": 64}), 0)


def responses(policy: CausalLM, texts: list[str], rewards: list[float]) -> Batch:
    episodes = []
    for text in texts:
        tokens = policy.encode_response(text)
        ones = np.ones(len(tokens), dtype=bool)
        episodes.append(Episode(policy.encode("1+2="), tokens, ones, ones.astype(np.float32), text, "eos"))
    verdicts = tuple(Verdict(r, r >= 1) for r in rewards)
    batch = Batch.from_groups([Group(Ask(Task("t", "1+2="), len(texts)), tuple(episodes), verdicts)])
    batch.rewards = torch.tensor(rewards)
    return batch


def started(policy: CausalLM, **options) -> tuple[FlowScore, Models]:
    torch.manual_seed(0)
    flow, models = FlowScore(**options), Models(policy, encode=policy.encode, rng=np.random.default_rng(0))
    flow.start(models)
    return flow, models


@pytest.mark.parametrize("condition", ["previous", "next"])
def test_a_score_is_of_the_state_after_the_token(nano, condition):
    """From transformers' hidden states of the whole sequence, with the field replaced by a known function."""
    flow, models = started(nano, depths=(0.5,), condition=condition)
    flow.velocity = Known()
    batch = responses(nano, ["12345", "67"], [1.0, 0.0])
    found = flow(batch, models)
    short = 1 if condition == "previous" else 2
    for row, episode in enumerate(batch.episodes):
        start, length = len(episode.prompt), len(episode.tokens)
        hidden = nano.forward(batch, {"hidden@0.5"}).live["hidden@0.5"][row].detach()
        assert bool(found[row, length - short :].isnan().all())
        for k in range(length - short):
            # hidden[k] predicts token k: it is the state at position start + k - 1 of the sequence.
            target, other = hidden[k + 1], hidden[k] if condition == "previous" else hidden[k + 2]
            assert float(found[row, k]) == pytest.approx(4 * float((target - other).square().mean()), rel=1e-4)
        assert start > 0


class Known(torch.nn.Module):
    """Its error is the mean square of state less condition, whatever the noise: v = condition - n."""

    def __init__(self):
        super().__init__()
        self.nothing = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x, t, condition, layer):
        # x = t h + (1 - t) n; the noise is passed on by the patched generator below.
        return condition - Known.noise


@pytest.fixture(autouse=True)
def known_noise(monkeypatch):
    from assay.signals import flow_score

    real = flow_score.drawn

    def drawn(like, noise):
        Known.noise = real(like, noise)
        return Known.noise

    monkeypatch.setattr(flow_score, "drawn", drawn)


def test_it_learns_from_right_responses_alone_and_leaves_the_policy(nano):
    flow, models = started(nano, lr=6e-3, blocks=2)
    before = [p.clone() for p in nano.module.parameters()]
    batch = responses(nano, ["12345", "98765"], [1.0, 0.0])
    losses = []
    for _ in range(30):
        batch.signals[flow.name] = flow(batch, models)
        losses.append(flow.learn(batch, models)["flow/loss"])
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])
    found = flow(batch, models)
    assert float(found[0].nanmean()) < 0.7 * float(found[1].nanmean()), "the wrong one is what it did not learn"
    assert all(torch.equal(a, b) for a, b in zip(before, nano.module.parameters(), strict=True))
    assert all(p.grad is None for p in nano.module.parameters())
    state = [p.clone() for p in flow.velocity.parameters()]
    wrong = responses(nano, ["12345"], [0.9])
    wrong.signals[flow.name] = flow(wrong, models)
    assert "flow/loss" not in flow.learn(wrong, models)
    assert all(torch.equal(a, b) for a, b in zip(state, flow.velocity.parameters(), strict=True))


def test_scores_do_not_depend_on_micro_batches_beyond_noise(nano):
    """With a known field the score is without noise: the same whatever the pass."""
    flow, models = started(nano)
    flow.velocity = Known()
    batch = responses(nano, ["123", "45678", "9", "10"], [1.0, 0.0, 1.0, 0.0])
    whole, split = flow(batch, models), flow(batch, replace(models, token_budget=1))
    assert torch.allclose(whole.nan_to_num(-1), split.nan_to_num(-1), atol=1e-4)


def test_it_waits_and_goes_on_from_a_checkpoint(nano):
    flow, models = started(nano, wait=1)
    batch = responses(nano, ["123"], [1.0])
    batch.signals[flow.name] = flow(batch, models)
    assert bool(batch.signals[flow.name].isnan().all())
    assert "flow/score" not in flow.learn(batch, models)
    assert bool((~flow(batch, models).isnan()).any())
    other, _ = started(nano, wait=1)
    other.load_state_dict(flow.state_dict())
    models.rng = np.random.default_rng(4)
    mine = flow(batch, models)
    models.rng = np.random.default_rng(4)
    assert torch.equal(other(batch, models).nan_to_num(-1), mine.nan_to_num(-1))


def test_experts_are_learned_first(nano, tmp_path):
    file = tmp_path / "experts.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": "1+2=", "response": "12345"}) for _ in range(40)) + "\n")
    fresh, models = started(nano, lr=3e-3)
    taught, _ = started(nano, lr=6e-3, experts=str(file), epochs=12)
    batch = responses(nano, ["12345"], [1.0])
    assert float(taught(batch, models).nanmean()) < 0.7 * float(fresh(batch, models).nanmean())
    with pytest.raises(UsageError, match="no experts"):
        started(nano, experts=str(tmp_path / "none"))
    file.write_text('{"prompt": 1}\n')
    with pytest.raises(UsageError, match="line 1"):
        started(nano, experts=str(file))


def test_options():
    method = make_method("S055", reward={"coef": 0.1, "flow": {"name": "flow_score", "wait": 3}})
    assert method.reward.coef == 0.1 and method.reward.flow.wait == 3 and method.learners == [method.reward.flow]
    assert method.credit.level == "token"
    assert [type(x) for x in make("S055", times=(0.5, 0.8)).learners] == [FlowScore]
    for bad in ({"coef": -1.0}, {"threshold": 2.0}, {"top": 0}):
        with pytest.raises(UsageError, match="S055"):
            make_method("S055", reward=bad)
    for options in ({"times": (1.0,)}, {"depths": ()}, {"blocks": 0}):
        with pytest.raises(UsageError, match="flow_score"):
            FlowScore(**options)
