"""S155: imitate an expert on one's own states, also by going where he can be imitated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import clipped
from assay.ops import IMPOSSIBLE, Aggregation, aggregate, log_ratio, masked_mean
from assay.ops.divergence import bucketed, cross_entropy
from assay.rollout.reread.prompts import FEEDBACK, SOLUTION, TEMPLATE, Answered, Hindsight
from assay.select.shown import Shown
from assay.signals.reread.second_view import SecondView, Teacher, second_view

ANSWERED = "{question}\n\nThe correct answer is {answer}.\n\n"


@paper(
    "S155",
    "DistIL",
    arxiv="2606.05152",
    seams=["select", "objective"],
    essentials={
        "forward cross-entropy to the expert at every state the student visits": "test_costs_by_hand",
        "the gradient through which states are visited": "test_the_two_step_problem_by_hand",
        "in expectation the gradient is the exact one, with a baseline or without": (
            "test_the_expected_gradient_is_the_exact_one"
        ),
        "an expert who is known by his samples alone": "test_the_expert_may_be_known_by_samples_alone",
        "only forward cross-entropy follows a better expert to first order": "test_first_order_changes_by_hand",
        "future costs are of a whole group, in whichever micro-batches": "test_groups_are_not_split",
        "it trains a language model": "test_it_trains_a_language_model",
    },
    choices=(
        "the baseline: the mean future cost of a response's siblings at its position",
        "eta 1, no clip, no normalisation by length",
        "what the expert is shown",
    ),
)
def distil(
    eta: float = 1.0,
    baseline: Literal["siblings", "none"] = "siblings",
    clip: float | None = None,
    normalise: bool = False,
    expert: Literal["distribution", "samples"] = "distribution",
    k: int = 100,
    shown: Literal["hindsight", "answer"] = "hindsight",
    teacher: Teacher = "current",
    rate: float = 0.05,
    template: str | None = None,
    solution: str = SOLUTION,
    feedback: str = FEEDBACK,
) -> Method:
    """The expert is the policy that is shown more; it is imitated on the student's responses y.

        L = E_{y ~ pi} sum_t c_t,    c_t = -sum_a q(a | x', y_<t) log pi(a | x, y_<t)
        grad L = E sum_t [ grad c_t + eta grad log pi(y_t | x, y_<t) sg(C_t - b_t) ],    C_t = sum_{u > t} c_u

    With ``eta`` 1 that is the gradient of L with the expert as he is; with 0 it is blind to where a decision leads.

    Args:
        eta: weight of the future costs, at least 0.
        baseline: b, the mean C_t of the response's siblings at the same position, which changes no expectation.
        clip: half-width of the range of pi / pi_old in the second term, as PPO's; ``None`` for none.
        normalise: divide a response's sum by its length.
        expert: its ``distribution``, on the student's ``k`` likeliest tokens and the rest; or ``samples``, k drawn at
            every position: a black box.
        k: tokens.
        shown: ``hindsight``, a sibling's solution or feedback; or the ``answer``, ``task.reference``
            where it is a text or a number.
        teacher, rate: the expert's weights, see :func:`assay.signals.reread.second_view.second_view`.
        template, solution, feedback: of what is shown.

    Source: DistIL (arXiv 2606.05152). Its code is not known; the estimator follows from the objective.
    """
    view = (
        Answered(template or ANSWERED)
        if shown == "answer"
        else Hindsight(TEMPLATE if template is None else template, solution, feedback)
    )
    second = second_view(view, teacher, k, "drawn" if expert == "samples" else "likeliest", rate=rate)
    return Method(select=Shown(second), objective=VisitedStates(second, eta, baseline, clip, normalise))


@dataclass(frozen=True, slots=True)
class VisitedStates:
    """The loss of :func:`distil`, whose value is that of its first term.

    Args:
        view: the expert.
        eta, baseline, clip, normalise: see there.

    Raises:
        UsageError: ``eta`` or ``clip`` below 0.
    """

    view: SecondView
    eta: float = 1.0
    baseline: Literal["siblings", "none"] = "siblings"
    clip: float | None = None
    normalise: bool = False

    reads = "nothing"
    ignores_rewards = True
    live = frozenset({"candidate_logprobs"})
    whole_groups = True

    def __post_init__(self) -> None:
        if self.eta < 0 or (self.clip is not None and self.clip < 0):
            raise UsageError(f"objective 'S155': eta {self.eta:g} and clip {self.clip} must not be negative")

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.view})

    def costs(self, batch: Batch) -> Float[Tensor, "N T"]:
        """Return c, with a gradient."""
        student = batch.live["candidate_logprobs"].clamp(min=IMPOSSIBLE)
        if self.view.tokens == "drawn":
            return -student.mean(-1)
        return cross_entropy(bucketed(student), bucketed(batch.signals["teacher_logprobs"].to(student)))

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        used = batch.mask & batch.active[:, None]
        costs = torch.where(used, self.costs(batch), 0)
        future = to_come(costs.detach())
        surplus = future - of_siblings(future, batch, used) if self.baseline == "siblings" else future
        ratio = log_ratio(torch.where(used, logprobs, 0).clamp(min=IMPOSSIBLE), batch.logprobs, used).exp()
        bound = float("inf") if self.clip is None else self.clip
        visits = clipped(ratio, -torch.where(used, surplus, 0), bound, bound)
        # The second term is for its gradient; its value, which says nothing, is taken off.
        loss = costs + self.eta * (visits - visits.detach())
        mode: Aggregation = "sequence_mean" if self.normalise else "sequence_sum"
        metrics = {
            "distil/cost": float(masked_mean(costs.detach(), used)),
            "distil/future": float(masked_mean(future, used)),
        }
        return Loss(aggregate(loss, batch, mode), metrics)

    @property
    def summary(self) -> dict[str, str]:
        return {
            "ratio": "cross-entropy to an expert, and future costs by token",
            "clip": "none" if self.clip is None else f"[{1 - self.clip:g}, {1 + self.clip:g}]",
            "aggregation": "sequence mean" if self.normalise else "sequence sum",
        }


def to_come(costs: Float[Tensor, "N T"]) -> Float[Tensor, "N T"]:
    """Return the sum of the costs after each position."""
    return costs.flip(-1).cumsum(-1).flip(-1) - costs


def of_siblings(future: Float[Tensor, "N T"], batch: Batch, used: Bool[Tensor, "N T"]) -> Float[Tensor, "N T"]:
    """Return the mean at each position over the other responses of a group; 0 of a response that has none."""
    same = (batch.group[:, None] == batch.group[None]) & used.any(-1)[None]
    same = same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)
    weights = same.to(future.dtype)
    return weights @ future / weights.sum(-1, keepdim=True).clamp(min=1)


ANSWER: dict[str, Any] = {"shown": "answer", "template": "{answer}", "k": 8}

claims(
    Claim(
        paper="S155",
        text="Where the expert takes a fork as the student does and knows what to do on one side alone, the gradient "
        "through visited states leads the student there, which token-wise cross-entropy does not.",
        setting="fork",
        arms={
            "distil": {"name": "S155", "options": ANSWER},
            "local": {"name": "S155", "options": {**ANSWER, "eta": 0.0}},
        },
        better="distil",
        baseline="local",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    ),
)
