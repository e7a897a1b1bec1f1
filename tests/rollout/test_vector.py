"""Episodes by numbers: each by its own seed, ends told apart, Gymnasium's ids unchanged, failures no zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from turned import policy_of

from assay.batch import Batch
from assay.config import load_config
from assay.engines.base import Request, Sampling, engine_of
from assay.engines.control import ControlEngine
from assay.environments.control.point_mass import PointMasses
from assay.environments.foreign.vectors import taken
from assay.errors import UsageError
from assay.policies.loading import ModelConfig
from assay.policies.policy import load_policy
from assay.rollout.turns.vector import Vector
from assay.training.checks import check_alone
from assay.types import Ask, Group

pytestmark = pytest.mark.usefixtures("one_thread")

CLASSIC = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1", "MountainCarContinuous-v0")


def play(policy: Any, seeds: list[int], heat: float = 1.0, n: int = 2, **options: Any) -> list[Group]:
    tasks = PointMasses().tasks()
    asks = [Ask(tasks[seed % 97], n) for seed in seeds]
    return Vector(Sampling(temperature=heat), **options).play(asks, seeds, ControlEngine(policy))


def test_an_episode_depends_on_its_seed_alone() -> None:
    policy = policy_of(hidden=[8])
    together, alone = play(policy, [5, 6, 7]), play(policy, [6])
    for a, b in zip(together[1].episodes, alone[0].episodes, strict=True):
        assert a.path is not None and b.path is not None
        assert np.allclose(a.path.actions, b.path.actions, atol=1e-6) and a.text == b.text
    first, second = (e.path for e in alone[0].episodes)
    assert first is not None and second is not None
    assert np.array_equal(first.states[0], second.states[0]), "those of an ask begin alike"
    assert not np.array_equal(first.actions[0], second.actions[0])
    greedy = play(policy, [6], heat=0.0)[0].episodes
    assert greedy[0].path is not None and greedy[1].path is not None
    assert np.array_equal(greedy[0].path.actions, greedy[1].path.actions)


def test_the_sampler_s_log_probabilities_are_the_policy_s() -> None:
    for heat in (1.0, 2.5):
        policy = policy_of(hidden=[8], seed=3)
        batch = Batch.from_groups(play(policy, [1, 2], heat))
        out = policy.forward(batch, ["entropy"], heat)
        assert torch.allclose(out.logprobs[batch.mask], batch.logprobs[batch.mask], atol=1e-6)
        assert not out.logprobs[~batch.mask].any()
        # Two independent normals of variance tau.
        assert out.live["entropy"][batch.mask].tolist() == pytest.approx(
            [2.837877 + np.log(heat)] * int(batch.mask.sum())
        )
        path = batch.episodes[0].path
        assert path is not None
        mean, log_sigma = policy.distribution(torch.from_numpy(path.states), heat)
        normal = torch.distributions.Normal(mean, log_sigma.exp())
        assert torch.allclose(
            normal.log_prob(torch.from_numpy(path.actions)).sum(-1), out.logprobs[0, : len(path)], atol=1e-5
        )


def test_over_and_cut_are_told_apart() -> None:
    class Straight(type(policy_of(hidden=[4]))):  # type: ignore[misc]
        def act(self, states: np.ndarray, rngs: Any, temperature: float) -> Any:
            way = (states[:, 2:] - states[:, :2]) / 0.1
            return np.zeros((len(states), 1), np.int64), way.astype(np.float32), np.zeros((len(states), 1), np.float32)

    made = policy_of(hidden=[4])
    straight = Straight(made.config, made.sizes, made.device)
    [group] = play(straight, [3], n=1)
    [episode] = group.episodes
    assert episode.stop == "eos" and not episode.truncated and group.verdicts[0].passed
    assert [t.terminated for t in episode.turns] == [False] * (len(episode.turns) - 1) + [True]
    assert not any(t.truncated for t in episode.turns)
    assert episode.path is not None and np.array_equal(episode.path.after[:-1], episode.path.states[1:])
    assert np.abs(episode.path.actions).max() > 1, "as decided: the world takes what lies within its bounds"
    [short] = play(straight, [3], n=1, steps=2)
    assert [(t.terminated, t.truncated) for t in short.episodes[0].turns] == [(False, False), (False, True)]
    assert short.episodes[0].stop == "limit" and short.verdicts[0].passed is False
    assert [(t.start, t.end, t.index, t.reward) for t in short.episodes[0].turns] == [(0, 1, 0, -1), (1, 2, 1, -1)]
    assert short.episodes[0].text == "return -2 in 2 steps"


def test_a_world_that_fails_abstains() -> None:
    policy = policy_of(hidden=[4])
    rollout = Vector(Sampling())
    engine, task = ControlEngine(policy), PointMasses().tasks()[0]
    rollout.play([Ask(task, 2)], [0], engine)
    world = rollout._worlds[0].world
    for name in ("step", "reset"):
        kept = getattr(world, name)

        def fails(*_: Any, **__: Any) -> Any:
            raise OSError("the wire is cut")

        setattr(world, name, fails)
        [group] = rollout.play([Ask(task, 2)], [0], engine)
        assert group.verdicts[0].passed is None and "OSError: the wire is cut" in group.verdicts[0].feedback
        assert group.episodes[0].stop == "error" and group.verdicts[1].passed is not None
        setattr(world, name, kept)


@pytest.mark.parametrize("id", CLASSIC)
def test_gymnasium_s_ids_are_played_unchanged(id: str) -> None:
    gym = pytest.importorskip("gymnasium")
    spec = {"name": "gymnasium", "id": id, "passes": 0.0}
    policy = policy_of(hidden=[4], environment=spec)
    rollout = Vector(Sampling(), steps=60)
    tasks = PointMasses().tasks()
    [group] = rollout.play([Ask(tasks[1], 1)], [2], ControlEngine(policy))
    [episode] = group.episodes
    theirs = gym.make(id)
    theirs.reset(seed=tasks[1].meta["seed"])
    assert episode.path is not None
    for turn, action in zip(episode.turns, episode.path.actions, strict=True):
        _, reward, over, cut, _ = theirs.step(taken(theirs.action_space, action))
        last = turn is episode.turns[-1]
        assert (turn.reward, turn.terminated) == (float(reward), over)
        assert turn.truncated == (not over and (cut or (last and len(episode.turns) == 60)))
    assert len(episode.turns) == 60 or over or cut


def test_what_does_not_fit_is_refused() -> None:
    policy = policy_of(hidden=[4])
    engine = engine_of(policy, "hf", 8)
    assert isinstance(engine, ControlEngine) and engine.decode([1]) == "" and not len(engine.encode("x"))
    with pytest.raises(UsageError, match=r"rollout = vector"):
        engine.generate([Request("x", 1, Sampling(), 0)])
    with pytest.raises(UsageError, match=r"rollout = vector"):
        engine.encode_response("x")
    ask = Ask(PointMasses().tasks()[0], 1)
    for options, why in (
        ({"environment": "corridor"}, "not played by numbers"),
        ({"environment": {"name": "gymnasium", "id": "Pendulum-v1", "passes": 0.0}}, "of 3 numbers seen and 1 decided"),
    ):
        with pytest.raises(UsageError, match=why):
            Vector(Sampling(), **options).play([ask], [0], engine)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"model.source = control"):
        Vector(Sampling()).play([ask], [0], object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 1"):
        Vector(Sampling(), steps=0)
    assert Vector(Sampling()).steps == 1000
    with pytest.raises(UsageError, match="not played by numbers"):
        policy_of(environment="corridor")
    with pytest.raises(UsageError, match="generates text"):
        engine_of(policy, "openai", 8)
    for section, why in (
        ({"scale": {"trainers": 2}}, "learns and acts in one process"),
        ({"warmup": {"steps": 1}}, "solutions"),
    ):
        with pytest.raises(UsageError, match=why):
            check_alone(load_config({"model": {"source": "control"}, **section}))
    for model, why in (
        ({"lora": {}}, "model.lora"),
        ({"dtype": "bfloat16"}, "model.dtype"),
        ({"compile": True}, "comp"),
    ):
        with pytest.raises(UsageError, match=why):
            load_policy(load_config({"model": {"source": "control", **model}}).model)
    batch = Batch.from_groups(play(policy, [1]))
    for ask_for in (policy.continuations, policy.continuation_ranks, policy.candidates, policy.likeliest):
        with pytest.raises(UsageError, match="policy of numbers does not give"):
            ask_for(batch)
    with pytest.raises(UsageError, match="are not this policy's, of"):
        policy_of(hidden=[4], environment={"name": "gymnasium", "id": "Pendulum-v1", "passes": 0.0}).forward(batch)


def test_its_weights_are_kept(tmp_path: Path) -> None:
    policy, other = policy_of(hidden=[6, 5]), policy_of(hidden=[6, 5], seed=9)
    batch = Batch.from_groups(play(policy, [1, 2, 3]))
    assert policy.config.hidden == [6, 5] and policy.width == 5 and policy_of().config.hidden == [256, 256]
    assert not torch.equal(policy.forward(batch).logprobs, other.forward(batch).logprobs)
    policy.save(tmp_path)
    assert torch.equal(policy.forward(batch).logprobs, other.frozen(tmp_path).forward(batch).logprobs)
    assert not any(p.requires_grad for p in other.frozen(tmp_path).module.parameters())
    other.load_weights(tmp_path)
    twin = other.twin()
    assert torch.equal(policy.forward(batch).logprobs, twin.forward(batch).logprobs)
    with torch.no_grad():
        twin.module.spread.add_(1)
    assert torch.equal(policy.forward(batch).logprobs, other.forward(batch).logprobs)
    from_folder = load_policy(ModelConfig(source=str(tmp_path)))
    assert torch.equal(policy.forward(batch).logprobs, from_folder.forward(batch).logprobs)
    parts = policy.micro_batches(batch, 60)
    assert torch.cat(parts).tolist() == list(range(6)) and len(parts) == 3
    assert [len(p) for p in policy.micro_batches(batch, 1)] == [1] * 6


def test_plain_policy_gradients_act_on_numbers(tmp_path: Path) -> None:
    world = {"name": "point_mass", "paid": "distance"}
    folder = run(
        tmp_path / "run",
        model={"source": "control", "control": {"hidden": [8], "environment": world}, "nano": {}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        warmup={"steps": 0},
        method={"rollout": "vector", "reward": {"name": "turns"}, "credit": "turn_group"},
        rollout={"prompts": 1, "group": 4},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert row["grad_norm"] > 0 and row["return/steps"] <= 30
