"""S060: of the right responses those with the best steps are kept, of the wrong ones those with the worst."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.process.bounded_steps import BoundedSteps
from assay.rewards.process.step_scores import StepScores
from assay.rewards.process.summed import sum_by_step
from assay.signals.steps import Steps

Filter = Literal["both", "correct", "wrong", "random"]
Reduce = Literal["mean", "min", "sum"]


@paper(
    "S060",
    "PROF",
    arxiv="2509.03403",
    seams=["select"],
    essentials={
        "consistency: how far the mean step score agrees with the outcome": "test_consistency_and_what_it_drops",
        "right and wrong ones are filtered apart, by numbers that bring both nearer to equal": "test_how_many_are_kept",
        "one step, or more than 30, goes first in both classes": "test_step_counts_go_first_in_both_classes",
        "outcome rewards, compared over those kept": "test_advantages_are_of_those_kept",
        "the variant that drops wrong ones at random": "test_wrong_ones_at_random",
        "the score in the reward, for comparison": "test_the_blend_it_is_compared_with",
        "it acts in training": "test_a_run_keeps_half",
        "fewer miracles than by the outcome alone": "test_fewer_miracles",
    },
    choices=(
        "what is drawn at random is drawn by a hash of step and response",
        "a right response has a score above 1/2",
    ),
)
def prof(
    prm: Any,
    keep: int = 4,
    filter: Filter = "both",
    reduce: Reduce = "mean",
    apart: bool = True,
    penalty: float = 10.0,
    bounds: tuple[int, int] = (2, 30),
    steps: Steps = Steps(),  # noqa: B008  # frozen
    kl_weight: float = 1e-3,
) -> Method:
    """GRPO on ``keep`` of each prompt's responses: those whose steps agree best with their outcome, see
    :class:`Consistent`. The scores of steps are in no reward.

    Ask for more than are kept: rollout.group = 8 with ``keep = 4``, or 12 with 8, or 16 with 12.

    Args:
        prm: scores steps, see :class:`assay.rewards.process.step_scores.StepScores`; ``verdict`` for the verdict's own.
        keep, filter, reduce, apart, penalty, bounds, steps: see :class:`Consistent`.
        kl_weight: of the divergence from the reference policy, k3 in the loss.

    What it is compared with, the scores as a reward beside the outcome, is :func:`blend`.

    Source: PROF (arXiv 2509.03403) and its authors' code.
    """
    return Method(
        select=Consistent(prm, keep, filter, reduce, apart, penalty, bounds, steps),
        objective=ClippedSurrogate(kl_weight=kl_weight, kl_estimator="k3"),
    )


def blend(prm: Any, beta: float = 0.8, steps: Steps = Steps(), kl_weight: float = 1e-3) -> Method:  # noqa: B008
    """GRPO on r_i = o_i + beta mean_h p_ih, which PROF is compared with: a score in a reward can be gamed."""
    objective = ClippedSurrogate(kl_weight=kl_weight, kl_estimator="k3")
    return Method(reward=BoundedSteps(prm, steps, "mean", alpha=beta), objective=objective)


@dataclass(slots=True)
class Consistent:
    """Weight 1 for ``keep`` samples of each advantage group, 0 for the others; all where there are no more.

        s_i = (2 o_i - 1) mean_h 2 (p_ih - pbar) - penalty [H_i < bounds_0 or H_i > bounds_1]

    p_ih in [0, 1] is the score of step h of H_i (signal ``step_scores``), pbar the mean over all steps of the batch,
    o_i whether the verdict's score is above 1/2. Of n responses, n+ right and n- wrong, k = n - keep are dropped: the q
    right ones of the lowest s, and the k - q wrong ones of the lowest s, which have the best steps;

        q = min(k, round((n+ - n- + k) / 2)), halves to even, at least 0.

    ``filter = "correct"`` drops as many wrong ones, but at random (where the scores of wrong responses are not to be
    trusted), ``wrong`` right ones at random, ``random`` all; with ``apart`` false the k of the lowest s go, whatever
    they are. A sample without a reward, or whose steps could not be scored, is not kept and not counted. The mean can
    be the ``min`` or the ``sum`` over steps.

    Raises:
        UsageError: ``keep`` or ``penalty`` out of range, or bounds the wrong way round.
    """

    prm: Any
    keep: int = 4
    filter: Filter = "both"
    reduce: Reduce = "mean"
    apart: bool = True
    penalty: float = 10.0
    bounds: tuple[int, int] = (2, 30)
    steps: Steps = field(default_factory=Steps)
    signal: StepScores = field(init=False, repr=False, compare=False)
    _done: int = field(default=0, init=False, repr=False, compare=False)
    _kept: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.keep < 1 or self.penalty < 0 or not 0 <= self.bounds[0] <= self.bounds[1]:
            raise UsageError(
                f"select 'S060': keep {self.keep} must be at least 1, penalty {self.penalty:g} at least 0, and bounds "
                f"{self.bounds} least and most steps"
            )
        self.signal = StepScores(self.prm, self.steps)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        right = torch.tensor([v.score > 0.5 for v in batch.verdicts], dtype=torch.bool)
        s, told = self.consistency(batch, right)
        told = told & batch.valid
        # Equal ones go in an order of their own, so that it is not that of the batch.
        drawn = [self._draw(batch, i) for i in range(len(batch))]
        score = s.tolist()
        at_random = {"both": (), "correct": (False,), "wrong": (True,), "random": (False, True)}[self.filter]

        def order(i: int) -> tuple[float, int]:
            return (0.0 if bool(right[i]) in at_random else score[i]), drawn[i]

        gone = torch.zeros_like(told)
        for g in batch.group.unique().tolist():
            rows = sorted(((batch.group == g) & told).nonzero()[:, 0].tolist(), key=order)
            good, bad = [i for i in rows if right[i]], [i for i in rows if not right[i]]
            k = max(len(rows) - self.keep, 0)
            q = dropped(len(good), len(bad), k)
            gone[good[:q] + bad[: k - q] if self.apart else rows[:k]] = True
        self._done += 1
        kept = told & ~gone
        share = right[kept].to(s.dtype).mean() if bool(kept.any()) else torch.zeros(())
        self._kept = {"prof/kept": float(kept.sum()) / max(len(batch), 1), "prof/right": float(share)}
        return kept.to(batch.rewards.dtype)

    def consistency(self, batch: Batch, right: Bool[Tensor, "N"]) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]:
        """Return s, and whether steps could be scored."""
        scores, steps = batch.signals["step_scores"].to(batch.rewards.dtype), batch.signals["steps"]
        told = ~scores.isnan().any(-1)
        p = sum_by_step(scores, steps) / 2
        known = (sum_by_step(torch.ones_like(scores), steps) > 0) & told[:, None]
        count = known.sum(-1)
        centred = torch.where(known, 2 * (p - p[known].mean()), 0)
        if self.reduce == "min":
            worst = torch.where(known, centred, torch.inf).amin(-1)
            agreed = torch.where(count > 0, worst, 0)
        else:
            agreed = centred.sum(-1) / (count.clamp(min=1) if self.reduce == "mean" else 1)
        odd = (count < self.bounds[0]) | (count > self.bounds[1])
        return torch.where(right, 1, -1) * agreed - self.penalty * odd.to(agreed.dtype), told

    def _draw(self, batch: Batch, row: int) -> int:
        """A number that is of the step, the task and the response alone."""
        said = f"{self._done}\n{batch.tasks[row].id}\n".encode() + batch.episodes[row].tokens.tobytes()
        return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big")

    def metrics(self) -> dict[str, float]:
        """``prof/kept``: the share of samples that were kept; ``prof/right``: the share of right ones among them."""
        return self._kept

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done = int(state["done"])


def dropped(right: int, wrong: int, k: int) -> int:
    """Return q, how many of the k that go are right ones, see :class:`Consistent`."""
    q = max(min(k, round((right - wrong + k) / 2)), 0)
    # A class gives no more than it has.
    return min(max(q, k - wrong), right)


ONE = {"by": "fixed", "size": 1}
PROF = {"prm": "verdict", "steps": ONE, "kl_weight": 0.0}
BLENDED = {"reward": {"name": "bounded_steps", "steps": ONE, "bound": "mean", "alpha": 0.8}}

claims(
    Claim(
        paper="S060",
        text="Where a miracle is right more often than work, a policy that learns from those responses alone whose "
        "steps agree with their outcome learns fewer miracles than one that learns from all.",
        setting="miracle",
        evidence="construction",
        arms={
            "prof": {"name": "S060", "options": PROF},
            "all": {"name": "grpo"},
            "correct": {"name": "S060", "options": {**PROF, "filter": "correct"}},
        },
        better="prof",
        baseline="all",
        measure="honest",
        sweep={"lr": (0.03, 1.0, 30.0)},
    ),
    Claim(
        paper="S060",
        name="blend",
        text="Where scores prefer useless steps to useful ones, a policy that is filtered by them is right more often "
        "than one that is paid for them beside the outcome.",
        setting="steps",
        evidence="mechanism",
        arms={
            "prof": {"name": "S060", "options": {**PROF, "bounds": (1, 30)}},
            "blend": BLENDED,
        },
        better="prof",
        baseline="blend",
        measure="solved",
        options={"useful": 0.1, "useless": 0.9, "steps": 60, "prompts": 2},
        sweep={"lr": (1.0, 5.0, 25.0)},
    ),
)
