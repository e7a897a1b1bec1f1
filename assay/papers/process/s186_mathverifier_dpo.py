"""S186: wrong solutions that are nearly right, found by rules, and pairs that weigh by how wrong and how plausible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO
from assay.registry import build, part
from assay.select.pairs import NEAR, pick
from assay.verify.answer.extract import RULES, extract
from assay.verify.math.error_profile import WEIGHTS, Profile, profile


@paper(
    "S186",
    "Hard-negative DPO",
    arxiv="2512.19728",
    seams=["verify", "tasks", "select", "objective"],
    essentials={
        "six axes of errors by rules and symbols, without a model": "test_each_axis_by_itself",
        "wrongness, a weighted sum of them, and absurdity apart from it": "test_wrongness_and_weight_by_hand",
        "hard negatives: near the right answer, plausible, and wrong": "test_the_miner_takes_the_near_miss",
        "absurd ones and those that are hardly wrong are left out": "test_what_is_absurd_or_hardly_wrong_is_left_out",
        "pairs weigh by them, with bounds and a mean of 1": "test_weights_are_bounded_and_have_a_mean_of_1",
        "weighted DPO": "test_the_weighted_loss_by_hand",
        "equal weights are DPO": "test_equal_weights_are_dpo",
        "SFT, then DPO with and without weights, on records": "test_fine_tuning_and_then_pairs_of_records",
    },
    choices=(
        "the six axes and their formulas, and what is absurd",
        "weights of the axes 0.3, 0.2, 0.15, 0.15, 0.1, 0.1; beta 0.1, lambda 1, bounds 0.5 and 2, tau 0.5",
        "the hardest is the one with the largest W (1 - B); wrongness below 0.05 is noise of labels",
        "every right response of a prompt is paired with its hard negative",
    ),
    lacks="the paper's own axes and formulas were not at hand: those here are ours",
)
def hard_negatives(
    weighted: bool = True,
    lam: float = 1.0,
    low: float = 0.5,
    high: float = 2.0,
    tau: float = 0.5,
    least: float = 0.05,
    axes: tuple[float, ...] = WEIGHTS,
    beta: float = 0.1,
    rollout: Any = "recorded",
) -> Method:
    """DPO of right responses against the hard negative of their prompt, each pair with a weight.

        e in [0, 1]^6: what is wrong, see :func:`assay.verify.math.error_profile.profile`
        W = sum_j w_j e_j,   B = absurdity,   hard negative: argmax of W (1 - B) among wrong ones with B < tau
        omega = clip(1 + lambda W (1 - B), low, high), made to have a mean of 1, detached
        L = mean of omega * (-log sigmoid(beta (h_w - h_l)))

    The warm-up is the paper's supervised stage. Verifier ``error_profile`` tells the profile of any solution.

    Args:
        weighted: ``False`` for weights of 1.
        lam, low, high: lambda and the bounds of omega.
        tau: wrong ones at least this absurd are too easy.
        least: wrong ones below this wrongness are taken for noise of labels.
        axes: w, six weights that add up to 1.
        beta: of DPO.
        rollout: by default responses on record, in ``task.meta["responses"]``.

    Source: "Hard Negative Sample-Augmented DPO" (arXiv 2512.19728), whose abstract says what there is, and no formulas.
    """
    options = {"weighted": weighted, "lam": lam, "low": low, "high": high, "tau": tau, "least": least, "axes": axes}
    select = build("select", {"name": "hard_negatives", **options})
    return Method(select=select, objective=PickedPairs(DPO(beta)), rollout=rollout)


@part("select", "hard_negatives")
@dataclass(frozen=True, slots=True)
class HardNegatives:
    """Weight 1 for right responses and the hard negative of their group, else 0; ``picked_pairs`` learns the pairs.

    Of equally hard negatives the first is taken.

    Args:
        weighted, lam, low, high, tau, least, axes: see :func:`hard_negatives`.

    Raises:
        UsageError: axes that are not six weights of sum 1, or bounds out of order.
    """

    weighted: bool = True
    lam: float = 1.0
    low: float = 0.5
    high: float = 2.0
    tau: float = 0.5
    least: float = 0.05
    axes: tuple[float, ...] = WEIGHTS

    def __post_init__(self) -> None:
        if len(self.axes) != len(WEIGHTS) or min(self.axes) < 0 or abs(sum(self.axes) - 1) > 1e-9:
            raise UsageError(f"select 'hard_negatives': axes are six weights of sum 1, not {list(self.axes)}")
        if not 0 < self.low <= 1 <= self.high or self.lam < 0:
            raise UsageError("select 'hard_negatives': needs 0 < low <= 1 <= high and lam of at least 0")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        use = (batch.active & (batch.lengths > 0)).tolist()
        passed = [v.passed for v in batch.verdicts]
        picked: Bool[Tensor, "N N"] = torch.zeros(len(batch), len(batch), dtype=torch.bool)
        worth = batch.rewards.new_ones(len(batch), len(batch))
        for group in batch.group.unique().tolist():
            rows = [i for i in (batch.group == group).nonzero()[:, 0].tolist() if use[i]]
            right = [i for i in rows if passed[i] is True]
            if not right or (found := self.hardest(batch, [i for i in rows if passed[i] is False])) is None:
                continue
            row, hard = found
            picked[right, row] = True
            worth[right, row] = self.weight(hard)
        return pick(batch, picked, worth if self.weighted else None)

    def hardest(self, batch: Batch, rows: Sequence[int]) -> tuple[int, Profile] | None:
        """Return which of the wrong responses at ``rows`` is the hard negative, if any is hard."""
        best: tuple[int, Profile] | None = None
        for i in rows:
            found = self.profile(batch, i)
            if found.absurdity >= self.tau or found.wrongness(self.axes) < self.least:
                continue
            if best is None or self.hardness(found) > self.hardness(best[1]) + NEAR:
                best = i, found
        return best

    def profile(self, batch: Batch, row: int) -> Profile:
        """Return the profile of a response that was judged wrong."""
        task, episode = batch.tasks[row], batch.episodes[row]
        span = batch.answer(task, episode.text) if batch.answer is not None else None
        answer = extract(episode.text, RULES, "line") if span is None else episode.text[span.start : span.end]
        return profile(task, episode.text, False, answer, episode.truncated)

    def hardness(self, found: Profile) -> float:
        """Return W (1 - B)."""
        return found.wrongness(self.axes) * (1 - found.absurdity)

    def weight(self, found: Profile) -> float:
        """Return omega, before its mean is made 1."""
        return min(max(1 + self.lam * self.hardness(found), self.low), self.high)


claims(
    Claim(
        paper="S186",
        text="Weights raise the chance of the right answer beside its near misses, on questions not trained on, more "
        "than DPO on the same pairs without them.",
        setting="near_misses",
        arms={
            "weighted": {"name": "S186", "options": {"beta": 1.0}},
            "unweighted": {"name": "S186", "options": {"beta": 1.0, "weighted": False}},
            "dpo": {"name": "grpo", "rollout": "recorded", "objective": {"name": "dpo", "by": "verdict", "beta": 1.0}},
        },
        better="weighted",
        baseline="unweighted",
        measure="near",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    )
)
