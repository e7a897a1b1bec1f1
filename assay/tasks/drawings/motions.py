"""Videos of things that fall, fly and slide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.errors import UsageError
from assay.media import pillow
from assay.policies.flow.samples import pixels_text
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

Primitive = Literal["free_fall", "horizontal_throw", "parabolic_throw", "ramp_down", "ramp_up"]
GRAVITY = 0.7
"""Heights of a frame per second^2; a video takes a second."""
RANGES = {"height": (0.7, 0.9), "speed": (0.2, 0.4), "angle": (20.0, 40.0), "friction": (0.05, 0.2)}
BEYOND = {"height": (0.55, 0.7), "speed": (0.4, 0.6), "angle": (20.0, 40.0), "friction": (0.2, 0.3)}
"""Ranges of what a motion begins with: in training, and beyond it."""


@part("tasks", "motions")
@dataclass(frozen=True, slots=True)
class Motions:
    """Endless videos of a bright disc that moves by Newton's laws with constant acceleration, the solution of a task.

    With y upwards, g gravity, theta a ramp's angle, mu its friction, the acceleration is (0, -g) in a ``free_fall``
    from rest, a ``horizontal_throw`` and a ``parabolic_throw``; along a ramp it is -g (sin theta - mu cos theta) in
    ``ramp_down``, from rest, and -g (sin theta + mu cos theta) in ``ramp_up``, whose video ends where the disc does.
    The reference has the ``video`` and its ``positions`` ``(F, 2)``, in heights of a frame from below on the left.

    Args:
        seed: >= 0.
        primitives: which motions; they go round.
        beyond: quantities (``height``, ``speed``, ``friction``) drawn from ranges beyond those of training.
        frames: of a video, at least 4.
        height, width: of a frame, in pixels.
        radius: standard deviation of the disc's light, in heights of a frame.

    Raises:
        UsageError: an option out of range, or no Pillow.

    Source: the five motions of NewtonRewards (arXiv 2512.00425), here of a disc before a dark ground.
    """

    seed: int = 0
    primitives: tuple[Primitive, ...] = ("free_fall", "horizontal_throw", "parabolic_throw", "ramp_down", "ramp_up")
    beyond: tuple[Literal["height", "speed", "friction"], ...] = ()
    frames: int = 8
    height: int = 16
    width: int = 16
    radius: float = 0.08

    def __post_init__(self) -> None:
        check_seed("tasks 'motions'", self.seed)
        if not self.primitives:
            raise UsageError("tasks 'motions': primitives is empty; name free_fall or another motion")
        if not 4 <= self.frames <= 256 or not (1 <= self.height <= 1024 and 1 <= self.width <= 1024):
            raise UsageError("tasks 'motions': frames must be 4 to 256, height and width 1 to 1024")
        if not 0 < self.radius <= 0.5:
            raise UsageError(f"tasks 'motions': radius {self.radius:g} must be above 0 and at most 0.5")
        pillow()

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        primitive = self.primitives[check_index(index, None) % len(self.primitives)]
        rng = generator(self.seed, index)
        given = {q: float(rng.uniform(*(BEYOND if q in self.beyond else RANGES)[q])) for q in RANGES}
        places = trajectory(primitive, given, np.arange(self.frames) / (self.frames - 1), self.width / self.height)
        told = ", ".join(f"{name} {value:.2f}" for name, value in given.items())
        shown = pixels_text(draw(places, self.height, self.width, self.radius))
        return Task(
            id=f"motions/{self.seed}/{index}",
            prompt=f"{primitive}: {told}",
            reference={"positions": places.tolist(), "video": shown},
            kind="motion",
            solution=shown,
            meta={"source": "motions", "category": primitive, "beyond": ", ".join(self.beyond) or "nothing"},
        )


def trajectory(primitive: str, given: dict[str, float], time: np.ndarray, width: float = 1.0) -> np.ndarray:
    """Return positions ``(F, 2)`` at shares of a second ``(F,)``; of a ramp up, of the time until it stops.

    Args:
        primitive: which motion.
        given: height, speed, angle in degrees, and friction.
        time: from 0 to 1.
        width: of a frame, in heights.
    """
    speed, angle, start = given["speed"], math.radians(given["angle"]), np.array([0.2 * width, given["height"]])
    velocity, pull = np.zeros(2), np.array([0.0, -GRAVITY])
    if primitive == "free_fall":
        start[0] = 0.5 * width
    elif primitive == "horizontal_throw":
        velocity = np.array([speed, 0.0])
    elif primitive == "parabolic_throw":
        # Thrown from below, as it is to come back.
        start[1], velocity = given["height"] - 0.25, np.array([speed, speed])
    else:
        along, rub = np.array([math.cos(angle), math.sin(angle)]), given["friction"] * math.cos(angle)
        if primitive == "ramp_down":
            pull = GRAVITY * (math.sin(angle) - rub) * along * [1, -1]
        else:
            slowing = GRAVITY * (math.sin(angle) + rub)
            start[1], velocity, pull = given["height"] - 0.35, speed * along, -slowing * along
            time = time * min(1.0, speed / slowing)
    return start + velocity * time[:, None] + pull * time[:, None] ** 2 / 2


def draw(places: np.ndarray, height: int, width: int, radius: float) -> np.ndarray:
    """Return frames ``(F, height, width, 3)`` uint8 of a disc at some places, brightest in its middle."""
    x = (np.arange(width) + 0.5) / height
    y = 1 - (np.arange(height) + 0.5) / height
    across, down = ((x - places[:, :1]) / radius) ** 2, ((y - places[:, 1:]) / radius) ** 2
    light = np.exp(-(down[:, :, None] + across[:, None, :]) / 2)
    return (255 * light).round().astype(np.uint8)[..., None].repeat(3, -1)
