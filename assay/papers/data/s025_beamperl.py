"""S025: a small model learns beam statics from a solver's verdicts; how far does that carry, along which axis?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.records.checkpoints import checkpoints, place
from assay.registry import build
from assay.rewards.spec import reward_of
from assay.rollout.single_turn import SingleTurn
from assay.types import Ask, Task
from assay.verify.episodes import judge_groups
from assay.verify.kind import KindVerifier


@paper(
    "S025",
    "BeamPERL",
    arxiv="2603.04124",
    seams=["tasks", "verify", "reward", "evaluate"],
    essentials={
        "reactions of two supports, exact, symbolic in the load": "test_reactions_by_hand",
        "several wordings, of which some are kept for measuring": "test_wordings_are_kept_apart",
        "all reactions within 0.0001, in any order": "test_how_reactions_are_read",
        "binary rewards for accuracy and form": "test_two_binary_rewards",
        "axes out of distribution: more loads, moved supports, other words": "test_what_each_axis_changes",
        "every checkpoint is measured along each axis, the peak beside the last": "test_the_peak_beside_the_last",
        "GRPO on low-rank adapters, near the model it began with": "test_adapters_learn",
    },
    choices=(
        "beams are drawn from those of the authors, and not each shown twice; the words are ours, not a model's",
        "forces with names must have the right ones, and none may be there that was not asked for",
        "up to 3 loads and other words out of distribution; general mathematics is measured by tasks of one's own",
    ),
)
def beamperl(accuracy: float = 2.0, form: float = 1.0, kl_weight: float = 0.04) -> Method:
    """GRPO on the task source ``beams``, with a reward for all reactions being right and one for the form.

        R2 = sum P (x - x1) / (x2 - x1), R1 = sum P - R2
        r = (accuracy 1{both within tolerance} + form 1{<think>...</think>, one box}) / (accuracy + form)

    The loss is a mean over responses of means over tokens, and holds to the model that RL began with. Recipe
    ``beamperl`` has the paper's model with adapters; :func:`curves` measures its checkpoints.

    Args:
        accuracy, form: weights, not both 0.
        kl_weight: of the divergence.

    Raises:
        UsageError: a weight is negative, or both are 0.

    Source: BeamPERL (arXiv 2603.04124) and its authors' code (lamm-mit/BeamPERL) with TRL 0.15.2, whose loss and weight
    of the divergence it leaves as they are.
    """
    if min(accuracy, form) < 0 or accuracy + form == 0:
        raise UsageError(f"S025: weights {accuracy:g} and {form:g} must not be negative, nor both 0")
    total = accuracy + form
    terms = {"accuracy": "verdict", "format": {"name": "part", "part": "format", "missing": 0.0}}
    weights = {"accuracy": accuracy / total, "format": form / total}
    return Method(
        reward=reward_of({"name": "weighted", "terms": terms, "weights": weights}),
        credit=build("credit", "grpo"),
        objective=ClippedSurrogate(aggregation="sequence_mean", kl_weight=kl_weight),
    )


claims(
    Claim(
        paper="S025",
        text="Of ways to reckon that agree while supports are at the ends, verdicts on such beams teach any: what is "
        "gained carries over to more loads and not to supports that are moved.",
        setting="beams",
        evidence="construction",
        arms={axis: {"method": {"name": "S025"}, "axis": axis} for axis in ("loads", "supports")},
        better="loads",
        baseline="supports",
        measure="gain",
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)


@dataclass(frozen=True, slots=True)
class Curve:
    """Share of right answers among those that were judged, along one axis, by step."""

    shares: Mapping[int, float]

    @property
    def last(self) -> float:
        return self.shares[max(self.shares)]

    @property
    def peak(self) -> tuple[int, float]:
        """The step at which it is highest, the first of equal ones, and the share there."""
        step = max(self.shares, key=lambda s: (self.shares[s], -s))
        return step, self.shares[step]


def curves(
    engines: Mapping[int, Engine],
    tasks: Sequence[Task],
    samples: int = 4,
    sampling: Sampling | None = None,
    seed: int = 0,
) -> dict[str, Curve]:
    """Measure each checkpoint of a run along every axis, ``meta["axis"]``, that tasks have.

    Args:
        engines: by step; :func:`policies` are those of a run.
        tasks: of several axes, as ``beams`` makes them with ``axes``.
        samples: of each task.
        sampling: by default at temperature 1, 1024 tokens.
        seed: the same responses' seeds at every checkpoint.

    Raises:
        UsageError: nothing to measure.
    """
    if not engines or not tasks:
        raise UsageError("curves need a checkpoint and a task")
    rollout, judge = SingleTurn(sampling or Sampling(1024)), KindVerifier()
    found: dict[str, dict[int, float]] = {}
    for step, engine in engines.items():
        groups = rollout.collect([Ask(task, samples) for task in tasks], engine, np.random.default_rng(seed))
        told: dict[str, list[float]] = {}
        for group in judge_groups(judge, groups):
            scores = told.setdefault(str(group.task.meta.get("axis", "all")), [])
            scores.extend(v.score for v in group.verdicts if v.passed is not None)
        for axis, scores in told.items():
            if scores:
                found.setdefault(axis, {})[step] = float(np.mean(scores))
    return {axis: Curve(shares) for axis, shares in found.items()}


def policies(run: Path) -> dict[int, Path]:
    """Return the folders of a run's policies by RL step.

    Raises:
        UsageError: there is none.
    """
    found = {place(p)[1]: p / "policy" for p in checkpoints(run) if p.name.startswith("rl")}
    if not found:
        raise UsageError(f"{run} has no checkpoints of RL")
    return found
