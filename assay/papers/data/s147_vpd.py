"""S147: the policy with feedback is itself trained on outcomes, and what it then says is distilled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.objectives.second_view import Distilled
from assay.ops import IMPOSSIBLE
from assay.policies.base import Policy
from assay.rollout.reread.prompts import FEEDBACK, SOLUTION, TEMPLATE, Hindsight
from assay.select.shown import Shown
from assay.signals.base import Models
from assay.signals.implicit_reward import labelled
from assay.signals.reread.second_view import SecondView


@paper(
    "S147",
    "VPD",
    arxiv="2605.15113",
    seams=["select", "objective"],
    essentials={
        "an unpaired preference loss on right and wrong responses, its shift the middle of their means": (
            "test_the_loss_by_hand"
        ),
        "one side alone where the other is empty": "test_one_side_alone",
        "the anchor is the current student, without a gradient": "test_the_gradient_is_through_the_longer_prompt_alone",
        "teacher and student are one network under two prompts": "test_both_steps_move_one_network",
        "E-steps every few steps, M-steps at each, which reads the teacher anew": "test_the_cadence",
        "the reverse divergence on the student's own responses": "test_the_cadence",
        "without E-steps nothing is learned from feedback that is not heeded": (
            "test_in_the_lab_the_teacher_learns_to_heed_feedback"
        ),
        "feedback by self-critique, where nothing else is said": "test_the_policy_says_what_is_wrong",
        "it trains a language model, and goes on from a checkpoint": "test_it_trains_a_language_model",
    },
    choices=(
        "log-ratios are sums over tokens, not means",
        "the E-step has an optimiser and a learning rate of its own, the policy's where it is not given",
        "the M-step is on the student's likeliest tokens and the rest",
        "what is shown: a sibling's solution, or else the verifier's words, or the policy's own on its attempt",
        "the critic's words; it is told that the attempt failed, and no more",
    ),
)
def vpd(
    every: int = 5,
    beta: float = 0.1,
    lr: float | None = None,
    k: int = 100,
    weight_cap: float | None = None,
    template: str = TEMPLATE,
    solution: str = SOLUTION,
    feedback: str = FEEDBACK,
    when: Literal["alone", "also"] = "alone",
    threshold: float = 0.5,
    critique: bool = False,
) -> Method:
    """Expectation-maximisation of the policy pi(y | x) and of q(y | x, C), the same weights told of feedback C.

        E: -mean_{right} log s(r_i - d) - mean_{wrong} log s(d - r_i),    s the logistic function
           r_i = beta sum_t [log q(y_t | x, C_i, y_<t) - sg log pi(y_t | x, y_<t)],   d the middle of the two means of r
        M: sum_t KL(pi(. | x, y_<t) || sg q(. | x, C, y_<t)), a mean over tokens

    Args:
        every: steps from one E-step to the next, which comes before the M-step; 0 for none, which is S031 with the
            current teacher and alpha 1.
        beta: above 0.
        lr: of the E-step.
        k: tokens of the M-step's divergence.
        weight_cap: see :class:`assay.objectives.second_view.Distilled`.
        template, solution, feedback, when, threshold: what C is, see :class:`assay.rollout.reread.prompts.Hindsight`.
        critique: what is said of a response that the verifier says nothing of is the policy's own critique, see
            :class:`assay.rollout.surgery.self_critiqued.SelfCritiqued`, the method's rollout then.

    Source: Variational Policy Distillation (arXiv 2605.15113).
    """
    words = Hindsight(template, solution, feedback, when, threshold)
    view = TaughtView(words, k=k, every=every, beta=beta, lr=lr) if every else SecondView(words, k=k)
    rollout = "self_critiqued" if critique else "single_turn"
    return Method(select=Shown(view), objective=Distilled(view, 1.0, weight_cap=weight_cap), rollout=rollout)


def unpaired_loss(rewards: Float[Tensor, "N"], right: Bool[Tensor, "N"]) -> Float[Tensor, ""]:
    """-mean_{right} log s(r - d) - mean_{wrong} log s(d - r), d = (mean_{right} r + mean_{wrong} r) / 2, constant.

    If there are responses of one side alone, d is their mean, and the other term is left out.

    Source: binary classifier optimisation (arXiv 2404.04656), with its shift between the two batch means.
    """
    sides = [(rewards[right], 1.0), (rewards[~right], -1.0)]
    known = [(r, sign) for r, sign in sides if len(r)]
    shift = sum(r.detach().mean() for r, _ in known) / len(known)
    return -sum((torch.nn.functional.logsigmoid(sign * (r - shift)).mean() for r, sign in known), rewards.new_zeros(()))


@dataclass(frozen=True)
class TaughtView(SecondView):
    """A second view by the current policy, which every few steps first learns from outcomes what to make of it.

    Args:
        every, beta, lr: see :func:`vpd`.
        max_grad_norm: L2 norm that the E-step's gradient is scaled down to.

    Raises:
        UsageError: a number that is not above 0.
    """

    every: int = 5
    beta: float = 0.1
    lr: float | None = None
    max_grad_norm: float = 1.0
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    turn = "before"
    trains_model = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.every >= 1 and self.beta > 0 and self.max_grad_norm > 0 and (self.lr is None or self.lr > 0)):
            raise UsageError(
                f"S147: every {self.every}, beta {self.beta:g}, lr {self.lr} and max_grad_norm {self.max_grad_norm:g} "
                "must be above 0; every = 0 is without E"
            )

    def check(self, policy: Policy) -> None:
        """Raise UsageError for weights of which either optimiser would keep copies of its own: each step would undo the
        other's."""
        if any(p.requires_grad and p.dtype in (torch.bfloat16, torch.float16) for p in policy.module.parameters()):
            raise UsageError(
                "S147's E-step and M-step change the same weights, of which in low precision each keeps a float32 copy "
                'that undoes the other\'s steps; set model.dtype = "float32"'
            )

    def start(self, models: Models) -> None:
        """Make the E-step's optimiser, over the policy's weights."""
        self._kept.update(optimizer=models.optimizer(models.policy.module.parameters(), self.lr or models.lr), steps=0)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Take the E-step, if it is time; metrics ``vpd/loss``, ``vpd/grad_norm`` and ``vpd/gap``, the mean r of right
        responses less that of wrong ones before it.

        Raises:
            RunError: the gradient is not finite, as it is where the loss is not.
        """
        self._kept["steps"] += 1
        if (self._kept["steps"] - 1) % self.every:
            return {}
        prompts = self.read_under(batch, models)
        right, judged = labelled(batch.verdicts)
        index = torch.tensor([i for i, p in enumerate(prompts) if p is not None and judged[i]], dtype=torch.int64)
        if not len(index):
            return {}
        work = batch.rows(index)
        read = self.shown(work, [prompts[i] for i in index.tolist()])
        prior = models.quantities(work, {"logprobs"})["logprobs"]
        told = models.quantities(read, {"logprobs"})["logprobs"]
        gap = torch.where(work.mask, told.clamp(min=IMPOSSIBLE) - prior.clamp(min=IMPOSSIBLE), 0)
        rewards = (self.beta * gap.sum(-1)).requires_grad_()
        right = right[index]
        loss = unpaired_loss(rewards, right)
        [slope] = torch.autograd.grad(loss, rewards)
        optimizer = self._kept["optimizer"]
        optimizer.zero_grad()
        for rows in models.policy.micro_batches(read, models.token_budget):
            part = read.rows(rows)
            logprobs = models.policy.forward(part, (), models.temperature).logprobs
            pull = torch.where(part.mask, self.beta * slope[rows][:, None], 0).to(logprobs)
            (pull * logprobs.clamp(min=IMPOSSIBLE)).sum().backward()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm))
        if not math.isfinite(norm):
            raise RunError(f"VPD's E-step: loss {loss.item()} with gradient norm {norm}; lower its lr")
        optimizer.step()
        optimizer.zero_grad()
        metrics = {"vpd/loss": loss.item(), "vpd/grad_norm": norm}
        if bool(right.any()) and not bool(right.all()):
            metrics["vpd/gap"] = (rewards[right].mean() - rewards[~right].mean()).item()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self._kept["optimizer"].state_dict(), "steps": self._kept["steps"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._kept["optimizer"].load_state_dict(state["optimizer"])
        self._kept["steps"] = state["steps"]


REMARKS: dict[str, Any] = {
    "template": "{question} {shown}",
    "feedback": "{feedback}",
    "solution": "right {solution}",
    "k": 20,
    "lr": 0.1,
}
"""How remarks are written in setting ``feedback``."""

claims(
    Claim(
        paper="S147",
        text="Where the policy does not yet heed feedback, training the teacher on outcomes makes distilling it work; "
        "an untrained teacher has nothing to tell.",
        setting="feedback",
        arms={
            "vpd": {"name": "S147", "options": REMARKS},
            "untrained": {"name": "S147", "options": {**REMARKS, "every": 0}},
        },
        better="vpd",
        baseline="untrained",
        measure="area",
        options={"trust": 0.0, "hard": 0.5},
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    ),
)
