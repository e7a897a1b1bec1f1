"""A ladder of tasks, each a little harder than the one before, which a policy proposes to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.programs.language import LANGUAGES, Mode, Ran, Triplet


@dataclass(frozen=True, slots=True)
class Setting:
    """The policy names a rung of a ladder, and solves rungs; what is learned of one carries over to those beside it.

    Of K rungs the first is solved nearly always at the start and the last hardly ever: rung k with probability
    sigmoid(easiest - (easiest - hardest) k / (K - 1) + sum_j exp(-|k - j| / reach) u_j). Learned are u and the logits
    by which a rung is proposed. Prompt ``0`` asks for a rung, ``1/k`` for its solution, 1 if right: the language
    ``ladder``, in which a program is a rung.

    Args:
        rungs: K.
        easiest, hardest: logits of being right, at the start.
        reach: how far learning carries, in rungs.
        spread: standard deviation of the logits of proposing at the start.
        steps, prompts, group, lr, optimizer: of training; ``prompts`` proposals and as many solutions a step.
    """

    rungs: int = 16
    easiest: float = 3.0
    hardest: float = -12.0
    reach: float = 1.0
    spread: float = 0.1
    steps: int = 80
    prompts: int = 16
    group: int = 8
    lr: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures.

        ``solved``: mean over rungs of the probability to be right; ``learnable``: mean over the run's steps of the
        expected share of proposals that some of ``group`` answers get right and some wrong; ``trailing``: mean over
        the run of how far, in rungs, the mean proposal lies from the rung that is right half of the time; each with
        ``/start``, where it is one of a policy; ``rollouts``, those that tell how hard a proposal is among them, and
        ``learned``, without them.
        """
        policy = self.policy(seed)
        before, engine = measure(policy, self.group), Counting(policy)
        seen: list[dict[str, float]] = []
        learned = 0

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            nonlocal learned
            learned += len(batch)
            seen.append(measure(policy, self.group))

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        tasks = [Task("unused", "0", kind="tabular")]
        train(policy, tasks, TabularVerifier(policy.tree), arm, training, seed, watch, engine)
        during = {name: float(np.mean([row[name] for row in seen])) for name in ("learnable", "trailing")}
        started = {f"{name}/start": value for name, value in before.items()}
        solved = measure(policy, self.group)["solved"]
        return {"solved": solved, **during, **started, "rollouts": engine.sampled, "learned": learned}

    def policy(self, seed: int) -> Climbing:
        """Return the policy at the start."""
        levels = torch.linspace(self.easiest, self.hardest, self.rungs, dtype=torch.float64)
        return Climbing(levels, torch.from_numpy(jitter(self.spread, seed, self.rungs)), self.reach)


class Climbing(TabularPolicy):
    """The policy of :class:`Setting`.

    Args:
        levels: ``(K,)`` logits of being right at the start.
        proposing: ``(K,)`` logits of naming a rung at the start.
        reach: see there.
    """

    def __init__(self, levels: Tensor, proposing: Tensor, reach: float):
        count = len(levels)
        self.tree = Tree.of([[0.0] * count, [[0.0, 1.0]] * count])
        self.levels = levels
        apart = (torch.arange(count)[:, None] - torch.arange(count)).abs().to(levels.dtype)
        self.kernel = torch.exp(-apart / reach)
        self.proposing = torch.nn.Parameter(proposing.clone())
        self.skill = torch.nn.Parameter(torch.zeros_like(levels))
        self.module = torch.nn.ParameterDict({"proposing": self.proposing, "skill": self.skill})
        asked = self.tree.node((0,))
        assert asked is not None, "the tree has what is asked"
        self.asked = asked
        self.rungs = torch.tensor([self.tree.node((1, k)) for k in range(count)])

    @property
    def right(self) -> Tensor:
        """Logits ``(K,)`` of being right."""
        return self.levels + self.kernel @ self.skill

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = self.proposing.new_zeros(self.tree.children.shape)
        asked = torch.full((len(self.proposing),), self.asked)
        table = table.index_put((asked, torch.arange(len(asked))), self.proposing)
        return table.index_put((self.rungs, torch.ones_like(self.rungs)), self.right)

    def twin(self) -> Climbing:
        return deepcopy(self)


@torch.no_grad()
def measure(policy: Climbing, group: int) -> dict[str, float]:
    """Return what :meth:`Setting.run` does, of a policy as it stands."""
    p, proposed = policy.right.sigmoid(), policy.proposing.softmax(0)
    place = torch.arange(len(p), dtype=p.dtype)
    learnable = (proposed * (1 - p**group - (1 - p) ** group)).sum()
    trailing = ((proposed * place).sum() - p.sum() + 0.5).abs()
    return {"solved": float(p.mean()), "learnable": float(learnable), "trailing": float(trailing)}


class Ladder:
    """The language ``ladder``: a program is the number of a rung, what goes in is nothing and what comes out is 1."""

    identity = Triplet("0", ("",), ("1",))

    def propose(self, mode: Mode, shown: Sequence[Triplet], program: str, inputs: int) -> str:
        return "0"

    def proposed(self, mode: Mode, response: str) -> Triplet | None:
        return Triplet(response, ("",), ())

    def refusal(self, program: str) -> str:
        return ""

    def solve(self, mode: Mode, triplet: Triplet, seen: int) -> str:
        return f"1/{triplet.program}"

    def answer(self, mode: Mode, response: str) -> str | None:
        return response

    def run(self, program: str, inputs: Sequence[str]) -> list[Ran]:
        return [Ran("1") for _ in inputs]

    def equal(self, output: str, other: str) -> bool:
        return output == other


LANGUAGES["ladder"] = Ladder
