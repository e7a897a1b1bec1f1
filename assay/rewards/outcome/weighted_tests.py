"""Partial success, each test weighted by how few responses pass it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.types import NOTE, Episode, Task, Verdict

Parts = Mapping[str, float | None]
KEPT = 65_536
"""Tasks whose running statistics are kept; those seen longest ago are forgotten."""


NOTHING = Verdict.wrong()
"""Of a turn without an attempt."""


@dataclass(slots=True)
class Counts:
    """Sums over earlier turns of one task, per test: scores and turns, both decayed."""

    passed: dict[str, float] = field(default_factory=dict)
    turns: dict[str, float] = field(default_factory=dict)


@part("reward", "weighted_tests")
@dataclass(slots=True)
class WeightedTests:
    """R_i = gamma^|i| 1[i passed] + beta mean_t L_it, where L_it = sum_j w_j p_itj is the local reward of turn t.

    p_itj in [0, 1] says how far turn t of response i passed test j. Over all turns of the group, with M of them judged
    on j: pass rate rho_j = sum p_itj / M, difficulty exp(-alpha rho_j), and density N_j = sum_k exp(-(rho_j - rho_k)^2
    / (2 sigma^2)), so that w_j = exp(-alpha rho_j) / (N_j + delta): many tests that are passed alike share one weight.

    ``values`` are R_i. ``tokens`` hold beta (L_it - mean_t L_it) on the last token of turn t, or are ``None`` if every
    response is one turn. ``terms``: ``outcome`` (gamma^|i| 1[i passed]) and ``tests`` (mean_t L_it).

    Tests are the verdict's parts, of each turn's own verdict where its environment judges every attempt; the response's
    are those of a last turn without one. A test missing from a turn's parts is not passed (nothing ran: it did not
    compile); a part ``None`` could not be told, leaves rho_j, and counts rho_j itself, so that it neither praises nor
    blames; so do all tests of a turn whose verdict abstains. A sample whose verifier abstained has no reward.

    Source: VeRPO (arXiv 2601.03525). With ``memory`` > 0, which is an addition, rho_j also counts the task's earlier
    groups.

    Args:
        alpha: >= 0; how much more a hard test weighs than an easy one: exp(alpha) between rates 0 and 1.
        sigma: > 0; pass rates closer than this count as alike.
        delta: >= 0; keeps the division finite.
        beta: >= 0; weight of the local reward beside the outcome.
        gamma: in (0, 1]; discount of the outcome per turn.
        calibrate: divide by the density; without it w_j = exp(-alpha rho_j).
        memory: in [0, 1); share of the earlier counts kept at each new group of the same task.
        tests: count only parts whose names begin so.

    Raises:
        UsageError: an option out of range.
    """

    alpha: float = 2.0
    sigma: float = 0.1
    delta: float = 1e-6
    beta: float = 1.0
    gamma: float = 1.0
    calibrate: bool = True
    memory: float = 0.0
    tests: str = ""
    seen: dict[str, Counts] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, good, wanted in (
            ("alpha", self.alpha >= 0, ">= 0"),
            ("sigma", self.sigma > 0, "> 0"),
            ("delta", self.delta >= 0, ">= 0"),
            ("beta", self.beta >= 0, ">= 0"),
            ("gamma", 0 < self.gamma <= 1, "in (0, 1]"),
            ("memory", 0 <= self.memory < 1, "in [0, 1)"),
        ):
            if not good:
                raise UsageError(f"reward 'weighted_tests': {name} = {getattr(self, name)} must be {wanted}")

    def __call__(self, batch: Batch) -> Reward:
        turns = [attempts_of(e, v) for e, v in zip(batch.episodes, batch.verdicts, strict=True)]
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        local = [np.zeros(len(t)) for t in turns]
        groups = batch.group.tolist()
        for group in dict.fromkeys(groups):
            rows = [i for i, g in enumerate(groups) if g == group and valid[i]]
            if rows:
                attempts = [parts for i in rows for _, parts in turns[i]]
                found = self.local(attempts, batch.tasks[rows[0]].id)
                ends = np.cumsum([len(turns[i]) for i in rows])
                for i, values in zip(rows, np.split(found, ends[:-1]), strict=True):
                    local[i] = values
        outcome = [(v.passed is True) * self.gamma ** len(t) for v, t in zip(batch.verdicts, turns, strict=True)]
        dtype = batch.rewards.dtype
        terms = {
            "outcome": torch.tensor(outcome, dtype=dtype),
            "tests": torch.tensor([values.mean() for values in local], dtype=dtype),
        }
        tokens = None
        if any(len(t) > 1 for t in turns):
            tokens = torch.zeros(batch.mask.shape, dtype=dtype)
            for i, (spans, values) in enumerate(zip(turns, local, strict=True)):
                for (end, _), value in zip(spans, values, strict=True):
                    tokens[i, end - 1] += self.beta * (value - values.mean())
        return Reward(terms["outcome"] + self.beta * terms["tests"], tokens, valid, terms)

    @property
    def reads_more(self) -> str:
        """What :meth:`plain` looks for."""
        return "it weighs the tests that a verdict's parts tell of, and their verifier tells of none"

    def plain(self, task: Task, verdict: Verdict) -> bool:
        """Whether a task's verdict has no tests to weigh."""
        return not any(name.startswith(self.tests) and NOTE not in name for name in verdict.parts)

    def local(self, attempts: Sequence[Parts | None], task: str = "") -> np.ndarray:
        """Return the local reward of each turn of a group, ``(M,)``, and remember its counts for ``task``."""
        names = sorted({n for parts in attempts for n in parts or () if n.startswith(self.tests) and NOTE not in n})
        # A part that is absent was not passed; one that is None is unknown, NaN here.
        scores = np.array([[_score(parts, name) for name in names] for parts in attempts], dtype=np.float64)
        scores = scores.reshape(len(attempts), len(names))
        known = ~np.isnan(scores)
        rates = self._rates(names, np.where(known, scores, 0).sum(0), known.sum(0), task)
        told = ~np.isnan(rates)
        weights = np.zeros(len(names))
        weights[told] = difficulty_weights(rates[told], self.alpha, self.sigma if self.calibrate else None, self.delta)
        return np.where(known, scores, np.where(told, rates, 0.0)) @ weights

    def _rates(self, names: Sequence[str], passed: np.ndarray, turns: np.ndarray, task: str) -> np.ndarray:
        if self.memory:
            counts = self.seen.pop(task, None) or Counts()
            passed = passed + [self.memory * counts.passed.get(n, 0.0) for n in names]
            turns = turns + [self.memory * counts.turns.get(n, 0.0) for n in names]
            self.seen[task] = Counts(
                {n: float(x) for n, x in zip(names, passed, strict=True)},
                {n: float(x) for n, x in zip(names, turns, strict=True)},
            )
            while len(self.seen) > KEPT:
                del self.seen[next(iter(self.seen))]
        return np.divide(passed, turns, out=np.full(len(names), np.nan), where=turns > 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the running counts, in the order in which tasks were last seen."""
        return {"seen": [[task, c.passed, c.turns] for task, c in self.seen.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` returned."""
        self.seen = {task: Counts(dict(passed), dict(turns)) for task, passed, turns in state["seen"]}


def difficulty_weights(
    rates: np.ndarray, alpha: float = 2.0, sigma: float | None = 0.1, delta: float = 1e-6
) -> np.ndarray:
    """Return w_j = exp(-alpha rho_j) / (sum_k exp(-(rho_j - rho_k)^2 / (2 sigma^2)) + delta).

    Args:
        rates: ``(U,)`` pass rates rho in [0, 1].
        alpha: >= 0.
        sigma: > 0; ``None`` leaves the division out.
        delta: >= 0.

    Source: VeRPO (arXiv 2601.03525).
    """
    weights = np.exp(-alpha * rates)
    if sigma is None or not len(rates):
        return weights
    # Rates are fractions of the group's turns: few values, however many tests.
    values, where, times = np.unique(rates, return_inverse=True, return_counts=True)
    density = np.exp(-((values[:, None] - values[None, :]) ** 2) / (2 * sigma**2)) @ times
    return weights / (density[where] + delta)


def attempts_of(episode: Episode, verdict: Verdict) -> list[tuple[int, Parts | None]]:
    """Return each turn's end, as an index into the response's tokens, and the parts of its attempt.

    They are ``None`` where they could not be told.
    """
    turns = [turn for turn in episode.turns if turn.end > turn.start]
    if not turns:
        return [(max(1, len(episode.tokens)), verdict.parts)]
    ends = [(turn.end, turn.verdict or (verdict if turn is turns[-1] else NOTHING)) for turn in turns]
    return [(end, None if judged.passed is None else judged.parts) for end, judged in ends]


def _score(parts: Parts | None, name: str) -> float:
    value = None if parts is None else parts.get(name, 0.0)
    return np.nan if value is None else value
