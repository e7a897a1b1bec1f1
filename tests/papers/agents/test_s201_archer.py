"""S201: targets, advantages and losses by hand; a buffer over policies; turns sampled anew; values of a chain."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from turned import turned

from assay.batch import Batch
from assay.catalogue import make
from assay.config import OverlapConfig
from assay.engines.base import Request
from assay.engines.tokens import Tokens
from assay.errors import RunError, UsageError
from assay.lab.settings.environment import Setting
from assay.learning.update import update
from assay.objectives.policy_gradient import PolicyGradient
from assay.ops.turns import turns_of
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.select.off_policy.archer import Archer
from assay.signals.base import Models
from assay.signals.transitions.replay import Replay, Transition, transitions_of
from assay.signals.transitions.twins import TokenEncoder, Twins, hashed, pessimistic, targets
from assay.signals.transitions.utterance import UtteranceCritic
from assay.training.ahead.off_policy import check_overlap
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
NONE = np.zeros(0, dtype=np.int64)


def tokens(*ids: int) -> np.ndarray:
    return np.array(ids, dtype=np.int64)


def test_targets_by_hand() -> None:
    rewards, done = torch.tensor([-1.0, -1.0, 0.0]), torch.tensor([False, False, True])
    found = targets(rewards, done, torch.tensor([[-1.2, -0.3, 5.0], [0.0, 0.0, 9.0]]), 0.95)
    assert torch.allclose(found, torch.tensor([[-2.14, -1.285, 0.0], [-1.0, -1.0, 0.0]]))


def test_advantages_and_loss_by_hand() -> None:
    q, v = torch.tensor([[-1.0], [-0.8]]), torch.tensor([[-1.5], [-1.1]])
    assert float(pessimistic(q, v)) == pytest.approx(0.5)
    groups = [
        Group(Ask(Task("t", ""), 1), (Episode(NONE, tokens(0), np.ones(1, bool), None, "", "eos"),), (Verdict.right(),))
    ]
    batch = Batch.from_groups(groups * 2, torch.float64)
    batch.advantages = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    loss = PolicyGradient(aggregation="sequence_sum")(torch.tensor([[-2.0], [-3.0]], dtype=torch.float64), batch)
    assert float(loss.value) == pytest.approx(-0.25)


def test_critics_are_twins_on_one_encoder() -> None:
    torch.manual_seed(0)
    twins = Twins(TokenEncoder(8, buckets=64), 16)
    s, a = [tokens(1, 2), tokens(3)], [tokens(4), tokens(5, 6)]
    e_s, e_a = (twins.fast["encoder"](x) for x in (s, a))
    for k in (1, 2):
        assert torch.equal(twins.q(s, a)[k - 1], twins.fast[f"q{k}"](torch.cat([e_s, e_a], -1))[:, 0])
        assert torch.equal(twins.v(s)[k - 1], twins.fast[f"v{k}"](e_s)[:, 0])
    assert not torch.equal(*twins.q(s, a)) and not torch.equal(*twins.v(s))
    assert torch.equal(twins.advantage(s, a), pessimistic(twins.q(s, a), twins.v(s)))
    assert not twins.advantage(s, a).requires_grad


def test_losses_are_squared_errors_to_slow_targets() -> None:
    torch.manual_seed(1)
    twins = Twins(TokenEncoder(8, buckets=64), 16, discount=0.5)
    with torch.no_grad():
        for p in twins.slow.parameters():
            p.mul_(0.7)
    s, a, after, fresh = ([tokens(i, k) for i in range(3)] for k in (1, 2, 3, 4))
    rewards, done = torch.tensor([1.0, 0.0, 2.0]), torch.tensor([False, True, False])
    loss = twins.loss(s, a, rewards, after, done, fresh)
    by_hand = torch.zeros(())
    slow_v, slow_q, q, v = twins.v(after, slow=True), twins.q(s, fresh, slow=True), twins.q(s, a), twins.v(s)
    for k in range(2):
        for i in range(3):
            target = rewards[i] + (0 if done[i] else 0.5 * slow_v[k, i])
            by_hand = by_hand + ((q[k, i] - target) ** 2 + (v[k, i] - slow_q[k, i]) ** 2) / 3
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-5)
    loss.backward()
    assert all(p.grad is None for p in twins.slow.parameters())
    assert all(p.grad is not None for p in twins.fast.parameters())


def test_slow_copies_follow() -> None:
    twins = Twins(TokenEncoder(2, buckets=4), 4, rate=0.1)
    slow, fast = twins.slow["encoder"].vectors.weight, twins.fast["encoder"].vectors.weight
    with torch.no_grad():
        slow[0], fast[0] = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0])
    twins.follow()
    assert slow[0].tolist() == pytest.approx([1.2, 1.8]) and fast[0].tolist() == [3.0, 0.0]


def test_the_encoder_tells_states_apart_and_shares_runs() -> None:
    one, two = (hashed(tokens(*x).tobytes(), 2).tolist() for x in ((1, 2, 3), (1, 2, 4)))
    assert len(one) == 1 + 3 + 2 and len(set(one) & set(two)) == 3, "1, 2 and 1 2 are shared, the whole is not"
    assert hashed(b"", 3).tolist() == hashed(b"", 1).tolist() and len(hashed(b"", 3)) == 1
    encoder = TokenEncoder(4, 2, 128)
    rows = encoder([tokens(1, 2, 3), NONE, tokens(7)])
    expected = encoder.vectors.weight[torch.tensor(one) % 128].mean(0)
    assert rows.shape == (3, 4) and torch.allclose(rows[0], expected)
    assert TokenEncoder().vectors.weight.shape == (2**14, 64) and TokenEncoder().order == 3


def test_turns_are_transitions() -> None:
    """Own tokens 2 a turn and 1 of the world's after each."""
    batch = turned([[1.0, 2.0, 3.0], [4.0]], outcomes=[10.0, 0.0])
    for i, episode in enumerate(batch.episodes):
        episode.tokens[:] = np.arange(len(episode.tokens)) + 100 * i
    found = transitions_of(batch)
    assert [t.reward for t in found] == [1.0, 2.0, 13.0, 4.0] and [t.done for t in found] == [False, False, True, True]
    assert [t.state.tolist() for t in found] == [[], [0, 1, 2], [0, 1, 2, 3, 4, 5], []]
    assert [t.action.tolist() for t in found] == [[0, 1], [3, 4], [6, 7], [100, 101]]
    assert [t.after.tolist() for t in found] == [[0, 1, 2], [0, 1, 2, 3, 4, 5], [], []]
    batch.valid[0] = False
    assert len(transitions_of(batch)) == 1, "what failed for no fault of the policy's is not kept"
    cut = turned([[1.0, 2.0]], reset=[[True, False]])
    assert [t.done for t in transitions_of(cut)] == [True, True]
    unknown = turned([[1.0, 2.0]], verdict=[[Verdict.abstain("away"), Verdict.right()]])
    assert [t.reward for t in transitions_of(unknown)] == [2.0]
    assert len(turns_of(batch)) == 4


