"""How near a video's motion is to a simulated one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from assay.errors import UsageError
from assay.ops.motion import brightness, masses, positions
from assay.policies.flow.samples import video
from assay.registry import part
from assay.types import NOTE, Task, Verdict

VISIBLE = 0.25
"""Light from which on a pixel is the object's."""
LOST = 1.0
"""Chamfer distance, in heights, to an object that is not there."""


@part("verify", "motion")
@dataclass(frozen=True, slots=True)
class Motion:
    """Scores exp(-d / ``scale``), d the mean distance of a bright object from where it should be, frame by frame.

    The reference has the real ``video`` and its ``positions`` ``(F, 2)``, in heights of a frame, y upwards. Parts:
    ``iou`` of the object's pixels, and on it, as notes, ``pixel L2``; ``chamfer`` distance of these pixels;
    ``velocity RMSE`` and ``acceleration RMSE``, per frame and frame^2; ``motion range``, what the object moves in all
    as a share of what it should, which shows whether little error is little motion; ``light``, that of the last frame
    as a share of the first one's.

    Args:
        scale: distance at which the score is exp(-1).
        within: the video passes up to this distance.

    Raises:
        UsageError: ``scale`` or ``within`` is not above 0.

    Source: NewtonRewards (arXiv 2512.00425) for the measures.
    """

    scale: float = 0.1
    within: float = 0.05

    def __post_init__(self) -> None:
        if not (0 < self.scale < math.inf and 0 < self.within < math.inf):
            raise UsageError("verifier 'motion': scale and within must be numbers above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            real = video(task.reference["video"])
            wanted = np.array(task.reference["positions"], dtype=np.float64)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            return Verdict.abstain(f"the task's reference has no video with positions: {error}", "tests")
        if real is None or wanted.shape != (len(real), 2) or len(real) < 3 or not np.isfinite(wanted).all():
            return Verdict.abstain(
                "the task's reference has no video of at least 3 frames, or not a position for each", "tests"
            )
        drawn = video(response)
        if drawn is None or drawn.shape != real.shape:
            return Verdict.wrong(f"not a video of {' x '.join(map(str, real.shape[:3]))}")
        light, truth = (brightness(torch.from_numpy(v)[None])[0].numpy() for v in (drawn, real))
        found = positions(torch.from_numpy(light)[None])[0].numpy()
        away = float(np.linalg.norm(found - wanted, axis=-1).mean())
        whole = masses(torch.from_numpy(light)[None])[0].numpy()
        notes = {
            "pixel L2": float(np.sqrt(((light - truth) ** 2).mean())),
            "chamfer": float(np.mean([chamfer(a, b) for a, b in zip(light, truth, strict=True)])),
            "velocity RMSE": _rmse(np.diff(found, axis=0) - np.diff(wanted, axis=0)),
            "acceleration RMSE": _rmse(np.diff(found, 2, axis=0) - np.diff(wanted, 2, axis=0)),
            "motion range": _moved(found) / max(_moved(wanted), 1e-6),
            "light": float(whole[-1] / max(whole[0], 1e-6)),
        }
        iou = float(np.mean([overlap(a, b) for a, b in zip(light, truth, strict=True)]))
        parts = {"iou": iou, **{f"iou{NOTE}{name}": value for name, value in notes.items()}}
        return Verdict(math.exp(-away / self.scale), away <= self.within, parts, f"{away:.3g} away")


def overlap(light: np.ndarray, truth: np.ndarray) -> float:
    """Return the intersection over union of an object's pixels in two frames ``(H, W)``; 1 where neither has any."""
    a, b = light >= VISIBLE, truth >= VISIBLE
    return float((a & b).sum() / (a | b).sum()) if (a | b).any() else 1.0


def chamfer(light: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean distance, in heights, from each pixel of an object to the nearest of the other one, both ways.

    It is 0 where neither frame has any, and ``LOST`` where one has none.
    """
    a, b = (np.argwhere(frame >= VISIBLE) / len(frame) for frame in (light, truth))
    if not len(a) or not len(b):
        return 0.0 if len(a) == len(b) else LOST
    apart = np.linalg.norm(a[:, None] - b[None], axis=-1)
    return float((apart.min(0).mean() + apart.min(1).mean()) / 2)


def _rmse(errors: np.ndarray) -> float:
    return float(np.sqrt((errors**2).sum(-1).mean()))


def _moved(places: np.ndarray) -> float:
    return float(np.linalg.norm(np.ptp(places, axis=0)))
