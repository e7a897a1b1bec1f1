"""One optimiser step: its gradient does not depend on how the batch is cut, and a bad loss leaves the weights alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from assay.batch import Batch, Loss
from assay.errors import RunError
from assay.learning.optimizer import learning_rate, make_optimizer
from assay.learning.update import Averages, mini_batches, update
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.sft import SFT
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig
from assay.randomness import Randomness
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def policy() -> CausalLM:
    nano = NanoConfig(hidden=16, layers=2, heads=2, context=32)
    return CausalLM.load(ModelConfig(nano=nano, device="cpu"), seed=3)


@pytest.fixture
def batch(policy: CausalLM) -> Batch:
    """Five prompts, four responses each, of all lengths; some samples idle, some out of the update."""
    rng = np.random.default_rng(7)
    groups = []
    for i in range(5):
        prompt = policy.encode(f"{i}" * (i + 1))
        episodes = []
        for _ in range(4):
            length = int(rng.integers(1, 9))
            tokens = rng.integers(4, 40, size=length)
            logprobs = rng.normal(-4.5, 0.3, size=length).astype(np.float32)
            episodes.append(Episode(prompt, tokens, np.ones(length, dtype=bool), logprobs, "", "eos"))
        groups.append(Group(Ask(Task(str(i), "?"), 4), tuple(episodes), (Verdict.right(),) * 4))
    batch = Batch.from_groups(groups)
    batch.advantages = torch.from_numpy(rng.normal(size=(20, 1))).float() * batch.mask
    batch.advantages[[0, 5, 6, 7, 19]] = 0
    batch.valid[3] = False
    batch.weights[11] = 0
    batch.totals = batch.count()
    return batch


def sgd(policy: CausalLM) -> torch.optim.Optimizer:
    """An optimiser whose step is the gradient itself."""
    return torch.optim.SGD(policy.module.parameters(), lr=1.0)


def gradient(policy: CausalLM, objective: Any, batch: Batch, **settings: Any) -> tuple[dict[str, torch.Tensor], Any]:
    """The gradient an update applied, by parameter, and its metrics; the weights are put back."""
    before = {k: v.detach().clone() for k, v in policy.module.named_parameters()}
    metrics = update(policy, objective, batch, sgd(policy), max_grad_norm=math.inf, **settings)
    change = {k: before[k] - v.detach() for k, v in policy.module.named_parameters()}
    with torch.no_grad():
        for name, parameter in policy.module.named_parameters():
            parameter.copy_(before[name])
    return change, metrics


def assert_close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=1e-6)
    assert max(float(v.abs().max()) for v in a.values()) > 1e-3, "nothing was compared"


OBJECTIVES = [SFT(), *(ClippedSurrogate(aggregation=a) for a in ("token_mean", "sequence_mean"))]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_the_gradient_is_that_of_the_whole_batch(policy: CausalLM, batch: Batch, objective: Any) -> None:
    used = batch.rows(batch.active.nonzero()[:, 0])
    loss = objective(policy.forward(used).logprobs, used).value
    loss.backward()
    expected = {k: p.grad.clone() for k, p in policy.module.named_parameters() if p.grad is not None}
    for budget in (1, 25, 10_000):
        got, (metrics, tokens) = gradient(policy, objective, batch, token_budget=budget)
        assert_close({k: got[k] for k in expected}, expected)
        assert metrics["loss"] == pytest.approx(loss.item(), abs=1e-6)
        # Means over tokens, whatever the micro-batches.
        for name, value in objective(policy.forward(used).logprobs, used).metrics.items():
            assert metrics[name] == pytest.approx(value, rel=1e-5)
        assert tokens == int(batch.mask[batch.active].sum())
        norm = math.sqrt(sum(float(v.double().square().sum()) for v in expected.values()))
        assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES[1:], ids=str)
def test_leaving_out_idle_samples_changes_nothing(policy: CausalLM, batch: Batch, objective: Any) -> None:
    whole, (metrics, tokens) = gradient(policy, objective, batch)
    saved, (others, fewer) = gradient(policy, objective, batch, skip_idle=True)
    assert_close(whole, saved)
    assert others["loss"] == pytest.approx(metrics["loss"], abs=1e-6)
    assert fewer == tokens - int(batch.mask[[0, 5, 6, 7, 19]].sum())


def test_momentum_goes_on_where_every_sample_is_idle(policy: CausalLM, batch: Batch) -> None:
    still = batch.rows(torch.arange(20))
    still.advantages = torch.zeros_like(batch.advantages)
    ends = []
    for skip_idle in (False, True):
        other = CausalLM.load(ModelConfig(nano=NanoConfig(hidden=16, layers=2, heads=2, context=32)), seed=3)
        optimizer = make_optimizer(other.module.parameters(), 1e-3, (0.9, 0.999), 0.1)
        update(other, ClippedSurrogate(), batch, optimizer, skip_idle=skip_idle)
        after_first = [p.detach().clone() for p in other.module.parameters()]
        metrics, tokens = update(other, ClippedSurrogate(), still, optimizer, skip_idle=skip_idle)
        assert metrics["loss"] == 0
        assert metrics["grad_norm"] == 0
        assert (tokens == 0) == skip_idle
        ends.append([p.detach().clone() for p in other.module.parameters()])
        assert any(not torch.equal(a, b) for a, b in zip(after_first, ends[-1], strict=True))
    for a, b in zip(*ends, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_a_batch_without_reward_leaves_weights_and_momentum(policy: CausalLM, batch: Batch) -> None:
    batch.valid[:] = False
    batch.totals = batch.count()
    optimizer = make_optimizer(policy.module.parameters(), 1e-3, (0.9, 0.999), 0.1)
    before = [p.detach().clone() for p in policy.module.parameters()]
    metrics, tokens = update(policy, ClippedSurrogate(), batch, optimizer)
    assert (metrics, tokens) == ({"loss": 0.0, "grad_norm": 0.0}, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, policy.module.parameters(), strict=True))
    assert not optimizer.state


@pytest.mark.parametrize("how", ["loss", "gradient"])
def test_a_loss_that_is_not_finite_leaves_the_weights(policy: CausalLM, batch: Batch, how: str) -> None:
    def objective(logprobs: torch.Tensor, batch: Batch) -> Loss:
        if how == "loss":
            return Loss(logprobs.sum() * math.nan)
        # The value is finite, the derivative of the root at zero is not.
        return Loss((logprobs.sum() * 0).sqrt())

    optimizer = make_optimizer(policy.module.parameters(), 1e-3, (0.9, 0.999), 0.0)
    before = [p.detach().clone() for p in policy.module.parameters()]
    with pytest.raises(
        RunError, match=r"loss .* with gradient norm nan from objective \w+: the update was not applied"
    ):
        update(policy, objective, batch, optimizer)
    assert all(torch.equal(a, b) for a, b in zip(before, policy.module.parameters(), strict=True))
    assert not optimizer.state


def test_gradients_are_scaled_down_to_the_largest_norm(policy: CausalLM, batch: Batch) -> None:
    before = [p.detach().clone() for p in policy.module.parameters()]
    metrics, _ = update(policy, SFT(), batch, sgd(policy), max_grad_norm=0.25)
    change = [a - b.detach() for a, b in zip(before, policy.module.parameters(), strict=True)]
    norm = math.sqrt(sum(float(c.double().square().sum()) for c in change))
    assert metrics["grad_norm"] > 0.25
    assert norm == pytest.approx(0.25, rel=1e-3)


def test_mini_batches_partition_the_batch_by_prompt(batch: Batch) -> None:
    batch.tokens[:, 0] = torch.arange(20)
    parts = mini_batches(batch, 3, torch.tensor([4, 0, 2, 1, 3]))
    assert [sorted(set(p.prompt_group.tolist())) for p in parts] == [[0, 4], [1, 2], [3]]
    assert sorted(int(r) for p in parts for r in p.tokens[:, 0]) == list(range(20))
    # By hand: samples 3 (group 0) and 11 (group 2) do not count.
    assert [p.totals.sequences for p in parts if p.totals] == [7, 7, 4]
    assert [p.totals.groups for p in parts if p.totals] == [2, 2, 1]
    assert [p.totals.tokens for p in parts if p.totals] == [float(p.mask[p.active].sum()) for p in parts]


def test_more_mini_batches_than_prompts_are_as_many_as_prompts(batch: Batch) -> None:
    assert [len(p) for p in mini_batches(batch, 9, torch.arange(5))] == [4] * 5


def test_averages_weigh_by_tokens_and_by_presence() -> None:
    averages = Averages()
    averages.add({"a": 1.0, "b": 10.0}, 3)
    averages.add({"a": 5.0}, 1)
    averages.add({"a": 100.0, "c": 7.0}, 0)
    assert averages.means() == {"a": 2.0, "b": 10.0}


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]),
        # cos(pi k / 4): 1, sqrt(1/2), 0, -sqrt(1/2), -1.
        ("cosine", [0.25, 0.5, 0.75, 1.0, 1.0, 0.853553, 0.5, 0.146447, 0.0]),
    ],
)
def test_the_learning_rate_rises_then_falls(schedule: Any, expected: list[float]) -> None:
    assert [learning_rate(1.0, s, 8, 4, schedule) for s in range(9)] == pytest.approx(expected, abs=1e-6)
    assert learning_rate(3.0, 2, 8, 4, schedule) == 2.25


def test_a_run_shorter_than_its_ramp_still_rises() -> None:
    assert [learning_rate(1.0, s, 2, 4, "cosine") for s in range(2)] == [0.25, 0.5]


def test_only_matrices_decay(policy: CausalLM) -> None:
    optimizer = make_optimizer(policy.module.parameters(), 0.5, (0.9, 0.999), 0.1)
    before = {k: v.detach().clone() for k, v in policy.module.named_parameters()}
    for parameter in policy.module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    # AdamW with a zero gradient: w <- w (1 - lr * decay) for matrices, w for vectors.
    for name, parameter in policy.module.named_parameters():
        factor = 0.95 if parameter.ndim > 1 else 1.0
        torch.testing.assert_close(parameter.detach(), before[name] * factor)


def test_random_generators_do_not_disturb_each_other_and_come_back() -> None:
    random = Randomness(5)
    alone = Randomness(5)("a").random(3).tolist()
    random("b").random(100)
    assert random("a").random(3).tolist() == alone
    assert Randomness(6)("a").random(3).tolist() != alone
    state = random.state_dict()
    first = (random("a").random(2).tolist(), random("new").random(2).tolist(), torch.rand(2).tolist())
    random.load_state_dict(state)
    # "new" was first used after the state was taken, so it begins again.
    assert (random("a").random(2).tolist(), random("new").random(2).tolist(), torch.rand(2).tolist()) == first
    assert random.fresh("a").random(3).tolist() == alone