def test_the_buffer_holds_what_all_policies_did() -> None:
    replay = Replay(3)
    made = [Transition(tokens(i), tokens(i), float(i), NONE, True) for i in range(5)]
    replay.add(made[:2])
    replay.add(made[2:])
    assert [t.reward for t in replay.kept] == [2.0, 3.0, 4.0] and len(replay) == 3, "the oldest go first"
    drawn = [t.reward for t in replay.draw(300, np.random.default_rng(0))]
    assert {*drawn} == {2.0, 3.0, 4.0} and 80 < drawn.count(3.0) < 120
    other = Replay(9)
    other.load_state_dict(replay.state_dict())
    assert [t.reward for t in other.kept] == [2.0, 3.0, 4.0] and other.kept.maxlen == 3
    with pytest.raises(UsageError):
        Replay(0)


class Speaks:
    """An engine that says what it is told to and keeps what it was asked."""

    def __init__(self, say: Any, stop: str = "eos"):
        self.say, self.stop, self.asked = say, stop, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.asarray(prompt.ids)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NONE

    def decode(self, said: Any) -> str:
        return ""

    def generate(self, requests: Any) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for r in requests:
            assert isinstance(r.prompt, Tokens)
            said = self.say(r.prompt.ids)
            mask, logp = np.ones(len(said), bool), np.zeros(len(said), np.float32)
            out.append([Episode(np.asarray(r.prompt.ids), said, mask, logp, "", self.stop)])  # type: ignore[arg-type]
        return out


def started(part: Any, engine: Any) -> Any:
    torch.manual_seed(0)
    part.start(Models(TabularPolicy(Tree.bandit(2, [1.0, 0.0])), engine=engine))
    return part


SMALL: dict[str, Any] = {"batch": 16, "width": 8, "lr": 0.02}


@pytest.mark.slow
def test_values_of_a_chain() -> None:
    """A policy that always says the same, in a chain of five states; 1 is paid at the end: V is gamma^steps to go."""
    critic = started(UtteranceCritic(discount=0.8, rate=0.3, batch=32, width=16, lr=0.01), Speaks(lambda s: tokens(7)))
    chain = [
        Transition(tokens(i), tokens(7), float(i == 4), tokens(i + 1) if i < 4 else NONE, i == 4) for i in range(5)
    ]
    critic.replay.add(chain)
    rng = np.random.default_rng(0)
    for _ in range(400):
        critic.update(rng)
    with torch.no_grad():
        v = critic.twins.v([t.state for t in chain])
        q = critic.twins.q([t.state for t in chain], [t.action for t in chain])
    want = torch.tensor([0.8 ** (4 - i) for i in range(5)])
    assert (v - want).abs().max() < 0.05 and (q - want).abs().max() < 0.05


