"""S082: general tasks replayed beside the target's, and each objective weighted by how it has been doing lately."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import RunError, UsageError, nearest
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate, clip_fraction, clipped
from assay.objectives.origins import written_by
from assay.objectives.policy_loss import Ratios
from assay.ops import masked_mean, outcome
from assay.registry import build
from assay.types import Origin

WEIGHT, ADVANTAGES = "objective_weight:", "objective_advantages:"
"""Signals by objective: ``(N,)`` lambda_k / K for the samples that feed it, 0 for others; ``(N, T)`` its advantages."""
IMITATION = "imitation"
LEAST = 1e-6
PATIENCE = 5
"""Steps with a single objective after which that is said; a mixture may leave the others out of a few."""


@paper(
    "S082",
    "RECAP",
    arxiv="2510.21978",
    seams=["curriculum", "credit", "objective"],
    essentials={
        "each objective's convergence and instability over two windows of its recent course": (
            "test_convergence_and_instability"
        ),
        "online weights by a softmax of the two, their sum the number of objectives": "test_weights",
        "the loss is their weighted mean, each objective fed by its own tasks alone": (
            "test_every_objective_is_a_mean_over_its_own_samples"
        ),
        "general tasks are replayed among the target's": "test_the_share_of_replayed_tasks",
        "supervised data are an objective too, of their cross entropy": "test_demonstrations_feed_imitation_alone",
        "in training what was known before is kept better than by training on the target alone": (
            "test_the_setting_forgets_without_replay"
        ),
    },
    choices=(
        "a series is the mean reward, whose ratio falls to 1 as an objective saturates, as the paper plots it; of "
        "imitation the geometric mean probability of its tokens",
        "windows of 20 steps, of which the paper says nothing; temperature 5, as in the paper",
        "weights are 1 until an objective has two whole windows; what is below 1e-6 counts as that",
        "an objective is a term of the reward on the tasks of one source",
    ),
)
def recap(
    general: Any = None,
    share: float = 0.5,
    window: int = 20,
    temperature: float = 5.0,
    imitation: bool = False,
) -> Method:
    """GRPO on several objectives at once, general tasks replayed among them, reweighted by their recent course.

        L = (1/K) sum_k lambda_k L_k,   lambda_k = K softmax_k((c_k + i_k) / temperature)
        c_k = mu_k / mu'_k,   i_k = sd_k / (mu_k + mu'_k)

    mu_k and sd_k are mean and deviation of the k-th series over the last ``window`` steps, mu'_k the mean over those
    before; lambda is 1 until there are so many. A series is the mean reward of the objective (the surrogate loss's sign
    cancels in the ratio), or for imitation exp(-cross entropy). What still improves has c > 1, what is saturated has
    c = 1 and i = 0: weight goes from saturated objectives to those that improve or vary.
    L_k is the clipped surrogate with advantages of that reward alone, averaged over the samples that feed it; an
    objective is a reward term on the tasks of one source (``task.meta["source"]``). The metric ``weight/NAME`` is
    lambda.

    Args:
        general: task source that is replayed; without it the objectives are those of the run's own tasks, which may be
            a ``mixture``. With a single objective it is GRPO, of which a warning is logged.
        share: of the prompts that are general.
        window: steps.
        temperature: the higher, the nearer all weights are to 1.
        imitation: responses of other authors (rollout ``demonstration``) feed an objective of their own, their cross
            entropy.

    Source: "Beyond Reasoning Gains" (arXiv 2510.21978), from notes on it and its public reviews. These read the sign of
    c both ways; here it is the one under which weight leaves saturated objectives, as the paper says and plots.
    """
    curriculum = "uniform" if general is None else {"name": "replay", "general": general, "share": share}
    credit = PerObjective(window=window, temperature=temperature, imitation=imitation)
    return Method(curriculum=curriculum, credit=credit, objective=SumOfObjectives())


@dataclass(slots=True)
class Course:
    """What has become of each objective's series, and the weights that follow from it, see :func:`recap`.

    Args:
        window: steps in each of the two windows, 1 or more.
        temperature: of the softmax, above 0.
        weight_fn: maps arrays c and i to scores; their sum if left out.

    Raises:
        UsageError: an option out of range.
    """

    window: int = 20
    temperature: float = 5.0
    weight_fn: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    _series: dict[str, list[float]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.window < 1 or self.temperature <= 0:
            raise UsageError(
                f"credit 'S082': needs window >= 1 and temperature > 0, not {self.window} and {self.temperature:g}"
            )

    def observe(self, values: Mapping[str, float]) -> None:
        """Add one value to each series; values below 1e-6 count as that."""
        for name, value in values.items():
            self._series[name] = [*self._series.get(name, []), max(value, LEAST)][-2 * self.window :]

    def terms(self, name: str) -> tuple[float, float]:
        """Return convergence c and instability i of a series with two whole windows."""
        before, last = np.split(np.asarray(self._series[name]), 2)
        return float(last.mean() / before.mean()), float(last.std() / (last.mean() + before.mean()))

    def weights(self, names: Sequence[str]) -> dict[str, float]:
        """Return lambda of each objective; those with too short a series have 1, the others share what is theirs."""
        ready = [n for n in names if len(self._series.get(n, ())) == 2 * self.window]
        out = dict.fromkeys(names, 1.0)
        if ready:
            c, i = (np.asarray(column) for column in zip(*map(self.terms, ready), strict=True))
            scores = (c + i if self.weight_fn is None else np.asarray(self.weight_fn(c, i))) / self.temperature
            soft = np.exp(scores - scores.max())
            out |= dict(zip(ready, (len(ready) * soft / soft.sum()).tolist(), strict=True))
        return out

    def state_dict(self) -> dict[str, list[float]]:
        return {name: list(series) for name, series in self._series.items()}

    def load_state_dict(self, state: Mapping[str, Sequence[float]]) -> None:
        self._series = {name: list(series) for name, series in state.items()}


@dataclass(slots=True, eq=False)
class PerObjective:
    """Advantages of every objective by itself, left as signals for objective ``S082``; returns their weighted sum.

    Args:
        credit: computes the advantages from the reward of one objective.
        objectives: by name a table of ``term``, a term of the reward (the whole reward if left out), and ``source``,
            the tasks that feed it (all if left out). If nothing is given: every term on every source.
        window, temperature, weight_fn: see :class:`Course`.
        series: ``reward``: the mean reward, and exp(-cross entropy) of imitation; ``loss``: 1 less the mean reward, for
            rewards in [0, 1], and the cross entropy: then what improves weighs less.
        imitation: samples with tokens of another author feed the objective ``imitation`` alone.

    Raises:
        UsageError: an option out of range.
        RunError: the reward has no such term.
    """

    credit: Any = "grpo"
    objectives: Mapping[str, Mapping[str, str]] | None = None
    window: int = 20
    temperature: float = 5.0
    weight_fn: Any = None
    series: Literal["reward", "loss"] = "reward"
    imitation: bool = False
    course: Course = field(init=False)
    _alone: int = field(default=0, init=False, repr=False)
    _others: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, table in (self.objectives or {}).items():
            if set(table) - {"term", "source"}:
                raise UsageError(f"credit 'S082': objective {name!r} has keys other than term and source")
        self.credit = build("credit", self.credit)
        self.course = Course(self.window, self.temperature, self.weight_fn)

    @property
    def members(self) -> list[Any]:
        return [self.credit]

    @property
    def needs(self) -> frozenset[Any]:
        own = {"policy_logprobs"} if self.imitation else set()
        return frozenset(own | set(getattr(self.credit, "needs", ())))

    @property
    def group_relative(self) -> bool:
        return bool(getattr(self.credit, "group_relative", False))

    @property
    def level(self) -> str:
        return getattr(self.credit, "level", "response")

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        fed = self.fed(batch)
        total, series = torch.zeros_like(batch.advantages), dict[str, float]()
        for name, (values, rows) in fed.items():
            part = replace(batch, rewards=values, token_rewards=None, weights=torch.where(rows, batch.weights, 0))
            if name == IMITATION:
                # Its loss does not read them; a sample without any would be passed over.
                found = torch.where(part.mask & part.active[:, None], 1.0, 0.0).to(values.dtype)
                entropy = float(-masked_mean(batch.signals["policy_logprobs"], found > 0))
                series[name] = entropy if self.series == "loss" else math.exp(-entropy)
            else:
                found = self.credit(part)
                mean = float(values[part.active].mean())
                series[name] = 1 - mean if self.series == "loss" else mean
            batch.signals[ADVANTAGES + name] = found
        self._warn(list(fed))
        self.course.observe(series)
        for name, weight in self.course.weights(list(fed)).items():
            share = torch.where(fed[name][1] & batch.active, weight / len(fed), 0).to(batch.rewards.dtype)
            batch.signals[WEIGHT + name] = share
            total = total + share[:, None] * batch.signals[ADVANTAGES + name]
        return total

    def _warn(self, names: Sequence[str]) -> None:
        """Say once that there is nothing to weigh, when as many steps as a window has had the same single objective."""
        self._alone = self._alone + 1 if len(names) == 1 and not self._others else 0
        self._others = self._others or len(names) > 1
        if self._alone == min(self.window, PATIENCE):
            logging.getLogger(__name__).warning(
                "method S082 has had one objective (%s) for %d steps, which leaves it GRPO: give it tasks to replay "
                "(curriculum.general), a mixture of sources, or a reward of several terms",
                names[0],
                self._alone,
            )

    def fed(self, batch: Batch) -> dict[str, tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]]:
        """Return each objective's reward, and which active samples feed it, for those that some do."""
        whole = outcome(batch)
        sources = [str(t.meta.get("source", t.kind)) for t in batch.tasks]
        others = written_by(batch, Origin.TEACHER).any(-1) if self.imitation else torch.zeros_like(batch.valid)
        tables = self.objectives
        if tables is None:
            terms = batch.reward_terms if len(batch.reward_terms) > 1 else {}
            labels = [(s, t) for s in sorted(set(sources)) for t in (terms or [None])]
            tables = {s if t is None else f"{s}/{t}": {"source": s} | ({"term": t} if t else {}) for s, t in labels}
        out = {}
        for name, table in tables.items():
            term, source = table.get("term"), table.get("source")
            if term is not None and term not in batch.reward_terms:
                raise RunError(
                    f"objective {name!r}: the reward has no term {term!r}{nearest(term, batch.reward_terms)}"
                )
            mine = torch.tensor([source is None or s == source for s in sources], dtype=torch.bool)
            out[name] = whole if term is None else batch.reward_terms[term], mine & ~others
        if self.imitation:
            out[IMITATION] = torch.zeros_like(whole), others
        return {name: (values, rows) for name, (values, rows) in out.items() if bool((rows & batch.active).any())}

    def state_dict(self) -> dict[str, Any]:
        return {"course": self.course.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.course.load_state_dict(state["course"])


@dataclass(frozen=True, slots=True)
class SumOfObjectives(ClippedSurrogate):
    """L = sum_k (lambda_k / K) L_k of the objectives that credit ``S082`` left; ``clip`` after any other credit.

    L_k is the mean, over the tokens (or sequences, as ``aggregation`` says) of the mini-batch that feed objective k, of
    the clipped surrogate with its own advantages, or of -log pi for imitation. Shared terms as in
    :class:`~assay.objectives.policy_loss.PolicyLoss`.
    """

    @property
    def zero_advantage_is_idle(self) -> bool:
        """Advantages of different objectives may cancel in their sum, and imitation reads none."""
        return False

    def prepare(self, batch: Batch) -> None:
        """Turn the weights of a mini-batch's samples into ones that make each objective a mean over its own samples."""
        totals = batch.totals or batch.count()
        for name in [n for n in batch.signals if n.startswith(WEIGHT)]:
            mine = (batch.signals[name] != 0) & batch.active & (batch.lengths > 0)
            tokens = self.aggregation == "token_mean"
            own = float(batch.lengths[mine].sum() if tokens else mine.sum())
            all_ = totals.tokens if tokens else totals.sequences
            batch.signals[f"scaled_{name}"] = batch.signals[name] * (all_ / max(own, 1.0))

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        signals, bounds = r.batch.signals, (self.clip_low, self.clip_high, self.dual_clip)
        metrics: dict[str, Any] = {
            "clip_fraction": clip_fraction(r.ratio.detach(), r.advantages, r.mask, *bounds),
        }
        names = [n.removeprefix(WEIGHT) for n in signals if n.startswith(WEIGHT)]
        if not names:
            return clipped(r.ratio, r.advantages, *bounds), metrics
        loss = torch.zeros_like(r.ratio)
        for name in names:
            weight = signals.get(f"scaled_{WEIGHT}{name}", signals[WEIGHT + name])
            advantages = torch.where(r.mask, signals[ADVANTAGES + name], 0)
            own = -r.logprobs if name == IMITATION else clipped(r.ratio, advantages, *bounds)
            loss = loss + weight[:, None] * own
            if bool((weight != 0).any()):
                metrics[f"weight/{name}"] = float(signals[WEIGHT + name].max()) * len(names)
        return loss, metrics


claims(
    Claim(
        paper="S082",
        text="Objectives reweighted by convergence and instability keep more of general and target problems than the "
        "same replay with equal weights.",
        setting="retention",
        arms={
            "recap": {"name": "S082", "curriculum": {"name": "replay", "general": "here"}},
            "equal": {
                "name": "S082",
                "curriculum": {"name": "replay", "general": "here"},
                "credit": {"temperature": 1e9},
            },
            "target alone": {"name": "grpo"},
        },
        better="recap",
        baseline="equal",
        measure="both",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
    Claim(
        paper="S082",
        name="mechanism",
        text="Replay with reweighted objectives keeps more of general and target problems together than "
        "the same rollouts spent on the target alone.",
        setting="retention",
        arms={
            "recap": {"name": "S082", "curriculum": {"name": "replay", "general": "here"}},
            "target alone": {"name": "grpo"},
        },
        better="recap",
        baseline="target alone",
        measure="both",
        sweep={"lr": (0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    ),
)
