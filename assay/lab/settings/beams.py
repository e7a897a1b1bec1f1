"""Beams worked out load by load, by procedures of which some agree while the supports are at the ends."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.base import Request
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.bandits.unseen import Shape
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.tasks.procedural.beams import Axis, Beams
from assay.types import Episode, Prompt, Task
from assay.verify.kind import KindVerifier

Procedure = Callable[[Fraction, Fraction, Fraction], Fraction]
PROCEDURES: Mapping[str, Procedure] = {
    "moments about A": lambda x, a, b: (x - a) / (b - a),
    "share of the length": lambda x, a, b: x,
    "share of B's place": lambda x, a, b: x / b,
    "from A, of the length": lambda x, a, b: x - a,
    "to the wrong support": lambda x, a, b: (b - x) / (b - a),
    "halves": lambda x, a, b: Fraction(1, 2),
    "to the nearer support": lambda x, a, b: Fraction(abs(x - b) < abs(x - a)),
}
"""What share of a load at x support B carries; places are shares of the length. The first is right for all beams, the
next three where the supports are at the ends."""
_PLACE = re.compile(r"x = (L|[\d.]+L|0)")
_LOAD = re.compile(rf"a load (\d*)P at {_PLACE.pattern}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy reckons each load by a procedure out of seven, see :data:`PROCEDURES`, and answers in the form or not.

    The logit of a procedure is w_f + n, of which w serves all beams and loads, and n is normal for each; the logit of
    the form is one number for all. RL asks beams of the axis ``trained`` alone, written and judged as the paper's row
    does. What the policy is like on other axes follows from w: that one way of reckoning serves all of them is given.

    An arm is a table with ``method`` and ``axis``, the one of which ``gain`` is told.

    Args:
        beams: asked, and of each axis as many to measure on.
        spread: standard deviation of w and of n at the start.
        formed: logit of the form at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    beams: int = 24
    spread: float = 0.5
    formed: float = -1.0
    steps: int = 150
    prompts: int = 8
    group: int = 8
    lr: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact chances of a right answer, means over beams that were not asked.

        ``trained``, ``loads``, ``supports``, by axis; with ``/start`` before training, with ``/peak`` the largest in
        its course; ``gain``: on the arm's axis; ``moments``: chance of the first procedure for a beam without n;
        ``form``; ``rollouts``.
        """
        axes: tuple[Axis, ...] = ("trained", "loads", "supports")
        asked = [Beams(seed, longest=1)[i] for i in range(self.beams)]
        others = {axis: [Beams(seed + 10_000, (axis,), longest=1)[i] for i in range(self.beams)] for axis in axes}
        rng = np.random.default_rng([seed, 7])

        def noise(tasks: Sequence[Task]) -> list[Tensor]:
            sizes = [(len(read(task)[2]), len(PROCEDURES)) for task in tasks]
            return [self.spread * torch.from_numpy(rng.standard_normal(size)) for size in sizes]

        weights = torch.from_numpy(jitter(self.spread, seed, len(PROCEDURES)))
        policy = Reckoning(asked, weights, self.formed, noise(asked))
        drawn = {axis: noise(tasks) for axis, tasks in others.items()}

        def chances() -> dict[str, float]:
            return {axis: policy.right(tasks, drawn[axis]) for axis, tasks in others.items()}

        start, curve = chances(), list[dict[str, float]]()
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        engine = Writing(policy)
        train(policy, asked, KindVerifier(), arm["method"], training, seed, lambda *_: curve.append(chances()), engine)
        found = chances()
        return {
            **found,
            "gain": found[arm["axis"]] - start[arm["axis"]],
            **{f"{axis}/start": start[axis] for axis in axes},
            **{f"{axis}/peak": max(row[axis] for row in curve) for axis in axes},
            "moments": float(policy.weights.detach().softmax(-1)[0]),
            "form": float(policy.form.detach().sigmoid()),
            "rollouts": engine.sampled,
        }


def read(task: Task) -> tuple[Fraction, Fraction, list[tuple[int, Fraction]]]:
    """Return the places of A and B, and the loads with theirs, as a beam's text has them."""
    told = task.question.partition(" Find the")[0]
    loads = [(int(w or 1), _share(x)) for w, x in _LOAD.findall(told)]
    a, b = map(_share, _PLACE.findall(_LOAD.sub("", told)))
    return a, b, loads


