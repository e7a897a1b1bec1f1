"""Judges world models by what they do: hidden steps, and a planner that believes them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.behaviour.components import compared, micro
from assay.verify.behaviour.model import Model, agrees, domain_of
from assay.verify.behaviour.returns import (
    NEAR,
    normalised_return,
    planner_return,
    random_return,
    true_return,
    winnable,
)
from assay.verify.behaviour.static import fault
from assay.verify.behaviour.truth import Truth, truth_of
from assay.verify.code.response import fenced
from assay.verify.code.results import Abstain


@functools.lru_cache(maxsize=4096)
def hidden_share(truth: Truth, source: str) -> float:
    """Return the share of the hidden tests that a model's text passes, 0 where static validation fails.

    Raises:
        Abstain: the sandbox failed.
    """
    if fault(source, truth.language, truth.problems):
        return 0.0
    return float(np.mean(_agreement(truth, truth.model(source)).all(-1)))


def _agreement(truth: Truth, model: Model) -> np.ndarray:
    """Return for each hidden test whether state, reward and end agree, ``(tests, 3)`` bool."""
    got = model.steps([(case.state, case.action) for case in truth.hidden])
    return np.array([agrees(one, case.right) for one, case in zip(got, truth.hidden, strict=True)])


@functools.lru_cache(maxsize=4096)
def judged_model(truth: Truth, source: str, partial: bool = False) -> Verdict:
    """Return the verdict on a model's text, see :class:`Behaviour`; it is remembered.

    Raises:
        Abstain: the sandbox failed.
    """
    if why := fault(source, truth.language, truth.problems):
        return Verdict(0.0, False, {"static": 0.0}, why)
    model = truth.model(source)
    agreement = _agreement(truth, model)
    shares = dict(zip(("state", "reward", "done"), agreement.mean(0).tolist(), strict=True))
    accuracy = float(agreement.all(-1).mean())
    worth = normalised_return(planner_return(truth, model), random_return(truth), true_return(truth))
    won = winnable(truth, model)
    parts: dict[str, float | None] = {"static": 1.0, **shares, "accuracy": accuracy, "winnable": won}
    parts["return"] = None if worth is None else min(max(worth, 0.0), 1.0)
    if truth.language == "pddl":
        parts["components"] = micro(compared(domain_of(source), domain_of(truth.source)).values()).f1
    # Nothing of a hidden test is told.
    wrong = [
        f"{int((~agreement.all(-1)).sum())} of {len(agreement)} hidden steps are wrong" if accuracy < 1 else "",
        f"the normalised return is {worth:.3g}" if worth is not None and worth < 1 - NEAR else "",
        "a plan that wins does not win in the model" if won < 1 else "",
    ]
    said = "; ".join(filter(None, wrong))
    if said:
        return Verdict(accuracy if partial else 0.0, False, parts, said)
    return Verdict(1.0, True, parts)


@part("verify", "behaviour")
@dataclass(frozen=True, slots=True)
class Behaviour:
    """Judges a world model, the last fenced block of the response or else all of it, by how it behaves.

    It is right if it passes static validation, agrees with the true world on all hidden steps (state, reward and end),
    a planner that believes it earns in the true world what one earns that knows the truth, and the true plan wins in
    the model. Parts: ``static``; ``state``, ``reward``, ``done``, shares of hidden steps; ``accuracy``, of those right
    in all three; ``return``, normalised, clipped to [0, 1]; ``winnable``, share of starts; of a PDDL domain
    ``components``, micro F1, which decides nothing: a domain may be written otherwise and do the same.

    ``task.reference`` is a mapping: ``language`` (``python``: ``step(state, action)`` returns ``[state, reward,
    done]``; ``pddl``: a domain), ``source`` of the true world, ``starts`` or, of a domain, ``problems``, ``actions``
    for each, ``horizon``, ``hidden`` (how many tests), ``seed``. What the model's program is given are states and
    actions, and what it returns is compared outside of the sandbox.

    Args:
        partial: score the accuracy of what is not right; else 0.

    Source: Agent2World (arXiv 2512.22336); transition accuracy and return of arXiv 2405.15383.
    """

    partial: bool = False

    def __call__(self, task: Task, response: str) -> Verdict:
        blocks: list[Any] = fenced(response)
        try:
            return judged_model(truth_of(task.reference), blocks[-1].text if blocks else response, self.partial)
        except Abstain as error:
            return Verdict.abstain(error.reason, error.fault)
