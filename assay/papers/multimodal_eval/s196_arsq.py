"""S196: soft Q-learning of continuous actions that are chosen bin by bin, each in view of those before."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.off_policy.soft_bins import Margin, SoftBins
from assay.policies.control.binned import BinnedPolicy
from assay.rewards.outcome.verdict import VerdictReward
from assay.select.off_policy.soft_bins import SoftBinTargets

__all__ = ["BinnedPolicy", "SoftBinTargets", "SoftBins", "arsq"]


@paper(
    "S196",
    "ARSQ",
    arxiv="2502.00288",
    seams=["select", "objective", "policies"],
    essentials={
        "bins within bins, level by level, dimensions within": "test_the_worked_bins",
        "A = u - alpha logsumexp(u / alpha) at each decision, in view of those before": "test_the_worked_advantages",
        "Q = V + sum A, so that alpha logsumexp over all actions of Q / alpha is V": "test_the_identity",
        "acting by the smaller advantages of twins": "test_the_smaller_twin_acts",
        "targets r + discount (1 - done) min(V_1', V_2')(s') of a slow copy": "test_targets_by_hand",
        "half of a batch is of demonstrations, held above other bins by either margin": "test_losses_by_hand",
        "the joint optimum, where bins chosen without a view of each other miss it": "test_the_joint_optimum",
        "it trains from demonstrations and play": "test_it_trains",
    },
    choices=(
        "margins: weight 1, tau 0.1, over bins other than the one shown, a mean over all that was drawn",
        "targets of one step; a buffer of what was played beside that of the record, each step as likely",
        "states are vectors; no pictures, no distributional values",
        "records are one's own, in the layout of D4RL",
    ),
    lacks="RLBench, and pictures",
)
def arsq(
    data: dict[str, Any] | None = None,
    offline: int = 0,
    updates: int = 1,
    batch: int = 256,
    capacity: int = 100_000,
    discount: float = 0.99,
    rate: float = 0.02,
    weight: float = 1.0,
    margin: Margin = "cql",
    tau: float = 0.1,
) -> Method:
    """Values of whole actions are sums of what their bins add; their softmax, bin after bin, acts.

        Q_k(s, a) = V_k(s) + sum_i A_k,i[b_i],   A_k,i = u_k,i - alpha logsumexp(u_k,i / alpha)
        loss = sum_k (Q_k(s, a) - r - discount (1 - done) min(V_1', V_2')(s'))^2 + weight [demonstrated] margin

    The policy is one of bins, and its learning rate that of the values::

        model = {source = "control", control = {environment = "point_mass", decisions = "bins", levels = 3, bins = 5}}

        [method]
        name = "S196"
        rollout = "vector"
        options = {updates = 100, data = {environment = "point_mass", mix = {expert = 10}}}

    Args:
        data, offline, updates, batch, capacity, discount, rate: see
            :class:`~assay.select.off_policy.soft_bins.SoftBinTargets`.
        weight, margin, tau: see :class:`~assay.objectives.off_policy.soft_bins.SoftBins`.

    Source: ARSQ (arXiv 2502.00288) and its authors' code: 3 levels of 5 bins, alpha 0.001, AdamW, slow copies at 0.005
    to 0.02.
    """
    select = SoftBinTargets(data, offline, updates, batch, capacity, discount, rate)
    return Method(VerdictReward(), GRPO(), select, SoftBins(weight, margin, tau))


claims(
    Claim(
        paper="S196",
        text="Where the best bin of one dimension depends on another's, bins chosen in view of each other find the "
        "best action, and bins chosen apart do not.",
        setting="joint_bins",
        arms={
            "conditioned": {"method": {"name": "S196"}, "conditioned": True},
            "apart": {"method": {"name": "S196"}, "conditioned": False},
        },
        better="conditioned",
        baseline="apart",
        measure="value",
        sweep={"lr": (3e-3, 1e-2, 3e-2)},
    )
)
