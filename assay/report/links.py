"""The links of a run: does its reward go where its held-out tasks go?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from assay.diagnose.links import Links, links
from assay.report.run import Run, as_float


@dataclass(frozen=True, slots=True)
class RunLinks:
    """What :func:`assay.diagnose.links.links` says of a run.

    Attributes:
        found: of windows that end at ``steps``.
        steps: of the evaluations.
        judged, reward: means over each window's steps, of the correlation of reward and verdict over a step's samples,
            and of the reward.
        evaluation: held-out pass@1.
    """

    found: Links
    steps: list[int]
    judged: list[float]
    reward: list[float]
    evaluation: list[float]


def run_links(run: Run, falls: int = 2) -> RunLinks | None:
    """Return the links of a run, the alarm beyond the 95% intervals of its evaluations; ``None`` where fewer than
    three of them end a window with a reward."""
    ends = {e.step: i for e in run.evaluations if e.step > 0 and (i := e.pass_interval(1)) is not None}
    named = ("verdict_correlation", "reward/mean")
    rows = [(row["step"], *(as_float(row.get(name)) for name in named)) for row in run.metrics["rl"]]
    steps, before = list[int](), 0
    judged, reward = list[float](), list[float]()
    for end in sorted(ends):
        window = np.array([values for step, *values in rows if before < step <= end], dtype=float).reshape(-1, 2)
        before = end
        if np.isfinite(window[:, 1]).any():
            steps.append(end)
            judged.append(float(np.nanmean(window[:, 0])) if np.isfinite(window[:, 0]).any() else math.nan)
            reward.append(float(np.nanmean(window[:, 1])))
    if len(steps) < 3:
        return None
    wanted = [ends[step].value for step in steps]
    # Of two evaluations of the same tasks the difference is known at least as well as if they were of different ones.
    least = math.sqrt(2) * max((ends[step].high - ends[step].low) / 2 for step in steps)
    return RunLinks(links(judged, reward, wanted, falls, least), steps, judged, reward, wanted)