def test_actions_are_sampled_anew_in_both_updates() -> None:
    engine = Speaks(lambda s: tokens(1))
    archer = started(Archer(critic_updates=2, actor_updates=3, warm_up=0, rows=5, max_tokens=9, **SMALL), engine)
    batch = turned([[0.0, 1.0], [1.0, 0.0]])
    made = list(archer.replay(batch, np.random.default_rng(0)))
    assert len(made) == 3 and [len(b) for b in made] == [5] * 3
    assert len(engine.asked) == 2 * 16 + 3 * 5 and {r.sampling.max_tokens for r in engine.asked} == {9}
    assert len({r.seed for r in engine.asked}) == len(engine.asked)
    visited = {t.state.tobytes() for t in archer.critic.replay.kept}
    for b in made:
        assert {e.prompt.tobytes() for e in b.episodes} <= visited
        assert all(e.tokens.tolist() == [1] for e in b.episodes), "not what was played: that was 0 0"
    assert archer.learn(batch, archer.critic.models)["advantage/mean"] == pytest.approx(
        float(made[-1].advantages.mean())
    )
    assert archer(batch).tolist() == [0, 0], "what was played is not learned from by the actor"


def test_advantages_of_what_was_said_are_the_critics() -> None:
    archer = started(Archer(critic_updates=1, warm_up=0, rows=6, **SMALL), Speaks(lambda s: tokens(1, 2)))
    archer.critic.add(turned([[0.0, 1.0]]))
    made = archer.spoken(np.random.default_rng(0), torch.float64)
    states = [np.asarray(e.prompt) for e in made.episodes]
    want = archer.critic.twins.advantage(states, [e.tokens for e in made.episodes])
    assert torch.allclose(made.advantages.float(), want[:, None].expand(6, 2))
    assert not made.advantages.requires_grad and bool(made.active.all())
    archer.critic.models.engine = Speaks(lambda s: tokens(1), stop="error")
    assert archer.spoken(np.random.default_rng(0), torch.float64) is None, "generation failed"
    archer.critic.models.engine = Speaks(lambda s: NONE)
    assert archer.spoken(np.random.default_rng(0), torch.float64) is None


def test_the_token_baseline() -> None:
    archer = started(
        Archer(critic_updates=1, warm_up=0, rows=6, baseline=True, **SMALL),
        Speaks(lambda s: tokens(*range(1 + len(s) % 2))),
    )
    critic = archer.critic
    critic.add(turned([[0.0, 1.0]]))
    states, turns = [tokens(3), tokens(3, 4)], critic.said([tokens(3), tokens(3, 4)], np.random.default_rng(0))
    values = critic.token_values(states, turns)
    assert values.shape == (2, 2) and values[1, 1] == 0, "nothing beyond a turn's end"
    encoder, out = critic.beginnings
    assert torch.allclose(values[0], out(encoder([tokens(3), tokens(3, 0)]))[:, 0])
    before = copy.deepcopy(values.detach())
    gap = critic.fit_tokens(states, turns, torch.tensor([2.0, -1.0]))
    assert torch.allclose(gap[0], 2 - before[0]) and torch.allclose(
        gap[1], torch.tensor([-1 - float(before[1, 0]), 0.0])
    )
    for _ in range(150):
        critic.fit_tokens(states, turns, torch.tensor([2.0, -1.0]))
    assert critic.fit_tokens(states, turns, torch.tensor([2.0, -1.0])).abs().max() < 0.2
    made = archer.spoken(np.random.default_rng(0), torch.float64)
    plain = archer.critic.twins.advantage([e.prompt for e in made.episodes], [e.tokens for e in made.episodes])
    assert not torch.allclose(made.advantages[:, 0].float(), plain)
    assert not made.advantages[~made.mask].any()


def test_the_actor_waits_for_the_critic() -> None:
    archer = started(Archer(critic_updates=1, actor_updates=2, warm_up=2, rows=3, **SMALL), Speaks(lambda s: tokens(1)))
    rng, batch = np.random.default_rng(0), turned([[1.0]])
    assert [len(list(archer.replay(batch, rng))) for _ in range(4)] == [0, 0, 2, 2]
    found = archer.learn(batch, archer.critic.models)
    assert found["critic/transitions"] == 4 and found["critic/loss"] > 0
    nothing = turned([[1.0]])
    nothing.valid[:] = False
    empty = started(Archer(warm_up=0), Speaks(lambda s: tokens(1)))
    assert list(empty.replay(nothing, rng)) == []