def _share(place: str) -> Fraction:
    return Fraction(place.rstrip("L") or 1) if place.endswith("L") else Fraction(place)


def reckoned(task: Task, procedures: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return the reactions at A and B that procedures, one for each load, come to."""
    a, b, loads = read(task)
    ways = list(PROCEDURES.values())
    right = sum((w * ways[f](x, a, b) for f, (w, x) in zip(procedures, loads, strict=True)), Fraction(0))
    return sum((Fraction(w) for w, _ in loads), Fraction(0)) - right, right


def written(task: Task, formed: bool, procedures: Sequence[int]) -> str:
    """Return the response of a policy that reckons so; out of the form it does not think before the box."""
    left, right = reckoned(task, procedures)
    names = list(PROCEDURES)
    thought = f"<think>{', '.join(names[f] for f in procedures)}</think>" if formed else ""
    return f"{thought}\\boxed{{R_A = {float(left):.4f}P, R_B = {float(right):.4f}P}}"


@functools.cache
def _table(text: str, reference: str) -> np.ndarray:
    """Return which procedures, one for each load, come to a right answer, by the verifier: ``(7,) * loads``."""
    task, judge = Task("beam", text, json.loads(reference), "reactions"), KindVerifier()
    count = len(read(task)[2])
    rows = product(range(len(PROCEDURES)), repeat=count)
    found = [judge(task, written(task, True, row)).passed is True for row in rows]
    return np.reshape(found, (len(PROCEDURES),) * count)


class Reckoning(TabularPolicy):
    """The policy of :class:`Setting`: for each beam whether the answer has the form, then a procedure for each load.

    Args:
        asked: beams.
        weights: w at first.
        formed: logit of the form at first.
        noise: n of each load of each beam, ``(loads, 7)``.
    """

    def __init__(self, asked: Sequence[Task], weights: Tensor, formed: float, noise: Sequence[Tensor]):
        self.asked, self.noise = asked, noise
        self.weights = torch.nn.Parameter(weights.clone())
        self.form = torch.nn.Parameter(torch.tensor(formed, dtype=weights.dtype))
        self.module = torch.nn.ParameterDict({"weights": self.weights, "form": self.form})

        def under(loads: int) -> Any:
            return [under(loads - 1)] * len(PROCEDURES) if loads else 0.0

        self.tree = Tree.of([[under(len(n))] * 2 for n in noise])
        forms, loads, told, node = list[int](), list[int](), list[Tensor](), 1
        # A tree's nodes are numbered depth first, from the root.
        for n in noise:
            forms.append(node)
            places = 2 * [n[len(path)] for path in Shape(len(PROCEDURES), len(n)).prefixes]
            loads += range(node + 1, node + 1 + len(places))
            told += places
            node += 1 + len(places)
        self.forms, self.loads, self.told = torch.tensor(forms), torch.tensor(loads), torch.stack(told)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = self.weights.new_zeros(self.tree.children.shape)
        table = table.index_put((self.forms, torch.tensor(1)), self.form)
        columns = torch.arange(len(PROCEDURES))
        return table.index_put((self.loads[:, None], columns), self.weights + self.told)

    def right(self, tasks: Sequence[Task], noise: Sequence[Tensor]) -> float:
        """Return the mean chance of a right answer to beams with some n."""
        found = []
        for task, n in zip(tasks, noise, strict=True):
            chance = _table(task.question, json.dumps(task.reference)).astype(float)
            for p in (self.weights.detach() + n).softmax(-1).numpy():
                chance = np.tensordot(p, chance, axes=1)
            found.append(float(chance))
        return float(np.mean(found))

    def twin(self) -> Reckoning:
        return deepcopy(self)


class Writing(Counting):
    """An engine whose prompts are beams in words and whose responses are written out."""

    def encode(self, prompt: Prompt) -> np.ndarray:
        policy: Any = self.policy
        known = {task.question: i for i, task in enumerate(policy.asked)}
        return np.array([known[str(prompt)]], dtype=np.int64) if str(prompt) in known else super().encode(prompt)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        policy: Any = self.policy
        return [
            [
                replace(e, text=written(policy.asked[int(e.prompt[0])], bool(e.tokens[0]), e.tokens[1:].tolist()))
                for e in some
            ]
            for some in super().generate(requests)
        ]
