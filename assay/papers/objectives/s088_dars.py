"""S088: hard problems are asked again before the update, so that their advantages weigh as much as those of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.select.dynamic import DynamicSampling
from assay.types import Ask, Group

Schedule = Literal["equal", "hardness"]


@paper(
    "S088",
    "DARS",
    arxiv="2508.13755",
    seams=["rollout", "credit", "select", "objective"],
    essentials={
        "the bias: a group's cumulative advantage is N 2a(1 - a), least for hard problems": (
            "test_a_group_of_accuracy_a_weighs_2_a_1_minus_a"
        ),
        "difficulty is estimated from a first round; hard problems are asked again by the same policy": (
            "test_hard_problems_get_more_responses_of_the_same_policy_in_one_group"
        ),
        "two schedules, equal treatment and hardness weighted, up to a greatest number of responses": (
            "test_the_schedules"
        ),
        "one advantage over both rounds, centred and not standardised; groups of equal rewards are left out": (
            "test_advantages_are_over_the_merged_group"
        ),
        "breadth (DARS-B): the step's whole batch is one update, several times over": (
            "test_breadth_is_one_mini_batch_of_the_whole_step"
        ),
        "in training hard problems gain what a single round leaves to easy ones": (
            "test_in_training_a_second_round_turns_learning_to_what_is_hard"
        ),
    },
    choices=(
        "no right response in the first round counts as half a one",
        "the loss is summed over a response's tokens, and divided by max_length only where that is given",
    ),
)
def dars(
    schedule: Schedule = "hardness",
    most: int | None = None,
    standardised: bool = False,
    max_length: int | None = None,
) -> Method:
    """GRPO without the standard deviation, and with a second round of responses to problems that are hard.

    The advantages of a group of N with accuracy a have absolute values of sum N S(a), S(a) = 2 a (1 - a): hard problems
    weigh least. After the first round every problem with a < 0.5 is asked dn times more, by the same policy:

        equal:     dn = ceil((N S(1/2) - N S(a)) / S(a))           which makes up for the difference to a = 1/2
        hardness:  dn = ceil((2 (1 - a) N S(1/2) - N S(a)) / S(a)) and weighs hard ones up to twice as much
        a = 0 counts as a = 0.5 / N;   0 <= dn <= most - N

    All N + dn responses are one group: A_i = R_i - mean R over all of them; groups of equal rewards are left out. The
    loss is summed over tokens. The paper's breadth (DARS-B) is a setting of the run: one mini-batch for the whole step,
    ``train.mini_batches = 1`` with ``train.epochs = 2``.

    Args:
        schedule: ``equal`` or ``hardness``.
        most: responses of a group; by default 4 N for ``equal`` and 8 N for ``hardness`` (32 and 64 for the paper's 8).
        standardised: S(a) = 2 sqrt(a (1 - a)) and advantages divided by the group's standard deviation.
        max_length: longest response in tokens, by which the loss is divided, as in Dr. GRPO; left out, it is not.

    Source: DARS (arXiv 2508.13755) and its implementation.
    """
    aggregation = {"aggregation": "sequence_sum"} if max_length is None else {"aggregation": "constant"}
    return Method(
        credit=GRPO(normalise=standardised),
        select=DynamicSampling(),
        objective=ClippedSurrogate(max_length=max_length, **aggregation),  # type: ignore[arg-type]
        rollout={"name": "dars", "schedule": schedule, "most": most, "standardised": standardised},
    )


def extra(accuracy: float, n: int, most: int, schedule: Schedule = "hardness", standardised: bool = False) -> int:
    """Return dn, how many more responses a problem gets after ``n`` with this share of right ones; see :func:`dars`."""
    a = accuracy or 0.5 / n
    if a >= 0.5:
        return 0

    def weight(p: float) -> float:
        # Half of S: only its proportions matter.
        return math.sqrt(p * (1 - p)) if standardised else p * (1 - p)

    target = n * weight(0.5) * (2 * (1 - a) if schedule == "hardness" else 1)
    # A whole number must not be rounded up for the error of a division.
    return max(0, min(math.ceil((target - n * weight(a)) / weight(a) - 1e-9), most - n))


@part("rollout", "dars")
@dataclass(slots=True)
class SecondRound:
    """Collects and judges the responses of a rollout, then more of them for hard problems, see :func:`dars`.

    A task's accuracy is the share of right ones among its judged responses; one without a verdict is not asked again.

    Args:
        sampling, judge, curriculum, more: supplied by the run.
        inner: the rollout that answers in both rounds.
        schedule, most, standardised: see :func:`dars`.

    Raises:
        UsageError: ``most`` below 1.
    """

    sampling: Any
    judge: Callable[[Sequence[Group]], list[Group]]
    more: Any = None
    curriculum: Any = None
    inner: Any = "single_turn"
    schedule: Schedule = "hardness"
    most: int | None = None
    standardised: bool = False
    _inner: Rollout = field(init=False)
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise UsageError(f"rollout 'dars': most = {self.most} leaves no responses; use 1 or more")
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judge(self._inner.collect(asks, engine, rng))
        again = [(i, n) for i, group in enumerate(groups) if (n := self._extra(group))]
        found = self._inner.collect([replace(groups[i].ask, n=n) for i, n in again], engine, rng) if again else []
        for (i, _), more in zip(again, self.judge(found), strict=True):
            first = groups[i]
            ask = replace(first.ask, n=first.ask.n + more.ask.n)
            groups[i] = Group(ask, (*first.episodes, *more.episodes), (*first.verdicts, *more.verdicts))
        asked = sum(group.ask.n for group in groups)
        added = sum(n for _, n in again)
        self._metrics = {"dars/again": len(again) / max(len(groups), 1), "dars/extra": added / max(asked - added, 1)}
        return groups

    def metrics(self) -> dict[str, float]:
        """``dars/again``: share of problems asked again; ``dars/extra``: responses added per response before."""
        return self._metrics

    def _extra(self, group: Group) -> int:
        passed = [v.passed for v in group.verdicts if v.passed is not None]
        if not passed:
            return 0
        n = group.ask.n
        most = self.most if self.most is not None else n * (8 if self.schedule == "hardness" else 4)
        return extra(sum(passed) / len(passed), n, most, self.schedule, self.standardised)


claims(
    (
        CLAIM := Claim(
            paper="S088",
            text="At equal rollouts, a second round of responses to hard problems raises their pass rate sooner than "
            "as many responses to every problem.",
            setting="problems",
            arms={
                "uniform": {"name": "S088", "rollout": "single_turn", "setting": {"group": 17}},
                "equal": {"name": "S088", "rollout": {"schedule": "equal", "most": 32}},
                "dars": {"name": "S088", "rollout": {"schedule": "hardness", "most": 64}},
            },
            better="dars",
            baseline="uniform",
            measure="hard/area",
            options={
                # Pass rates of 0.5, 0.8 and 0.02.
                "kinds": [[10, 1.0, 0.0, 0.0], [10, 1.0, 0.0, 1.386294], [20, 1.0, 0.0, -3.89182]],
                "hard": 1,
                "group": 8,
                "steps": 400,
                "rollouts": 40000,
            },
            sweep={"lr": (30.0, 100.0, 300.0, 1000.0)},
        )
    ),
    replace(CLAIM, setting="unseen", options={"rollouts": 8000, "steps": 200}, sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)}),
)
