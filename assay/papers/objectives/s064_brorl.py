"""S064: hundreds of responses to few prompts, so that little of the policy's mass is left unsampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce_pp import ReinforcePlusPlusBaseline
from assay.curriculum.base import Stream
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.select.dynamic import DynamicSampling
from assay.types import Ask, Group

Budget = Literal["keep", "grow"]


@paper(
    "S064",
    "BroRL",
    arxiv="2510.01180",
    seams=["curriculum", "rollout", "select", "objective", "evaluate"],
    essentials={
        "hundreds of responses to a prompt (512), advantages over all of them": (
            "test_the_gradient_of_512_is_that_of_32_passes_of_16"
        ),
        "decoupled normalisation: rewards less the prompt's mean, by mean and deviation of the whole batch": (
            "test_advantages_are_normalised_over_the_batch"
        ),
        "the budget of a step is kept on fewer prompts, or grows": "test_the_budget_of_a_step_is_kept",
        "the recipe it extends: dynamic sampling and a clip that is wider above": "test_the_recipe_that_it_extends",
        "mass balance: what sampled right, sampled wrong and unsampled actions do to the mass of right ones": (
            "test_it_is_the_change_of_the_right_mass_along_the_gradient"
        ),
        "the more is sampled, the less often an update lowers the mass of right answers": (
            "test_the_more_are_sampled_the_less_often_the_right_mass_shrinks"
        ),
        "how much of the policy's mass a step's responses cover": "test_the_mass_that_responses_cover",
    },
    choices=(
        "the learning rate is the run's; the paper's grows with the root of the responses in a batch",
        "the batch is kept by default; the paper takes a quarter of the prompts, 128, with 32 times the responses",
        "mean and deviation go over tokens, as in implementations of REINFORCE++; the paper writes them over responses",
        "no divergence from a reference and no resets of it, and no truncated importance weights (correction = "
        "token_truncate), which the recipe it extends has",
        "at most ten rounds of generation to replace groups of equal rewards",
    ),
)
def brorl(rollouts: int = 512, budget: Budget = "keep", rounds: int = 10, clip_high: float = 0.28) -> Method:
    """GRPO with hundreds of responses per prompt; the advantages of a prompt are computed over all of them.

        a_i = R_i - mean R over N = ``rollouts`` responses,   A_i = (a_i - mean a) / std a over the batch

    On one softmax of probabilities p, with rewards Rc of sampled right actions and Rw of sampled wrong ones, a step of
    size eta / N along the gradient of sum_{sampled} R_i p_i changes the mass Q+ of right actions by

        dQ+ = eta / N [ (Rc - SR) Q- A2 + (SR - Rw) Q+ B2 + SR (Q+ U2- - Q- U2+) ]

    with A2, B2 the sums of p^2 over sampled right and wrong actions, U2+, U2- over unsampled right and wrong ones, and
    SR = Rc sum_A p + Rw sum_B p. The first two terms are never negative; the third, which may be, vanishes as N covers
    the support. See :func:`mass_balance`; the metric ``broad/covered`` is the mass that a step's responses cover.
    Groups of equal rewards are replaced (dynamic sampling), advantages are normalised over the batch as in REINFORCE++,
    and the clip range is wider above, as in the recipe that it extends.

    Args:
        rollouts: N, responses per prompt.
        budget: ``keep`` the number of responses of a step, rollout.prompts x rollout.group, on as many prompts as that
            makes; ``grow`` it: rollout.prompts prompts with N responses each.
        rounds: of generation in a step, at most.
        clip_high: upper half-width of the clip range.

    Source: BroRL (arXiv 2510.01180), on the recipe of ProRLv2. Where the batch grows, it multiplies the learning rate
    by the root of that growth, at as many mini-batches; train.lr is for the run to say.
    """
    return Method(
        credit=ReinforcePlusPlusBaseline(),
        select=DynamicSampling(),
        objective=ClippedSurrogate(clip_high=clip_high),
        curriculum={"name": "broad", "rollouts": rollouts, "budget": budget},
        rollout={"name": "broad", "inner": {"name": "dynamic", "rounds": rounds}},
    )


@part("curriculum", "broad")
@dataclass(slots=True)
class Broad:
    """Every training task in the order of the stream, with many responses each, see :func:`brorl`.

    Args:
        stream, prompts, group: supplied by the run.
        rollouts: responses per task; with ``keep`` about that many, at most prompts x group.
        budget: ``keep`` or ``grow``.

    Raises:
        UsageError: ``rollouts`` below 1.
    """

    stream: Stream
    prompts: int
    group: int
    rollouts: int = 512
    budget: Budget = "keep"

    def __post_init__(self) -> None:
        if self.rollouts < 1:
            raise UsageError(f"curriculum 'broad': rollouts = {self.rollouts} asks nothing; use 1 or more")

    def next(self, step: int) -> list[Ask]:
        if self.budget == "grow":
            return [Ask(task, self.rollouts) for task in self.stream.next(self.prompts)]
        total = self.prompts * self.group
        count = max(1, total // self.rollouts)
        # What does not divide evenly is spread, so that no response of the budget is lost.
        return [Ask(task, total // count + (i < total % count)) for i, task in enumerate(self.stream.next(count))]

    def observe(self, groups: Sequence[Group]) -> None:
        """Nothing is learned from the groups."""

    def state_dict(self) -> dict[str, Any]:
        """Empty: the trainer keeps the stream's position."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""


