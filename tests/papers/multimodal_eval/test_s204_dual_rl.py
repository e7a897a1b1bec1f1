"""S204: losses and minimisers by hand, critics against their equations, what is cut and what is over, a run."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from turned import drawn, policy_of, record_of

from assay.batch import Batch
from assay.catalogue import make
from assay.errors import UsageError
from assay.learning.update import update
from assay.objectives.policy_gradient import PolicyGradient
from assay.ops.implicit_value import f_dvl, gain_weight, huber, value_loss, xql
from assay.select.off_policy.offline import DualRL
from assay.signals.base import Models
from assay.signals.transitions.columns import Columns
from assay.signals.transitions.dual import BoundedRecoilCritic, DualCritic, RecoilCritic
from assay.types import Turn

pytestmark = pytest.mark.usefixtures("one_thread")

D = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])
CHI = {
    0.3: [2.1, 0.7, 0, -0.325, -0.525],
    0.5: [1.5, 0.5, 0, 0.125, 1.125],
    0.7: [0.9, 0.3, 0, 0.575, 2.775],
    0.9: [0.3, 0.1, 0, 1.025, 4.425],
}
TV = {0.3: [2.1, 0.7, 0, -0.4, -1.2], 0.5: [1.5, 0.5, 0, 0, 0], 0.7: [0.9, 0.3, 0, 0.4, 1.2]}
SMALL: dict[str, Any] = {"hidden": (8,), "batch": 12, "lr": 1e-2}


def test_the_worked_losses() -> None:
    for weight, row in CHI.items():
        assert f_dvl(D, weight, "chi_square").tolist() == pytest.approx(row, abs=1e-6)
        assert torch.equal(value_loss(D, "chi_square", weight), f_dvl(D, weight, "chi_square"))
    for weight, row in TV.items():
        assert f_dvl(D, weight, "total_variation").tolist() == pytest.approx(row, abs=1e-6)
    # Below -4 it goes on as a line; d + d^2 / 4 alone would be above 0 there, 5 at -10.
    assert f_dvl(torch.tensor([-10.0]), 0.7, "chi_square").item() == pytest.approx(3.0)
    assert huber(torch.tensor([-30.0, 20.0, 2.0])).tolist() == [400.0, 200.0, 2.0]
    assert gain_weight(torch.tensor([0.5, 2.0, -1.0]), 3.0).tolist() == pytest.approx([4.481689, 100.0, 0.049787], 1e-5)


def minimiser(form: Any, weight: float, q: torch.Tensor, clip: float = 5.0) -> float:
    """The best value of a fine grid."""
    grid = torch.linspace(-1, 14, 15001, dtype=torch.float64)
    losses = torch.stack([value_loss(q.double() - v, form, weight, clip).mean() for v in grid[::30]])
    near = grid[::30][losses.argmin()]
    fine = grid[(grid - near).abs() <= 0.06]
    return float(fine[torch.stack([value_loss(q.double() - v, form, weight, clip).mean() for v in fine]).argmin()])


def test_the_worked_minimisers() -> None:
    q = torch.arange(4.0)
    for weight, v in ((0.6, 1.8333), (0.7, 2.0), (0.8, 3.0)):
        assert minimiser("chi_square", weight, q) == pytest.approx(v, abs=1.1e-3)
    for weight, v in ((0.6, 1.0), (0.7, 2.0), (0.9, 3.0)):
        assert minimiser("total_variation", weight, q) == pytest.approx(v, abs=1.1e-3)


def test_noise_carries_xql_away_and_f_dvl_not() -> None:
    q = torch.arange(4.0).double()
    noisy = q.repeat(500) + 5 * torch.from_numpy(np.random.default_rng(0).standard_normal(2000))
    for values, beta, v in ((q, 0.5, 2.3794), (q, 1.0, 2.0539), (q, 2.0, 1.8021), (noisy, 1.0, 11.5707)):
        assert float(beta * ((values / beta).logsumexp(0) - np.log(len(values)))) == pytest.approx(v, abs=1e-4)
        x = torch.tensor(v, dtype=torch.float64, requires_grad=True)
        # Scaled by a constant, which the batch's largest exponent is: the stationary point is where it was.
        xql(values - x, beta, clip=50.0).mean().backward()
        assert x.grad is not None and abs(x.grad.item()) < 1e-3
    assert 1.5 < minimiser("total_variation", 0.7, noisy) < 4.5
    z = torch.tensor([-2.0, 0.0, 3.0])
    plain = z.clamp(max=2).exp() - z.clamp(max=2) - 1
    assert (xql(z, 1.0, clip=2.0) * np.exp(2)).tolist() == pytest.approx(plain.tolist(), rel=1e-5)
    assert (xql(z[:1] * 3, 1.0) * np.exp(-1)).tolist() == pytest.approx([np.exp(-6) + 5], rel=1e-5), (
        "top is at least -1"
    )
    assert torch.isfinite(xql(torch.tensor([400.0, 1.0]), 1.0, 1e9)).all()


def test_critics_by_hand() -> None:
    torch.manual_seed(0)
    critic = DualCritic((2, 1), "total_variation", 0.8, discount=0.9, rate=0.25, hidden=(5,), lr=0.01)
    with torch.no_grad():
        for p in critic.slow.parameters():
            p.mul_(0.5)
    batch = drawn(6)
    slow, fast = critic.twins(batch.states, batch.actions, slow=True), critic.twins(batch.states, batch.actions)
    assert fast.shape == (2, 6) and not torch.equal(*fast)
    d = slow.min(0).values - critic.values(batch.states)
    assert critic.value_loss(batch).item() == pytest.approx(f_dvl(d, 0.8, "total_variation").mean().item())
    by_hand = 0.0
    after = critic.values(batch.after)
    for k in range(2):
        for i in range(6):
            target = batch.rewards[i] + (0.0 if batch.done[i] else 0.9 * after[i])
            by_hand += float(huber(fast[k, i] - target)) / 6
    assert critic.q_loss(batch).item() == pytest.approx(by_hand, rel=1e-5)
    before = copy.deepcopy(critic.slow.state_dict())
    weights, told = critic.update(batch)
    for name, value in critic.slow.state_dict().items():
        assert torch.allclose(value, 0.75 * before[name] + 0.25 * critic.q.state_dict()[name])
    assert weights.shape == (6,) and not weights.requires_grad
    assert told["critic/v_loss"] == pytest.approx(f_dvl(d, 0.8, "total_variation").mean().item(), rel=1e-5)
    # The weights are those of the slow twins before they moved, and of V after it did.
    expected = gain_weight(slow.min(0).values - critic.values(batch.states), 3.0)
    assert torch.allclose(weights, expected.detach())


def test_what_is_cut_goes_on() -> None:
    """The last of two episodes is over, that of the first cut: its next state counts."""
    record = record_of([3, 2], over=[False, True])
    columns = Columns(10, (2, 1))
    columns.add(record)
    rows = columns.draw(200, np.random.default_rng(0))
    done = {tuple(s.tolist()): bool(d) for s, d in zip(rows.states, rows.done, strict=True)}
    assert sum(done.values()) == 1 and done[tuple(record.states[4].tolist())]
    assert record.truncated.tolist() == [False, False, True, False, False]


def test_a_ring_keeps_the_latest_and_goes_on() -> None:
    columns = Columns(4, (2, 1))
    columns.add(record_of([3]))
    assert len(columns) == 3
    columns.add(record_of([3], first=3.0))
    assert len(columns) == 4 and sorted(columns.columns["rewards"].tolist()) == [2.0, 3.0, 4.0, 5.0]
    other = Columns(4, (2, 1))
    other.load_state_dict(columns.state_dict())
    both = [c.draw(5, np.random.default_rng(1)).rewards.tolist() for c in (columns, other)]
    assert both[0] == both[1] and len(both[0]) == 5
    columns.add(record_of([9]))
    assert sorted(columns.columns["rewards"].tolist()) == [5.0, 6.0, 7.0, 8.0]
    with pytest.raises(UsageError, match="not the policy's, of 3 and 1"):
        Columns(4, (3, 1)).add(record_of([3]))
    with pytest.raises(UsageError, match="at least 1"):
        Columns(0, (3, 1))


def test_a_million_transitions_are_small() -> None:
    columns = Columns(1_000_000, (17, 6))
    assert sum(c.nbytes for c in columns.columns.values()) == 1_000_000 * (4 * (2 * 17 + 6 + 1) + 2)


def test_recoil_by_hand() -> None:
    torch.manual_seed(1)
    critic = RecoilCritic((2, 1), discount=0.9, hidden=(5,), beta=0.4)
    batch, fresh = drawn(6), torch.linspace(-1, 1, 6)[:, None]
    expert = batch.expert
    assert expert.tolist() == [True, True, True, False, False, False]
    q, pi = critic.twins(batch.states, batch.actions), critic.twins(batch.states, fresh)
    gap = 0.9 * torch.where(batch.done, 0.0, critic.values(batch.after)) - q
    by_hand = sum(0.4 * (pi[k].mean() - q[k, expert].mean()) + 0.25 * (gap[k] ** 2).mean() for k in range(2))
    assert critic.q_loss(batch, fresh).item() == pytest.approx(float(by_hand), rel=1e-5)
    batch.rewards.fill_(1e6)
    assert critic.q_loss(batch, fresh).item() == pytest.approx(float(by_hand), rel=1e-5), "no reward is read"
    with pytest.raises(UsageError, match="beta"):
        DualRL(beta=0.0)


def test_bounded_recoil_by_hand() -> None:
    """The authors' loss: half of the squares to 200 and to -2 + gamma V, of what is over -2 - gamma 200."""
    torch.manual_seed(1)
    critic = BoundedRecoilCritic((2, 1), "xql", 5.0, discount=0.9, hidden=(5,), clip=7.0)
    batch = drawn(6)
    assert batch.done.tolist() == [False, False, True] * 2
    q, after = critic.twins(batch.states, batch.actions), critic.values(batch.after)
    by_hand = 0.0
    for k in range(2):
        for i in range(3):
            target = -2 + 0.9 * (after[3 + i] if i < 2 else -200)
            by_hand += float((q[k, i] - 200) ** 2 + (q[k, 3 + i] - target) ** 2) / 6
    loss = critic.q_loss(batch)
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)
    loss.backward()
    assert all(p.grad is None for p in critic.v.parameters()), "the next value is a constant"
    mix = batch[3:]
    gap = critic.twins(mix.states, mix.actions, slow=True).min(0).values - critic.values(mix.states)
    weights, told = critic.update(batch)
    assert told["critic/v_loss"] == pytest.approx(xql(gap, 5.0, 7.0).mean().item(), rel=1e-5)
    assert len(weights) == 3
    select = started(DualRL(DATA, imitate=True, top=200.0, form="xql", weight=5.0, **SMALL))
    [first] = list(select.replay(Batch.from_groups([]), np.random.default_rng(0)))
    assert first.tokens.shape == (1, 6), "the half that is of demonstrations alone is not imitated"
    assert isinstance(select.critic, BoundedRecoilCritic) and select.critic.top == 200.0
    assert DualRL(DATA, imitate=True, top=0.5, batch=2).top == 0.5
    for wrong in ({"top": 0.0, "imitate": True}, {"top": 200.0}, {"top": 200.0, "imitate": True, "batch": 1}):
        with pytest.raises(UsageError, match="top"):
            DualRL(DATA, **wrong)  # type: ignore[arg-type]


