"""S024: the reward is the label of a classification, the response's mean log-ratio its score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from assay.batch import Batch, Loss
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.labels import counted, labels, response_score
from assay.objectives.preference import By

Form = Literal["relational", "pointwise"]


@paper(
    "S024",
    "REAL",
    arxiv="2602.05630",
    seams=["objective"],
    essentials={
        "the score of a response is its mean log-ratio; a logit of 0 is the anchor between right and wrong": (
            "test_the_worked_example"
        ),
        "the reward is the label: a softmax loss over right ones, and one over wrong ones, of each prompt": (
            "test_the_first_update_of_a_lopsided_group"
        ),
        "gradients bounded by 1 / tau": "test_no_response_is_pulled_harder_than_the_inverse_temperature",
        "the better a response is placed, the weaker its pull": (
            "test_the_pull_weakens_as_a_response_is_placed_better"
        ),
        "the comparison with single labels (binary cross-entropy)": "test_the_pointwise_form",
        "no clip, no divergence, no advantage; tau 0.5": "test_the_first_and_the_second_update_of_a_policy",
    },
    choices=(
        "prompts of one class add nothing but count in the mean, as in the authors' code",
        "a reward above 0.5 makes a response right",
        "a sample's weight counts as so many copies of it",
    ),
)
def real(temperature: float = 0.5, form: Form = "relational", by: By = "reward", threshold: float = 0.5) -> Method:
    """GRPO with a classification loss in place of ratio, clip and advantage: right responses above 0, wrong ones below.

        s_i = 1/T_i sum_t (log pi - log pi_old)
        L_q = log(1 + sum_{i right} exp(-s_i / tau)) + log(1 + sum_{i wrong} exp(s_i / tau))

    averaged over the mini-batch's prompts; a prompt whose responses are all right or all wrong adds 0 (leave it out of
    the average with select = "dapo"). The pull on a right response is 1 / (tau (1 + C exp(s_i / tau))), C = 1 +
    sum_{other right} exp(-s / tau), and likewise for a wrong one: below 1 / tau, and weaker the better the response is
    placed already, where that of a ratio grows without bound.

    Args:
        temperature: tau, above 0.
        form: ``relational`` as above; ``pointwise``: the mean over the responses of mixed groups of the binary
            cross-entropy of sigmoid(s_i / tau), the paper's comparison.
        by, threshold: which responses are right: those with a reward above ``threshold``, or by ``verdict``.

    Source: "Rewards as Labels" (arXiv 2602.05630) and its authors' code.
    """
    return Method(objective=RewardsAsLabels(temperature, form, by, threshold))


@dataclass(frozen=True, slots=True)
class RewardsAsLabels:
    """The loss of :func:`real`. Responses without learnable tokens are left out; sample weights count as copies.

    Raises:
        UsageError: ``temperature`` not above 0.
    """

    temperature: float = 0.5
    form: Form = "relational"
    by: By = "reward"
    threshold: float = 0.5

    reads = "nothing"
    whole_groups = True

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"objective 'S024': temperature {self.temperature:g} must be above 0")

    def prepare(self, batch: Batch) -> None:
        """Find the share of each response in a mini-batch's mean before it is split."""
        if self.form == "pointwise":
            batch.signals["real_share"] = self._shares(batch)

    def _mixed(self, batch: Batch) -> tuple[Bool[Tensor, "K N"], Bool[Tensor, "K"]]:
        """Members of each group that are learned from, and which groups have right and wrong ones."""
        right, use = labels(batch, self.by, self.threshold), counted(batch)
        member = (batch.group[None] == batch.group[use].unique()[:, None]) & use[None]
        return member, (member & right).any(-1) & (member & ~right).any(-1)

    def _shares(self, batch: Batch) -> Float[Tensor, "N"]:
        """Weights of sum 1 over the responses of mixed groups."""
        member, mixed = self._mixed(batch)
        weights = torch.where(member[mixed].any(0), batch.weights, 0)
        return weights / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        scores = response_score(logprobs, batch, "mean")
        right, use, totals = labels(batch, self.by, self.threshold), counted(batch), batch.totals or batch.count()
        weights = torch.where(use, batch.weights, 0).to(scores.dtype)
        gap = scores.detach()[use & right], scores.detach()[use & ~right]
        metrics = {"real/margin": float(gap[0].mean() - gap[1].mean())} if min(map(len, gap)) else {}
        if self.form == "pointwise":
            shares = batch.signals.get("real_share")
            shares = (self._shares(batch) if shares is None else shares).to(scores.dtype)
            target = right.to(scores.dtype)
            loss = binary_cross_entropy_with_logits(scores / self.temperature, target, shares, reduction="sum")
            return Loss(loss, metrics)
        member, mixed = self._mixed(batch)
        metrics["real/mixed"] = float(mixed.to(scores.dtype).mean()) if len(mixed) else 0.0
        ours, theirs = (member & right)[mixed], (member & ~right)[mixed]
        losses = self._side(-scores, weights, ours) + self._side(scores, weights, theirs)
        # Without a mixed group the loss is a constant zero; it still has to have a gradient.
        return Loss(losses.sum() / max(totals.groups, 1.0) + 0 * scores.sum(), metrics)

    def _side(
        self, signed: Float[Tensor, "N"], weights: Float[Tensor, "N"], member: Bool[Tensor, "K N"]
    ) -> Float[Tensor, "K"]:
        """log(1 + sum of w exp(signed / tau) over the members) of each of K groups."""
        terms = signed / self.temperature + weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        anchored = torch.cat([torch.where(member, terms[None], -torch.inf), terms.new_zeros(len(member), 1)], 1)
        return anchored.logsumexp(1)

    @property
    def summary(self) -> dict[str, str]:
        return {"ratio": "sequence, mean log-ratio", "clip": "none", "aggregation": "group mean", "KL": "none"}


claims(
    CLAIM := Claim(
        paper="S024",
        text="At equal rollouts, classifying responses by their rewards gives a better policy than GRPO.",
        setting="tree",
        arms={"real": {"name": "S024"}, "grpo": {"name": "grpo"}},
        better="real",
        baseline="grpo",
        measure="final",
        options={"tasks": 16, "right": 2, "prompts": 8, "steps": 60, "epochs": 4, "optimizer": "adam"},
        sweep={"lr": (0.03, 0.1, 0.3, 1.0)},
    ),
    replace(CLAIM, setting="unseen", options={"epochs": 4, "steps": 50}, sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)}),
)