@part("rollout", "broad")
@dataclass(slots=True)
class Covered:
    """Another rollout, and how much of the policy's mass its responses cover.

    Args:
        sampling, judge, more, curriculum: supplied by the run.
        inner: the rollout.
    """

    sampling: Any
    judge: Any = None
    more: Any = None
    curriculum: Any = None
    inner: Any = "dynamic"
    _inner: Rollout = field(init=False)
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self._inner.collect(asks, engine, rng)
        found = [mass for mass in map(covered_mass, groups) if mass is not None]
        self._metrics = {"broad/covered": float(np.mean(found))} if found else {}
        return groups

    def metrics(self) -> dict[str, float]:
        """``broad/covered``: mean over prompts of :func:`covered_mass`; and the metrics of the inner rollout."""
        return {**getattr(self._inner, "metrics", dict)(), **self._metrics}


def covered_mass(group: Group) -> float | None:
    """Return the probability, at the temperature of sampling, of drawing one of the group's responses once more.

    It is the sum over distinct responses of exp(sum of log-probabilities); ``None`` where these are not known.
    """
    mass: dict[bytes, float] = {}
    for episode in group.episodes:
        if episode.logprobs is None or np.isnan(episode.logprobs).any():
            return None
        mass[episode.prompt.tobytes() + b"|" + episode.tokens.tobytes()] = float(np.exp(episode.logprobs.sum()))
    return sum(mass.values())


@dataclass(frozen=True, slots=True)
class MassBalance:
    """What moves the mass of right actions, per eta / N: the three terms of dQ+ and their sum.

    ``right`` comes of the sampled right actions, ``wrong`` of the sampled wrong ones (neither is negative where
    Rc >= 0 >= Rw), ``unsampled`` of all others.
    """

    right: float
    wrong: float
    unsampled: float

    @property
    def total(self) -> float:
        return self.right + self.wrong + self.unsampled


def mass_balance(
    p: Float[Tensor, "K"],
    correct: Bool[Tensor, "K"],
    sampled: Bool[Tensor, "K"],
    reward: float = 1.0,
    penalty: float = -1.0,
) -> MassBalance:
    """Return the terms of dQ+ / (eta / N) in :func:`brorl` for one softmax.

    Args:
        p: probabilities, of sum 1.
        correct, sampled: which actions are right, which were drawn at least once.
        reward, penalty: Rc >= 0 and Rw <= 0.

    Raises:
        UsageError: rewards of the wrong sign.
    """
    if reward < 0 or penalty > 0:
        raise UsageError(f"the mass balance needs reward >= 0 >= penalty, not {reward:g} and {penalty:g}")

    def total(x: Float[Tensor, "K"], where: Bool[Tensor, "K"]) -> float:
        return float(torch.where(where, x, 0).sum())

    right, wrong = total(p, correct), total(p, ~correct)
    net = reward * total(p, correct & sampled) + penalty * total(p, ~correct & sampled)
    square = p * p
    return MassBalance(
        (reward - net) * wrong * total(square, correct & sampled),
        (net - penalty) * right * total(square, ~correct & sampled),
        net * (right * total(square, ~correct & ~sampled) - wrong * total(square, correct & ~sampled)),
    )


claims(
    Claim(
        paper="S064",
        text="At equal rollouts in every step, hundreds of responses to one prompt raise the mass of right answers "
        "sooner than sixteen to each of many.",
        setting="tree",
        arms={
            "many prompts": {
                "name": "S064",
                "curriculum": "uniform",
                "rollout": {"inner": {"name": "dynamic", "rounds": 1}},
            },
            "brorl": {"name": "S064", "rollout": {"inner": {"name": "dynamic", "rounds": 1}}},
        },
        better="brorl",
        baseline="many prompts",
        measure="area",
        options={
            "tasks": 16,
            "depth": 1,
            "branching": 64,
            "right": 8,
            "spread": 2.0,
            "prompts": 32,
            "group": 16,
            "steps": 100,
        },
        sweep={"lr": (3.0, 10.0, 30.0, 100.0)},
    ),
    Claim(
        paper="S064",
        name="mechanism",
        text="An update from 512 responses to each prompt less often lowers the mass of its right answers "
        "than one from 16 (not at equal rollouts: the claim is about one update).",
        setting="tree",
        unequal="the claim is about one update with more or fewer responses",
        arms={
            "16": {
                "name": "S064",
                "curriculum": {"rollouts": 16},
                "rollout": {"inner": {"name": "dynamic", "rounds": 1}},
                "setting": {"group": 16},
            },
            "512": {
                "name": "S064",
                "rollout": {"inner": {"name": "dynamic", "rounds": 1}},
                "setting": {"group": 512},
            },
        },
        better="512",
        baseline="16",
        measure="kept",
        options={"tasks": 32, "right": 32, "prompts": 32, "steps": 1},
        each={"lr": (30.0, 100.0, 300.0)},
    ),
)