def test_an_actor_update_raises_what_the_critic_prefers() -> None:
    policy = TabularPolicy(Tree.bandit(2, [1.0, 0.0]))
    groups = [
        Group(
            Ask(Task("t", ""), 1),
            (Episode(NONE, tokens(a), np.ones(1, bool), np.zeros(1, np.float32), "", "eos"),),
            (Verdict.right(),),
        )
        for a in (0, 1)
    ]
    batch = Batch.from_groups(groups, torch.float64)
    batch.advantages = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
    before = policy.log_policy()[0].exp()[0].item()
    update(policy, make("S201").objective, batch, optimizer, max_grad_norm=float("inf"))
    assert policy.log_policy()[0].exp()[0].item() > before


def test_its_state_goes_on() -> None:
    one = started(Archer(critic_updates=2, warm_up=0, rows=3, **SMALL), Speaks(lambda s: tokens(1)))
    list(one.replay(turned([[0.0, 1.0]]), np.random.default_rng(0)))
    two = started(Archer(critic_updates=2, warm_up=0, rows=3, **SMALL), Speaks(lambda s: tokens(1)))
    kept = one.state_dict()["critic"]["replay"]["kept"]
    assert all(isinstance(v, torch.Tensor | float | bool) for row in kept for v in row.values()), "not plain data"
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    assert two.steps == 1 and len(two.critic.replay) == 2
    s = [tokens(0)]
    assert torch.equal(one.critic.twins.q(s, s), two.critic.twins.q(s, s))
    found = [next(x.replay(turned([[1.0]]), np.random.default_rng(1))).advantages for x in (one, two)]
    assert torch.equal(*found)


def test_what_does_not_fit_is_refused() -> None:
    for wrong in ({"rows": 0}, {"warm_up": -1}, {"batch": 0}, {"discount": 2.0}, {"rate": 0.0}, {"width": 0}):
        with pytest.raises(UsageError):
            started(Archer(**wrong), None)
    alone = started(Archer(warm_up=0), None)
    with pytest.raises(RunError, match="no engine"):
        list(alone.replay(turned([[1.0]]), np.random.default_rng(0)))
    with pytest.raises(UsageError, match="samples between updates"):
        check_overlap(OverlapConfig(staleness=1), make("S201"), build("rollout", "single_turn", sampling=None))


def test_the_row_is_its_parts() -> None:
    method = make("S201", rows=7, baseline=True, critic_updates=3)
    assert method.objective == PolicyGradient(aggregation="sequence_sum") and method.learners == [method.select]
    assert method.select.rows == 7 and method.select.critic.baseline and method.select.critic_updates == 3
    plain, alone = make("S201").select, Archer()
    for name in ("critic_updates", "actor_updates", "warm_up", "rows"):
        assert getattr(alone, name) == getattr(plain, name)
    for name in ("discount", "rate", "batch", "lr", "width", "max_tokens", "baseline"):
        assert getattr(alone.critic, name) == getattr(plain.critic, name)
    assert alone.critic.replay.kept.maxlen == plain.critic.replay.kept.maxlen
    assert (plain.critic_updates, plain.actor_updates, plain.warm_up, plain.rows) == (50, 3, 20, 256)
    critic = plain.critic
    assert (critic.discount, critic.rate, critic.batch, critic.replay.kept.maxlen) == (0.95, 0.1, 256, 100_000)
    assert (critic.lr, critic.width, critic.max_tokens, critic.baseline, critic.max_grad_norm) == (
        1e-3,
        64,
        64,
        False,
        1.0,
    )


@pytest.mark.slow
def test_it_learns_the_corridor(tmp_path: Path) -> None:
    setting = Setting(environment={"name": "corridor", "rooms": 3}, tasks=(1,), turns=3, steps=25, prompts=1, lr=10.0)
    options = {"warm_up": 1, "critic_updates": 10, "rows": 32, "batch": 32, "width": 16, "lr": 0.01}
    found = setting.run({"name": "S201", "options": options}, 0, tmp_path)
    assert found["final"] > 0.8 > 0.2 > found["start"]


def test_it_trains(tmp_path: Path) -> None:
    options = {"warm_up": 0, "critic_updates": 1, "actor_updates": 1, "rows": 4, "batch": 4, "max_tokens": 3}
    folder = run(
        tmp_path / "run", method={"name": "S201", "options": options}, train={"steps": 2}, evaluate={"every": 0}
    )
    rows = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert len(rows) == 2 and all(r["critic/transitions"] > 0 and r["replay/grad_norm"] > 0 for r in rows)
