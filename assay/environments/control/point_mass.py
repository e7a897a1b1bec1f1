"""A point in the plane that is to reach a place: the smallest world of continuous states and actions."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.environments.base import Action
from assay.environments.foreign.gymnasium import Gymnasium
from assay.environments.foreign.vectors import taken
from assay.environments.lines import Interface
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import part

Paid = Literal["steps", "distance", "goal"]


@dataclass(frozen=True, slots=True)
class Box:
    """Vectors within bounds, as Gymnasium's space of that name."""

    low: np.ndarray
    high: np.ndarray

    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    def contains(self, value: Any) -> bool:
        inside: bool = value.shape == self.shape and bool(((self.low <= value) & (value <= self.high)).all())
        return inside


class PointMass:
    """x' = clip(x + speed a + noise e, -1, 1) in the square [-1, 1]^2, a in [-1, 1]^2, e standard normal.

    It has Gymnasium's interface, and needs NumPy alone. Seen are x and the goal, ``(4,)``. The episode is over when
    |x - goal| <= radius (``info["reached"]``), and cut after ``horizon`` steps that have not got there.

    Args:
        goal: where it is to go; ``None`` draws one at every reset.
        start: where it begins, and how far around that: x, y, width; ``None`` draws it from the whole square. It is
            never at the goal.
        horizon: steps.
        radius: of the goal.
        speed: of a step along an axis, at most.
        noise: see above.
        paid: for a step: ``steps``, -1, and 0 for one that reaches the goal; ``distance``, -|x' - goal|; ``goal``, 1
            for one that reaches it, else 0.

    Raises:
        UsageError: an option out of range.
    """

    def __init__(
        self,
        goal: Sequence[float] | None = (0.7, 0.7),
        start: Sequence[float] | None = None,
        horizon: int = 30,
        radius: float = 0.1,
        speed: float = 0.1,
        noise: float = 0.0,
        paid: Paid = "steps",
    ):
        places = [] if goal is None else list(goal)
        if len(places) not in (0, 2) or not all(-1 <= x <= 1 for x in places):
            raise UsageError(f"environment 'point_mass': goal {places} is no place in [-1, 1]^2")
        if start is not None and (len(start) != 3 or not all(-1 <= x <= 1 for x in start[:2]) or start[2] < 0):
            raise UsageError(f"environment 'point_mass': start {list(start)} is x, y in [-1, 1] and a width >= 0")
        if horizon < 1 or not 0 < radius < 1 or speed <= 0 or noise < 0:
            raise UsageError(
                f"environment 'point_mass': horizon {horizon} >= 1, 0 < radius {radius:g} < 1, speed {speed:g} > 0 and "
                f"noise {noise:g} >= 0 do not all hold"
            )
        self.wanted, self.start, self.horizon, self.radius = goal, start, horizon, radius
        self.speed, self.noise, self.paid = speed, noise, paid
        self.observation_space = Box(-np.ones(4, np.float32), np.ones(4, np.float32))
        self.action_space = Box(-np.ones(2, np.float32), np.ones(2, np.float32))
        self.rng = np.random.default_rng(0)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin; of the options ``start`` and ``goal`` are places in place of those drawn."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        asked = options or {}
        drawn = self.rng.uniform(-1, 1, 2) if self.wanted is None else np.array(self.wanted, dtype=np.float64)
        self.goal = np.asarray(asked.get("goal", drawn), dtype=np.float64)
        self.x = np.asarray(asked["start"], dtype=np.float64) if "start" in asked else self._start()
        self.steps = 0
        return self._seen(), {"reached": False}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        moved = self.speed * np.clip(np.asarray(action, dtype=np.float64), -1, 1)
        self.x = np.clip(self.x + moved + self.noise * self.rng.standard_normal(2), -1, 1)
        self.steps += 1
        distance = float(np.linalg.norm(self.x - self.goal))
        reached = distance <= self.radius
        paid = {"steps": float(reached) - 1, "distance": -distance, "goal": float(reached)}[self.paid]
        return self._seen(), paid, reached, not reached and self.steps >= self.horizon, {"reached": reached}

    def toward(self, target: np.ndarray | None = None) -> np.ndarray:
        """Return the action that goes straight to a place, the goal if none is named."""
        way = (self.goal if target is None else target) - self.x
        return way / max(self.speed, float(np.abs(way).max()))

    def somewhere(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1, 1, 2)

    def middle(self) -> np.ndarray:
        return np.zeros(2)

    def aside(self, side: int) -> np.ndarray:
        return side * np.array([self.goal[1], -self.goal[0]])

    def close(self) -> None:
        """Nothing is held."""

    def _start(self) -> np.ndarray:
        x, y, width = self.start or (0.0, 0.0, 1.0)
        while True:
            drawn = np.clip(np.array([x, y]) + width * self.rng.uniform(-1, 1, 2), -1, 1)
            if np.linalg.norm(drawn - self.goal) > self.radius or not width:
                return drawn

    def _seen(self) -> np.ndarray:
        return np.concatenate([self.x, self.goal]).astype(np.float32)


@part("environment", "point_mass")
class PointMasses(Gymnasium):
    """Episodes of a :class:`PointMass`, each begun by its task's seed; the verdict passes where the goal was reached.

    A policy of numbers plays it in rollout ``vector``. One that speaks is shown its place and the goal as numbers, and
    gives the two of a step as a line.

    Args:
        goal, start, horizon, radius, speed, noise, paid: see there.
        interface: ``text``, or ``tool``: the tool ``act`` takes the line.
        seed: of the tasks.
    """

    def __init__(
        self,
        goal: tuple[float, float] | None = (0.7, 0.7),
        start: tuple[float, float, float] | None = None,
        horizon: int = 30,
        radius: float = 0.1,
        speed: float = 0.1,
        noise: float = 0.0,
        paid: Paid = "steps",
        interface: Interface = "text",
        seed: int = 0,
    ):
        options = {
            "goal": goal,
            "start": start,
            "horizon": horizon,
            "radius": radius,
            "speed": speed,
            "noise": noise,
            "paid": paid,
        }
        rules = "You are a point in a square from -1 to 1. Shown are your two coordinates and the goal's"
        super().__init__("point_mass", options, success="reached", rules=rules, interface=interface, seed=seed)

    def _made(self) -> PointMass:
        return PointMass(**self.options)

    def gold(self) -> Sequence[Action]:
        """Return steps straight to the goal, as lines."""
        world = copy.deepcopy(self.world)
        out: list[Action] = []
        while len(out) < world.horizon:
            value = taken(world.action_space, world.toward())
            line = " ".join(f"{x:.6f}" for x in value)
            out.append(call("act", action=line) if self.interface == "tool" else say(line))
            if world.step(value)[2]:
                break
        return out
