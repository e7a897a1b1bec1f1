"""S214: what reinforcement learning changed in a small model, added to the logits of a large one as it decodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine, Sampling
from assay.engines.shifted import shifted_engine
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.sampling.sample import Sample
from assay.method import Method
from assay.registry import part
from assay.rollout.single_turn import SingleTurn
from assay.signals.scorer import loaded
from assay.types import Ask, Group, Task


@paper(
    "S214",
    "RAST",
    arxiv="2506.15710",
    seams=["inference", "rollout"],
    essentials={
        "the small models' difference, times lambda, on the large one's logits": "test_the_worked_example",
        "all three read what was sampled from the sum": "test_decoding_is_that_of_the_sum_of_the_models_own_logits",
        "models of different sizes, each with keys and values of its own": (
            "test_decoding_is_that_of_the_sum_of_the_models_own_logits"
        ),
        "tokens that the small models lack are not shifted": "test_a_smaller_vocabulary_is_padded",
        "equal small models change nothing": "test_equal_small_models_change_nothing",
        "episodes carry the log-probability that they were sampled with": (
            "test_decoding_is_that_of_the_sum_of_the_models_own_logits"
        ),
        "how alike shifts are across sizes, along the large model's responses": "test_how_alike_shifts_are",
        "path coverage rate: how many tokens of the trained large model the untrained one likes best": (
            "test_how_alike_shifts_are"
        ),
        "it answers in an evaluation and samples in a run": "test_it_evaluates_and_trains",
    },
    choices=(
        "lambda 1",
        "models of one vocabulary are told by the numbers of their tokens",
        "a token that the small models lack keeps its logit; the authors' code never samples it",
        "shifts are compared over the 64 likeliest tokens, less their mean; the authors' script compares plain logits "
        "of the whole vocabulary",
    ),
)
def rast(tuned: Any, base: Any, weight: float = 1.0) -> Method:
    """Responses are sampled from the large model's logits shifted as training shifted a small one's.

        p(. | y_<t) = softmax([z(y_<t) + lambda (z_tuned(y_<t) - z_base(y_<t))] / temperature)

    In an evaluation that is strategy ``rast``. In a run it is how responses are made: they carry log p, so that a ratio
    of policies, or truncated importance weights, correct for it. Whether training changes models of both sizes alike is
    what :func:`assay.diagnose.shift_alignment.shift_alignment` measures.

    Args:
        tuned, base: the small model after and before reinforcement learning: a hub id, a folder, a ``[model]`` table or
            a policy.
        weight: lambda, in 0.3 to 1.5 as a rule.

    The authors decode at temperature 1 and top-p .95.

    Source: RAST (arXiv 2506.15710), equation 3, and its authors' code.
    """
    return Method(rollout={"name": "shifted", "tuned": tuned, "base": base, "weight": weight})


@dataclass(slots=True)
class Shift:
    """The two small models and the weight of their difference.

    Args:
        tuned, base, weight: see :func:`rast`.

    Raises:
        UsageError: a model that cannot be loaded, or is no model.
    """

    tuned: Any
    base: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("tuned", "base"):
            model = loaded(getattr(self, name), "rast")
            if isinstance(model, str):
                raise UsageError(f"rast: {name} is a small model of its own, not the run's {model}")
            setattr(self, name, model)

    def over(self, engine: Engine) -> Engine:
        """Return an engine that samples from what ``engine`` does, shifted."""
        return shifted_engine(engine, self.tuned, self.base, self.weight)


@part("inference", "rast")
@dataclass(slots=True)
class ShiftedSample:
    """One response is the answer, sampled from shifted logits, see :func:`rast`.

    Args:
        tuned, base, weight: see there.
        sampling: how tokens are drawn.
    """

    tuned: Any
    base: Any
    weight: float = 1.0
    sampling: Sampling = field(default_factory=Sampling)
    _shift: Shift = field(init=False, repr=False)

    once = True

    def __post_init__(self) -> None:
        self._shift = Shift(self.tuned, self.base, self.weight)

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        return Sample(self.sampling)(tasks, self._shift.over(engine), budget, rng)


@part("rollout", "shifted")
@dataclass(slots=True)
class Shifted:
    """One turn, sampled from shifted logits, see :func:`rast`.

    Args:
        sampling: supplied by the run.
        tuned, base, weight: see there.
    """

    sampling: Sampling
    tuned: Any
    base: Any
    weight: float = 1.0
    _shift: Shift = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._shift = Shift(self.tuned, self.base, self.weight)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return SingleTurn(self.sampling).collect(asks, self._shift.over(engine), rng)


claims(
    Claim(
        paper="S214",
        text="The shift that training made in a small policy, added to the logits of a larger one that was not "
        "trained, makes that one right more often.",
        setting="shifts",
        arms={"shifted": {"name": "S214", "weight": 1.0}, "large": {"name": "S214", "weight": 0.0}},
        better="shifted",
        baseline="large",
        measure="right",
    ),
    Claim(
        paper="S214",
        text="The shifted larger policy is right more often than the small one that was trained.",
        setting="shifts",
        name="beyond",
        arms={"shifted": {"name": "S214", "weight": 1.0}, "small": {"name": "S214", "alone": True}},
        better="shifted",
        baseline="small",
        measure="right",
    ),
)
