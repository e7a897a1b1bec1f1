"""What a model is worth for planning: the return, in the true world, of a planner that believes the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.verify.behaviour.drive import key
from assay.verify.behaviour.model import Model
from assay.verify.behaviour.truth import Truth

NEAR = 1e-9


def normalised_return(model: float, chance: float, true: float) -> float | None:
    """Return (J_model - J_random) / (J_true - J_random); ``None`` where planning with the truth gains nothing.

    Args:
        model, chance, true: returns in the true world of the planner with the model, of uniformly random actions, and
            of the planner with the truth.

    Source: the code world models benchmark (arXiv 2405.15383), section 4, by which Agent2World is measured.
    """
    return None if true - chance <= NEAR else (model - chance) / (true - chance)


def planner_return(truth: Truth, model: Model) -> float:
    """Return J of the planner that believes ``model``, mean over the starts.

    It follows the plan that is best by the model, and plans anew from the true state where that is another than it
    expected; an episode has ``truth.horizon`` steps.

    Raises:
        Abstain: the sandbox failed.
    """
    totals = [0.0] * len(truth.starts)
    going = {i: (state, truth.horizon) for i, state in enumerate(truth.starts)}
    while going:
        asked = [[state, truth.actions[i], left, truth.effort] for i, (state, left) in going.items()]
        believed = [_episode(one) for one in model.drive("planned", asked)]
        plans = [[str(s[1]) for s in steps][:left] for steps, (_, left) in zip(believed, going.values(), strict=True)]
        true = truth.driven("follow", [[s, p] for (s, _), p in zip(going.values(), plans, strict=True)])
        following = {}
        for (i, (_, left)), expected, took in zip(going.items(), believed, true, strict=True):
            for taken, (step, after) in enumerate(zip(took, (one[2] for one in expected), strict=False), 1):
                totals[i] += step[3]
                if step[4]:
                    break
                if key(step[2]) != key(after):
                    following[i] = step[2], left - taken
                    break
        going = {i: (state, left) for i, (state, left) in following.items() if left > 0}
    return float(np.mean(totals))


def _episode(made: Any) -> list[list[Any]]:
    """Read what a planner says it expects; of one that was tampered with, what can be read."""
    if not isinstance(made, list | tuple):
        return []
    return [list(step) for step in made if isinstance(step, list | tuple) and len(step) == 5]


def random_return(truth: Truth) -> float:
    """Return J of uniformly random actions, mean over the walks of the world's own episodes."""
    return float(np.mean([_sum(steps) for _, steps in truth.episodes[len(truth.starts) :]]))


def true_return(truth: Truth) -> float:
    """Return J of the planner with the truth, mean over the starts."""
    return float(np.mean([_sum(steps) for _, steps in truth.episodes[: len(truth.starts)]]))


def winnable(truth: Truth, model: Model) -> float:
    """Return for how many of the starts the true plan earns in the model what it earns in the world.

    Raises:
        Abstain: the sandbox failed.
    """
    plans = [steps for _, steps in truth.episodes[: len(truth.starts)]]
    alike = [True] * len(plans)
    now, earned = list(truth.starts), [0.0] * len(plans)
    for turn in range(truth.horizon):
        going = [i for i, steps in enumerate(plans) if alike[i] and turn < len(steps)]
        # Its own steps are asked for, one by one: what plays in it could be replaced by it.
        replies = model.steps([(now[i], plans[i][turn][1]) for i in going])
        for i, reply in zip(going, replies, strict=True):
            now[i], earned[i] = reply.after, earned[i] + reply.reward
            alike[i] = not reply.problem and reply.done == plans[i][turn][4]
    return float(np.mean([ok and abs(r - _sum(s)) <= NEAR for ok, r, s in zip(alike, earned, plans, strict=True)]))


def _sum(steps: Sequence[Sequence[Any]]) -> float:
    return float(sum(step[3] for step in steps))