def started(select: DualRL, **control: Any) -> DualRL:
    torch.manual_seed(0)
    select.start(Models(policy_of(hidden=[8], **control)))
    return select


DATA = {"environment": "point_mass", "mix": {"random": 3, "expert": 1}}


def test_the_policy_s_loss_by_hand() -> None:
    select = started(DualRL(DATA, updates=2, temperature=2.0, **SMALL))
    [first, _] = list(select.replay(Batch.from_groups([]), np.random.default_rng(0)))
    assert len(first) == 1 and first.tokens.shape == (1, 12) and bool(first.active.all())
    policy, weights = select.policy, first.advantages[0]
    logp = policy.forward(first).logprobs
    loss = PolicyGradient()(logp, first)
    assert loss.value.item() == pytest.approx(-(weights * logp[0]).mean().item(), rel=1e-5)
    path = first.episodes[0].path
    assert path is not None and len(path) == 12
    clone = started(DualRL(DATA, temperature=0.0, **SMALL))
    [made] = list(clone.replay(Batch.from_groups([]), np.random.default_rng(0)))
    assert set(made.advantages[0].tolist()) == {1.0}, "temperature 0 is cloning"
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=0.01)
    assert update(policy, PolicyGradient(), first, optimizer)[1] == 12
    assert select(first).tolist() == [0.0], "what was played is not learned from"


