"""Rewards from a verifier that errs at known rates: corrected so that its errors cancel in expectation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.outcome.appeals import Appeals, category_of
from assay.types import NOTE, Task, Verdict

MOST = 0.49
"""A measured or estimated rate is taken as at most this: beyond one half a verifier says the opposite of the truth."""
LEAST = 0.05
"""What 1 - rho0 - rho1 is taken as at least: the correction divides by it."""


@part("reward", "noise_corrected")
@dataclass(slots=True)
class NoiseCorrected:
    """The verdict V in {0, 1} corrected for rho0 = P(V=1 | wrong) and rho1 = P(V=0 | right).

    ``backward``: R = (V - rho0) / (1 - rho0 - rho1), so that E[R | truth] is the truth.
    ``forward``: R = rho1 where V = 1, rho1 - 1 where V = 0, so that E[R | truth] is (1 - rho0 - rho1) (truth - 1);
    rho0 plays no part.

    Within a group whose samples share their rates both are affine in V. A credit that subtracts the group's mean and
    divides by its deviation undoes them altogether, one that subtracts the mean alone leaves a factor. So ``backward``
    goes with ``rloo`` or ``{name = "grpo", normalise = false}`` and rates that differ between samples or prompts,
    ``forward`` with ``reinforce``, which subtracts nothing.

    A sample's rates are the first there are of: those of a check that decided (a part of the verdict that is not
    ``None``), of the task's ``meta["category"]``, of its kind, each by name in ``by`` or among the record's categories;
    with ``appeals`` rho1 is the estimate for the task's category or kind; else the overall ones. An abstention has no
    reward. The score is not read: the channel is one of right and wrong.

    Source: "Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers" (arXiv 2510.00915).

    Args:
        correction: see above.
        false_positive, false_negative: rho0 and rho1, in [0, 1), together at most 0.95.
        by: (rho0, rho1) by name of a check, category or kind.
        record: file of an audit's record (see :mod:`assay.records.audit`): its overall rates replace the two given, its
            categories' count where at least ``least`` right, or wrong, responses were decided. Measured rates are
            taken as at most 0.49, 1 - rho0 - rho1 as at least 0.05.
        least: see ``record``.
        appeals: :class:`~assay.rewards.outcome.appeals.Appeals`, or a table of its options: rho1 is estimated while
        training.

    Raises:
        UsageError: a rate out of range, or a record that cannot be read or has no overall rates.
    """

    correction: Literal["backward", "forward"] = "forward"
    false_positive: float = 0.1
    false_negative: float = 0.2
    by: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    record: str | None = None
    least: int = 30
    appeals: Any = None
    _overall: tuple[float, float] = field(init=False, repr=False, compare=False)
    _named: dict[str, tuple[float, float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.appeals, Mapping):
            self.appeals = Appeals(**self.appeals)
        self._overall, self._named = (self.false_positive, self.false_negative), {}
        if self.record is not None:
            self._overall, self._named = recorded_rates(Path(self.record), self.least)
        self._named |= {name: (float(rates[0]), float(rates[1])) for name, rates in self.by.items()}
        for name, (low, high) in {"the verifier": self._overall, **self._named}.items():
            if not (0 <= low < 1 and 0 <= high < 1 and low + high <= 1 - LEAST + 1e-9):
                raise UsageError(
                    f"reward 'noise_corrected': rates {low:g} and {high:g} of {name}; each must be in [0, 1) and "
                    f"their sum at most {1 - LEAST:g}, or its verdict says too little to be corrected"
                )

    def __call__(self, batch: Batch) -> Reward:
        dtype = batch.rewards.dtype
        told = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=dtype)
        terms = {"verdict": right}
        if self.appeals is not None:
            terms |= self.appeals.hear(batch)
        rates = [self.rates(t, v) for t, v in zip(batch.tasks, batch.verdicts, strict=True)]
        low, high = (torch.tensor([pair[k] for pair in rates], dtype=dtype) for k in (0, 1))
        if self.correction == "backward":
            values = (right - low) / (1 - low - high).clamp(min=LEAST)
        else:
            values = torch.where(right > 0, high, high - 1)
        return Reward(values, valid=told, terms={**terms, "false_positive": low, "false_negative": high})

    def rates(self, task: Task, verdict: Verdict) -> tuple[float, float]:
        """Return rho0 and rho1 of one sample."""
        checks = [name for name, score in verdict.parts.items() if score is not None and NOTE not in name]
        names = [*checks, str(task.meta.get("category", "")), task.kind]
        low, high = next((self._named[n] for n in names if n in self._named), self._overall)
        estimate = None if self.appeals is None else self.appeals.rate(category_of(task))
        return low, high if estimate is None else min(estimate, MOST)

    def state_dict(self) -> dict[str, Any]:
        return {} if self.appeals is None else self.appeals.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self.appeals is not None:
            self.appeals.load_state_dict(state)


def recorded_rates(path: Path, least: int = 30) -> tuple[tuple[float, float], dict[str, tuple[float, float]]]:
    """Return the (rho0, rho1) that an audit measured: overall, and of each category with enough rows.

    A category with fewer than ``least`` decided wrong (right) responses has the overall rho0 (rho1).

    Raises:
        UsageError: no such record, or one without right or without wrong responses.
    """
    from assay.records.audit import load

    found = load(path)
    pair = found.false_positive_rate, found.false_negative_rate
    if any(math.isnan(rate.value) for rate in pair):
        raise UsageError(f"the audit record {path} has no responses of one label, so one of its error rates is unknown")
    overall = min(pair[0].value, MOST), min(pair[1].value, MOST)
    named = {}
    for name, (negative, positive) in found.categories.items():
        low = min(positive.value, MOST) if positive.total >= max(least, 1) else overall[0]
        high = min(negative.value, MOST) if negative.total >= max(least, 1) else overall[1]
        named[name] = low, high
    return overall, named
