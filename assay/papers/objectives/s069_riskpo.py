"""S069: questions are graded in bundles, and what is maximised is the low and the middle of the bundles' scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.ops import broadcast, outcome

Share = Literal["deviation", "uniform", "std"]

FLAT = 1e-3
"""A standard deviation up to this is taken as 1: scores that are all the same say nothing of their scale."""


@paper(
    "S069",
    "RiskPO",
    arxiv="2510.00911",
    seams=["credit"],
    essentials={
        "bundles: the k-th responses to B consecutive questions are graded together by their summed score": (
            "test_papers_are_the_kth_responses_of_consecutive_questions"
        ),
        "mixed value at risk: the range between two quantiles, and 1.5 times the lower tail": (
            "test_the_risk_measure_by_hand"
        ),
        "nothing is gained above the upper quantile": "test_nothing_is_gained_above_the_upper_quantile",
        "the quantiles are followed over the steps, and those from before the batch are used": (
            "test_the_first_batch_uses_each_bundles_own_quantiles_and_the_next_those_before_it"
        ),
        "a bundle's advantage is shared out to its responses": "test_the_share_of_a_response_by_hand",
        "its expected update is the gradient of the risk measure": (
            "test_uniform_shares_estimate_the_gradient_of_the_expected_measure"
        ),
    },
    choices=(
        "quantiles start from those of the first batch, whose bundles use their own",
        "a last bundle of fewer questions uses its own quantiles and is not followed",
        "papers of equal scores are divided by 1",
        "defaults are the released ones; the paper has the ratio of whole responses, share=uniform and shifted=True",
        "papers are the k-th responses in their order; the paper draws a permutation for each question",
    ),
)
def riskpo(
    bundle: int = 5,
    low: float = 0.2,
    high: float = 0.8,
    tail_weight: float = 1.5,
    lr: float = 0.1,
    share: Share = "deviation",
    normalise: bool = True,
    shifted: bool = False,
    seek_risk: bool = False,
) -> Method:
    """GRPO with advantages from the summed scores of bundles of questions: their mixed value at risk, not their mean.

    B consecutive prompts are a bundle, their k-th responses a paper with score X_k = sum_q R_qk. With q_low, q_high the
    quantiles of X at ``low`` and ``high``, followed over the steps by q_a <- q_a + lr (a - mean_k 1[X_k < q_a]):

        RV_k = ((X_k - q_low)^+ - (X_k - q_high)^+) / (high - low)        CV_k = -(q_low - X_k)^+ / low
        A_k = (w CV_k + RV_k) / (w + 1) / std X
        A_qk = A_k d_qk / sum_q d_qk,  d_qk = R_qk - mean_k R_qk;  A_k / B if the sum is 0       ("deviation")

    A paper below q_low costs more than one in the middle gains, and above q_high nothing more is to be gained: what is
    mastered is left alone. A question with equal rewards still teaches: it counts in its bundle's papers.

    Args:
        bundle: B, questions per bundle; rollout.prompts should be a multiple of it.
        low, high: levels of the two quantiles, 0 < low < high < 1; the paper takes ``high`` 0.9 on easy data.
        tail_weight: w, of the lower tail beside the middle.
        lr: of the quantiles.
        share: how a paper's advantage is shared out: by ``deviation`` as above; ``uniform``: all of it to each
            response, the estimator whose expectation is the gradient; ``std``: divided by the question's deviation.
        normalise: divide by the standard deviation of the bundle's papers.
        shifted: add q_low - q_high to the numerator of RV, so that no advantage is positive.
        seek_risk: the paper's counter-experiment: the upper tail (X - q_high)^+ / (1 - high) in place of CV.

    Source: RiskPO (arXiv 2510.00911), defaults as in its released scripts. ``deviation`` gives a response that is worse
    than its siblings a *positive* advantage where its paper is worse than the mean of the papers and A_k positive all
    the same (X above q_low); so does the released code.
    """
    return Method(credit=MixedValueAtRisk(bundle, low, high, tail_weight, lr, share, normalise, shifted, seek_risk))


@dataclass(slots=True)
class MixedValueAtRisk:
    """The advantages of :func:`riskpo`. The quantiles are its state.

    Papers are made of the k-th active responses, as many as the question with the fewest has; those left over have
    advantages of zero, and a question without any leaves its bundle. The quantiles used are those of before the batch;
    at the first batch, and for a last bundle of fewer than B questions (whose scores are on another scale, and are not
    followed), the bundle's own.

    Raises:
        UsageError: an option out of range.
    """

    bundle: int = 5
    low: float = 0.2
    high: float = 0.8
    tail_weight: float = 1.5
    lr: float = 0.1
    share: Share = "deviation"
    normalise: bool = True
    shifted: bool = False
    seek_risk: bool = False
    epsilon: float = 1e-6
    _quantiles: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.bundle < 1 or not 0 < self.low < self.high < 1 or self.tail_weight < 0 or self.lr < 0:
            raise UsageError(
                "credit 'S069': needs bundle >= 1, 0 < low < high < 1, tail_weight >= 0 and lr >= 0, not "
                f"{self.bundle}, {self.low:g}, {self.high:g}, {self.tail_weight:g} and {self.lr:g}"
            )

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "quantiles of bundles", "normalisation": "bundle std" if self.normalise else "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        values = torch.zeros_like(rewards)
        followed: list[Tensor] = []
        for rows in self.papers(batch):
            scores = rewards[rows].sum(0)
            whole = len(rows) == self.bundle
            quantiles = self._quantiles if whole and self._quantiles else self.empirical(scores)
            if whole:
                followed.append(scores)
            means, stds = zip(*(self._moments(rewards, batch, int(row)) for row in rows[:, 0]), strict=True)
            values[rows] = self.shares(
                self.advantages(scores, quantiles), rewards[rows], torch.stack(means), torch.stack(stds)
            )
        if followed:
            self.follow(torch.cat(followed))
        return broadcast(values, batch)

    def papers(self, batch: Batch) -> list[Int[Tensor, "B G"]]:
        """Return each bundle's papers: which row answers question b in paper k."""
        questions = batch.prompt_group.unique()
        bundles = []
        for start in range(0, len(questions), self.bundle):
            asked = [
                ((batch.prompt_group == q) & batch.active).nonzero()[:, 0]
                for q in questions[start : start + self.bundle]
            ]
            asked = [rows for rows in asked if len(rows)]
            if asked:
                fewest = min(map(len, asked))
                bundles.append(torch.stack([rows[:fewest] for rows in asked]))
        return bundles

    def advantages(self, scores: Float[Tensor, "G"], quantiles: list[float]) -> Float[Tensor, "G"]:
        """Return A_k of a bundle's papers."""
        bottom, top = quantiles
        middle = (scores - bottom).clamp(min=0) - (scores - top).clamp(min=0)
        if self.shifted:
            middle = middle + bottom - top
        if self.seek_risk:
            tail = (scores - top).clamp(min=0) / (1 - self.high)
        else:
            tail = -(bottom - scores).clamp(min=0) / self.low
        mixed = (self.tail_weight * tail + middle / (self.high - self.low)) / (self.tail_weight + 1)
        return mixed / (_std(scores) + self.epsilon) if self.normalise else mixed

    def shares(
        self,
        advantages: Float[Tensor, "G"],
        rewards: Float[Tensor, "B G"],
        means: Float[Tensor, "B"],
        stds: Float[Tensor, "B"],
    ) -> Float[Tensor, "B G"]:
        """Share each paper's advantage out to its responses."""
        if self.share == "uniform":
            return advantages.expand(rewards.shape)
        if self.share == "std":
            return advantages / (stds[:, None] + self.epsilon)
        deviations = rewards - means[:, None]
        total = deviations.sum(0)
        told = total.abs() > 1e-6
        return advantages * torch.where(told, deviations / torch.where(told, total, 1), 1 / len(rewards))

    def empirical(self, scores: Float[Tensor, "G"]) -> list[float]:
        return [float(torch.quantile(scores.double(), level)) for level in (self.low, self.high)]

    def follow(self, scores: Float[Tensor, "G"]) -> None:
        """Let the quantiles take a step towards the scores of a batch's papers, or start from them."""
        if not self._quantiles:
            self._quantiles = self.empirical(scores)
            return
        self._quantiles = [
            q + self.lr * (level - float((scores < q).double().mean()))
            for q, level in zip(self._quantiles, (self.low, self.high), strict=True)
        ]

    def _moments(self, rewards: Float[Tensor, "N"], batch: Batch, row: int) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the rewards of a row's question."""
        mine = rewards[(batch.prompt_group == batch.prompt_group[row]) & batch.active]
        return mine.mean(), _std(mine)

    def state_dict(self) -> dict[str, Any]:
        return {"quantiles": list(self._quantiles)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._quantiles = [float(q) for q in state["quantiles"]]


def _std(x: Float[Tensor, "G"]) -> Float[Tensor, ""]:
    """The unbiased standard deviation, 1 where it is nearly 0 or not defined."""
    found = x.std() if len(x) > 1 else torch.zeros_like(x.sum())
    return torch.where(found > FLAT, found, torch.ones_like(found))


claims(
    CLAIM := Claim(
        paper="S069",
        text="At equal rollouts, the mixed value at risk of bundles of prompts gives a better policy than GRPO.",
        setting="tree",
        arms={"riskpo": {"name": "S069"}, "grpo": {"name": "grpo"}},
        better="riskpo",
        baseline="grpo",
        measure="final",
        options={"tasks": 10, "right": 2, "prompts": 10, "group": 10, "steps": 60, "optimizer": "adam"},
        sweep={"lr": (0.03, 0.1, 0.3, 1.0, 3.0)},
    ),
    replace(
        CLAIM,
        setting="unseen",
        options={"prompts": 10, "group": 10, "steps": 60},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
    Claim(
        paper="S069",
        name="mechanism",
        text="Weight on the lower tail of the bundles teaches hard questions sooner than weight on the upper one.",
        setting="unseen",
        arms={"averse": {"name": "S069"}, "seeking": {"name": "S069", "credit": {"seek_risk": True}}},
        better="averse",
        baseline="seeking",
        measure="hard/area",
        options={"prompts": 10, "group": 10, "steps": 40},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
        tuning=(1000, 1001),
    ),
)