def test_recoil_looks_at_what_the_policy_would_do_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn at temperature 1 in each state, and cut to [-1, 1] as the world cuts it; other critics look at none."""
    select = started(DualRL(DATA, imitate=True, **SMALL))
    seen: list[Any] = []
    acts = np.linspace(-2.75, 2.75, 24, dtype=np.float32).reshape(12, 2)

    def act(states: np.ndarray, rngs: list[np.random.Generator], temperature: float) -> tuple[Any, np.ndarray, Any]:
        seen.append((states, len({rng.random() for rng in rngs}), temperature))
        return None, acts, None

    def looked_at(select: DualRL) -> Any:
        update_critic = select.critic.update
        monkeypatch.setattr(select.critic, "update", lambda *given: seen.append(given) or update_critic(*given))
        [batch] = list(select.replay(Batch.from_groups([]), np.random.default_rng(0)))
        assert bool(batch.advantages.isfinite().all())
        return seen.pop()

    monkeypatch.setattr(select.policy, "act", act)
    rows, fresh = looked_at(select)
    [(states, different, temperature)] = seen
    assert np.array_equal(states, rows.states.numpy()) and different == 12 and temperature == 1.0
    assert fresh.tolist() == acts.clip(-1, 1).tolist()
    for other in ({}, {"imitate": True, "top": 200.0}):
        assert looked_at(started(DualRL(DATA, **other, **SMALL)))[1] is None  # type: ignore[arg-type]


def test_metrics_are_means_over_the_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    select, losses = started(DualRL(DATA, updates=3, **SMALL)), iter((1.0, 2.0, 6.0))
    monkeypatch.setattr(select.critic, "update", lambda *given: (torch.ones(12), {"critic/v_loss": next(losses)}))
    assert len(list(select.replay(Batch.from_groups([]), np.random.default_rng(0)))) == 3
    assert select.learn(Batch.from_groups([]), Models(select.policy)) == {
        "critic/v_loss": 3.0,
        "transitions": len(select.record),
    }


def test_what_is_drawn() -> None:
    select = started(DualRL(DATA, imitate=True, **SMALL))
    batch = select.drawn(np.random.default_rng(0))
    assert len(batch) == 12 and batch.expert[:6].all()
    select.played.add(record_of([len(select.record) * 3], sizes=select.policy.sizes))
    rng = np.random.default_rng(1)
    new = np.mean([float((select.drawn(rng).rewards > 0).float().mean()) for _ in range(200)])
    assert new == pytest.approx(0.375, abs=0.03), "three quarters of the half that is of no demonstration"
    plain = started(DualRL(DATA, **SMALL))
    assert float(plain.drawn(rng).expert.float().mean()) < 0.5


def test_playing_counts_once_it_is_online() -> None:
    select = started(DualRL(DATA, offline=2, **SMALL))
    known, batch = len(select.record), drawn(4, sizes=select.policy.sizes).batch(select.policy)
    episode = batch.episodes[0]
    batch.episodes = [replace(episode, turns=tuple(Turn(i, i, i + 1, reward=1.0) for i in range(4)))]
    for step, count in enumerate((known, known, known + 4)):
        list(select.replay(batch, np.random.default_rng(step)))
        assert select.learn(batch, Models(select.policy))["transitions"] == count
    again = started(DualRL(DATA, offline=2, **SMALL))
    again.load_state_dict(copy.deepcopy(select.state_dict()))
    assert again.steps == 3 and len(again.played) == 4
    rows = [next(s.replay(Batch.from_groups([]), np.random.default_rng(5))).advantages for s in (select, again)]
    assert torch.equal(*rows)


def test_what_does_not_fit_is_refused() -> None:
    for wrong in (
        {"updates": 0},
        {"batch": 0},
        {"offline": -1},
        {"offline": 1},
        {"weight": 1.0},
        {"weight": 0.0},
        {"rate": 0.0},
        {"discount": 1.5},
        {"temperature": -1.0},
    ):
        with pytest.raises(UsageError):
            DualRL(**wrong)  # type: ignore[arg-type]
    assert DualRL(form="xql", weight=2.0).options["weight"] == 2.0
    with pytest.raises(UsageError, match="demonstrations"):
        started(DualRL({"environment": "point_mass", "mix": {"random": 1}}, imitate=True))
    with pytest.raises(UsageError, match=r"model.source = control"):
        make("S204").select.check(object())


def test_the_row_is_its_parts() -> None:
    method, alone = make("S204"), DualRL()
    select = method.select
    assert method.objective == PolicyGradient() and method.learners == [select]
    assert select.options == alone.options and select.options == {
        "form": "chi_square",
        "weight": 0.7,
        "temperature": 3.0,
        "discount": 0.99,
        "rate": 0.005,
        "lr": 3e-4,
        "hidden": (256, 256),
        "clip": 5.0,
    }
    for made in (select, alone):
        assert (made.updates, made.batch, made.capacity, made.offline, made.half) == (1, 256, 100_000, 0, False)
    assert make("S204", imitate=True).select.options["beta"] == DualRL(imitate=True).options["beta"] == 0.5
    bounded = make("S204", imitate=True, top=200.0, clip=7.0).select.options
    assert (bounded["top"], bounded["clip"]) == (200.0, 7.0) and "beta" not in bounded


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"source": "control", "control": {"hidden": [8]}, "nano": {}},
        tasks={"source": {"name": "environment", "environment": "point_mass"}, "eval_size": 2},
        warmup={"steps": 0},
        method={
            "name": "S204",
            "rollout": "vector",
            "reward": "verdict",
            "options": {"data": DATA, "offline": 1, "updates": 2, "batch": 8, "hidden": [8]},
        },
        rollout={"prompts": 1, "group": 2},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1, "temperature": 0.0},
    )
    first, second = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert first["replay/grad_norm"] > 0 and second["transitions"] > first["transitions"]
    assert first["return/mean"] <= -1 and "repetition" not in first
