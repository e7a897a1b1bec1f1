"""The point mass moves as its equation says; spaces are vectors and back; records are of the qualities asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acted import idle_fails, played, repeats

from assay.environments.base import Numeric, Scripted
from assay.environments.control.point_mass import Box, PointMass, PointMasses
from assay.environments.control.recorded import QUALITIES, Record, data_of, recorded
from assay.environments.foreign.vectors import decided, sizes, taken, vector
from assay.environments.tools import say
from assay.errors import UsageError


def test_it_moves_as_its_equation_says() -> None:
    world = PointMass(goal=(0.5, 0.0), speed=0.2, radius=0.15, horizon=3, paid="distance")
    seen, info = world.reset(seed=0, options={"start": [0.0, 0.1]})
    assert seen.tolist() == pytest.approx([0.0, 0.1, 0.5, 0.0]) and seen.dtype == np.float32 and not info["reached"]
    seen, reward, over, cut, _ = world.step([0.5, 3.0])
    assert seen[:2].tolist() == pytest.approx([0.1, 0.3]) and reward == pytest.approx(-0.5) and not (over or cut)
    world.step([1.0, -1.0])
    *_, over, cut, info = world.step([-1.0, 0.0])
    assert cut and not over and not info["reached"]
    world.reset(options={"start": [0.2, 0.0]})
    world.step([0, 0])
    world.step([0, 0])
    _, reward, over, cut, info = world.step([1.0, 0.0])
    assert over and not cut and info["reached"] and reward == pytest.approx(-0.1), "in the last step: over, not cut"
    corner = PointMass(start=(1.0, 1.0, 0.0), goal=(-1.0, -1.0))
    corner.reset(seed=1)
    assert corner.step([1.0, 1.0])[0][:2].tolist() == [1.0, 1.0]
    paid = {}
    for name in ("steps", "goal"):
        world = PointMass(goal=(0.1, 0.0), paid=name)  # type: ignore[arg-type]
        world.reset(options={"start": [-0.15, 0.0]})
        paid[name] = [world.step([1.0, 0.0])[1], world.step([1.0, 0.0])[1]]
    assert paid == {"steps": [-1.0, 0.0], "goal": [0.0, 1.0]}


def test_its_defaults_and_its_draws() -> None:
    world = PointMass()
    assert (world.horizon, world.radius, world.speed, world.noise, world.paid) == (30, 0.1, 0.1, 0.0, "steps")
    assert world.wanted == (0.7, 0.7)
    starts = np.array([world.reset(seed=s)[0][:2] for s in range(200)])
    assert starts.min() < -0.9 and starts.max() > 0.9 and (np.linalg.norm(starts - 0.7, axis=1) > 0.1).all()
    near = PointMass(start=(0.0, -0.5, 0.1))
    drawn = np.array([near.reset(seed=s)[0][:2] for s in range(50)])
    assert (np.abs(drawn - [0.0, -0.5]) <= 0.1).all() and np.ptp(drawn) > 0.1
    free = PointMass(goal=None)
    assert not np.array_equal(free.reset(seed=1)[0][2:], free.reset(seed=2)[0][2:])
    noisy = PointMass(noise=0.1)
    noisy.reset(seed=0, options={"start": [0, 0]})
    assert np.abs(noisy.step([0, 0])[0][:2]).min() > 1e-4
    ours: Any = Box(-np.ones(2, np.float32), np.ones(2, np.float32))
    assert (
        ours.contains(np.float32([1, -1])) and not ours.contains(np.float32([1, 2])) and not ours.contains(np.zeros(3))
    )
    for wrong in (
        {"goal": (2.0, 0.0)},
        {"goal": (0.0,)},
        {"start": (0.0, 0.0)},
        {"start": (0.0, 0.0, -1.0)},
        {"start": (0.0, 2.0, 0.0)},
        {"horizon": 0},
        {"radius": 0.0},
        {"radius": 1.0},
        {"speed": 0.0},
        {"noise": -1.0},
    ):
        with pytest.raises(UsageError, match="point_mass"):
            PointMass(**wrong)  # type: ignore[arg-type]


def test_it_is_played_by_lines_too() -> None:
    def make() -> PointMasses:
        return PointMasses(goal=None, noise=0.01)

    tasks, plans = make().tasks(), []
    for k in range(3):
        world = make()
        shown = world.reset(tasks[k], k)
        assert "a point in a square" in shown.messages[0]["content"]
        plan = [*world.gold()]
        *_, last, verdict = played(make(), tasks[k], plan, k)
        assert last.terminated and verdict.passed and len(plan) < 25
        plans.append(plan)
    repeats(make, tasks, plans)
    idle_fails(make, tasks, n=3)
    tool = PointMasses(interface="tool")
    tool.reset(tasks[0], 0)
    assert tool.gold()[0].calls[0].name == "act" and tool.step(tool.gold()[0]).valid
    assert isinstance(make(), Numeric)
    world = make()
    world.reset(tasks[0], 0)
    assert not world.step(say("0.5 nowhere")).valid


def test_spaces_are_vectors_and_back() -> None:
    gym = pytest.importorskip("gymnasium").spaces
    box = gym.Box(np.float32([[-2.0, 0.0]]), np.float32([[2.0, 1.0]]))
    assert taken(box, np.float32([0.5, -3.0])).tolist() == [[1.0, 0.0]]
    assert decided(box, np.float32([[1.0, 0.25]])).tolist() == pytest.approx([0.5, -0.5])
    three = gym.Discrete(3, start=1)
    assert [taken(three, np.float32([x])) for x in (-1.0, -0.34, -0.3, 0.3, 0.34, 1.0, 9.0)] == [1, 1, 2, 2, 3, 3, 3]
    assert [taken(three, decided(three, k)) for k in (1, 2, 3)] == [1, 2, 3]
    assert vector(three, 3).tolist() == [0, 0, 1] and vector(box, np.ones((1, 2))).shape == (2,)

    class World:
        observation_space, action_space = three, box

    assert sizes(World) == (3, 2)
    World.action_space = gym.Box(-np.inf, np.inf, (2,))
    with pytest.raises(UsageError, match="within bounds"):
        sizes(World)
    World.observation_space = gym.Text(3)
    with pytest.raises(UsageError, match="observations of a Box or Discrete"):
        sizes(World)


def test_records_are_of_the_qualities_asked_for() -> None:
    made = {q: recorded("point_mass", {q: 6}, seed=3) for q in QUALITIES}
    for record in made.values():
        assert len(record.returns) == 6 and not (record.terminated & record.truncated).any()
        inside = ~(record.terminated | record.truncated)[:-1]
        assert np.allclose(record.after[:-1][inside], record.states[1:][inside])
        assert np.abs(record.actions).max() <= 1 and record.rewards.dtype == np.float32
        assert np.allclose(record.after[:, :2], np.clip(record.states[:, :2] + 0.1 * record.actions, -1, 1), atol=1e-6)
    returns = {q: record.returns.mean() for q, record in made.items()}
    assert made["expert"].terminated.sum() == 6 and returns["expert"] > returns["noisy"] > returns["random"]
    assert made["expert"].expert.all() and not any(made[q].expert.any() for q in QUALITIES if q != "expert")
    crossing = recorded({"name": "point_mass", "start": [-0.7, -0.7, 0.1]}, {"crossing": 4})
    ends = np.flatnonzero(crossing.terminated | crossing.truncated)
    # To a place beside the goal, or to the goal from the place opposite; both by way of the middle.
    assert crossing.truncated[ends].tolist() == [True, False, True, False]
    assert np.allclose(crossing.after[ends[::2], :2], [0.7, -0.7], atol=1e-6)
    begins = [0, *(ends[:-1] + 1)]
    assert (
        np.allclose(crossing.states[begins[1::2], :2], [-0.7, 0.7]) and (crossing.states[begins[::2], :2] < -0.5).all()
    )
    assert (np.abs(crossing.states[:, :2]).max(1) < 1e-6).sum() >= 4, "each has been in the middle"
    assert np.unique(made["play"].actions[:10] > 0, axis=0).shape[0] > 1
    again = recorded("point_mass", {"random": 6}, seed=3)
    assert np.array_equal(again.actions, made["random"].actions)
    assert len(recorded("point_mass", {"random": 1}, limit=4)) == 4
    assert recorded("point_mass", {"random": 1}, limit=4).truncated.tolist() == [False] * 3 + [True]


def test_records_are_read_from_a_file(tmp_path: Path) -> None:
    record = recorded("point_mass", {"expert": 2})
    held = {
        "observations": record.states,
        "actions": record.actions,
        "rewards": record.rewards,
        "next_observations": record.after,
        "terminals": record.terminated,
    }
    np.savez(tmp_path / "a.npz", **held)
    found = data_of({"path": str(tmp_path / "a.npz")})
    assert isinstance(found, Record) and np.array_equal(found.after, record.after)
    assert np.array_equal(found.terminated, record.terminated) and not (found.truncated | found.expert).any()
    np.savez(tmp_path / "b.npz", **held, timeouts=np.ones(len(record)), expert=record.expert)
    told = data_of({"path": str(tmp_path / "b.npz")})
    assert told.expert.all() and np.array_equal(told.truncated, ~record.terminated)
    np.savez(tmp_path / "c.npz", observations=record.states)
    np.savez(tmp_path / "d.npz", **{**held, "rewards": record.rewards[1:]})
    (tmp_path / "e.npz").write_text("no archive")
    for name, why in (("c", "has no actions"), ("d", "unequal length"), ("e", "no NumPy archive"), ("f", "no file")):
        with pytest.raises(UsageError, match=why):
            data_of({"path": str(tmp_path / f"{name}.npz")})


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, "a path, or an environment"),
        ({"path": "x", "environment": "point_mass"}, "a path, or an environment"),
        ({"environment": "point_mass", "mix": {"random": 1}, "size": 2}, "a path, or an environment"),
        ({"environment": "point_mass", "mix": {"good": 1}}, "how many episodes of expert"),
        ({"environment": "point_mass", "mix": {"random": 0}}, "how many episodes"),
        ({"environment": "point_mass"}, "how many episodes"),
        ({"environment": "corridor", "mix": {"random": 1}}, "not played by numbers"),
    ],
)
def test_what_cannot_be_recorded_is_said(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        data_of(spec)


def test_worlds_without_a_script_are_recorded_at_random_alone() -> None:
    pytest.importorskip("gymnasium")
    world = {"name": "gymnasium", "id": "Pendulum-v1", "passes": -200.0}
    record = recorded(world, {"random": 1}, limit=20)
    assert record.states.shape == (20, 3) and record.truncated.sum() == 1 and not record.terminated.any()
    with pytest.raises(UsageError, match="no script, so there is no expert"):
        recorded(world, {"random": 1, "expert": 1})
    assert isinstance(PointMass(), Scripted)
