"""S081: train the probability of one reserved token after the response to be the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.ops import broadcast, group_mean, group_std
from assay.registry import build
from assay.signals.last_token import LastToken, finished


@paper(
    "S081",
    "LaSeR",
    arxiv="2510.14943",
    seams=["credit", "objective", "inference", "evaluate"],
    essentials={
        "self-reward: scaled log-probability of a reserved token right after the response, less a constant": (
            "test_the_target_of_the_verdict"
        ),
        "the squared error to the verifier's verdict is added to GRPO, both classes weighing the same": (
            "test_the_worked_example"
        ),
        "the gradient goes through that one position": (
            "test_with_an_output_row_of_its_own_the_verdict_hardly_touches_the_responses"
        ),
        "advantages are mixed with the standardised self-rewards, where these differ within the group": (
            "test_mixed_advantages"
        ),
        "GRPO first, then the square, then the mixture": "test_phases",
        "at test time the same token judges a response, and weighs its vote": "test_the_vote_asks_the_policy",
        "trained on it, the policy tells its right responses from wrong ones": (
            "test_training_the_verdict_tells_right_from_wrong"
        ),
    },
    choices=(
        "weights, steps and tokens as in the authors' code: alpha 0.1, tau 0.1, scale 0.1, 200 and 200 steps; in a run "
        "of fewer than 1000 steps a fifth of it each, so that all of it has its turn",
        "the reference is measured on the first step's responses unless given; where it is near 0 the scale is 2 by it",
        "a truncated response has a self-reward of 0 and no square",
        "classes are counted in each mini-batch; the authors' code counts them in the whole batch",
    ),
)
def laser(
    token: int = 0,
    alpha: float = 0.1,
    tau: float = 0.1,
    scale: float | None = None,
    reference: float | None = None,
    warmup: int | None = None,
    rest: int | None = None,
    balanced: bool = True,
) -> Method:
    """GRPO that also learns to judge its responses, by the probability of a reserved token c after their end.

        r_i = scale (log pi(c | x, y_i) - reference), at temperature 1
        L = L_GRPO + alpha mean_i w_i (r_i - R_i)^2 over responses that ended,  R_i in {0, 1} the verifier's verdict
        A_i <- (1 - tau) A_i + tau z_i,   z_i = (clip(r_i, 0, 1) - mean) / std over the group

    The square has a gradient through r_i; w_i = n / (2 n_c) with n_c of the mini-batch's n ended responses in the class
    of i. The first ``warmup`` steps are GRPO's, the square comes then, and the mixed advantages ``rest`` steps later; a
    group whose clipped r have a deviation of at most 0.1 keeps its own. A truncated response has r = 0 there. The
    policy calls a response right if r > 1/2, at the cost of one token: for evaluation see
    :func:`~assay.statistics.self_verification.self_verification`, for a vote weighted by clip(r, 0, 1) inference
    ``last_token_vote``.

    Args:
        token: id of c, which must never occur: 151652 of Qwen, 128002 of Llama 3; 0, the padding, of a nano model.
        alpha: weight of the square.
        tau: share of z; 0 keeps GRPO's advantages.
        scale, reference, warmup, rest: see :class:`~assay.signals.last_token.LastToken`.
        balanced: the weights w_i; else 1.

    With alpha = tau = 0 it is GRPO.

    Source: LaSeR (arXiv 2510.14943) and its authors' code. A scale that adapts to the reference is a choice.
    """
    verdict = LastToken(token, scale, reference, warmup, rest)
    return Method(
        credit=SelfRewardMix(tau=tau),
        objective=LastTokenLoss(alpha=alpha, balanced=balanced, verdict=verdict),
    )


@dataclass(frozen=True, slots=True)
class SelfRewardMix:
    """A_i of GRPO mixed with the standardised verdicts of the policy on itself, see :func:`laser`.

    Args:
        tau: share of the latter, in [0, 1].
        least: deviation of a group's clipped verdicts up to which they say nothing.

    Raises:
        UsageError: ``tau`` out of range.
        RunError: the objective is not the one that trains the verdict.
    """

    tau: float = 0.1
    least: float = 0.1

    group_relative = True
    beside = LastToken.name

    def __post_init__(self) -> None:
        if not 0 <= self.tau <= 1:
            raise UsageError(f"credit 'S081': tau {self.tau:g} is outside [0, 1]")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "group std"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        own = GRPO()(batch)
        if "self_verdict" not in batch.signals:
            raise RunError("credit 'S081' mixes in what objective 'S081' trains; take both")
        if not len(batch) or float(batch.signals["last_token_phase"][0]) < 2:
            return own
        scores = torch.where(finished(batch), batch.signals["self_verdict"], 0).clamp(0, 1).to(own.dtype)
        spread = group_std(scores, batch.group, batch.active)
        centred = scores - group_mean(scores, batch.group, batch.active)
        telling = spread > self.least
        theirs = broadcast(centred / torch.where(telling, spread, 1), batch)
        return torch.where(telling[:, None], (1 - self.tau) * own + self.tau * theirs, own)


@dataclass(frozen=True, slots=True)
class LastTokenLoss(ClippedSurrogate):
    """The clipped surrogate plus the squared error of the policy's verdict on itself, see :func:`laser`.

    Args:
        alpha: weight of the error, not negative.
        balanced: both classes of responses weigh the same in a mini-batch; a class that is absent weighs nothing.
        verdict: the signal ``last_token``.

    Raises:
        UsageError: ``alpha`` negative.
    """

    alpha: float = 0.1
    balanced: bool = True
    verdict: Any = "last_token"

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        object.__setattr__(self, "verdict", build("signal", self.verdict))
        if self.alpha < 0:
            raise UsageError(f"objective 'S081': alpha {self.alpha:g} must not be negative")

    @property
    def needs(self) -> frozenset[Any]:
        own = {self.verdict, f"policy_{self.verdict.quantity}"}
        return frozenset({*own, *ClippedSurrogate.needs.__get__(self)})

    @property
    def live(self) -> frozenset[str]:
        return frozenset({self.verdict.quantity, *ClippedSurrogate.live.__get__(self)})

    @property
    def zero_advantage_is_idle(self) -> bool:
        return self.alpha == 0 and bool(ClippedSurrogate.zero_advantage_is_idle.__get__(self))

    def planned(self, steps: int) -> None:
        """Tell the verdict how many steps the run has."""
        self.verdict.planned(steps)

    def prepare(self, batch: Batch) -> None:
        """Weigh the classes of a mini-batch before it is split, into ``batch.signals["last_token_weight"]``."""
        batch.signals["last_token_weight"] = self._weights(batch)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        loss = ClippedSurrogate.__call__(self, logprobs, batch)
        if not len(batch) or float(batch.signals["last_token_phase"][0]) < 1 or self.alpha == 0:
            return loss
        weights = batch.signals.get("last_token_weight")
        weights = (self._weights(batch) if weights is None else weights).to(logprobs.dtype)
        said = batch.live[self.verdict.quantity]
        scale, reference = batch.signals["last_token_scale"], batch.signals["last_token_reference"]
        score = scale.to(said.dtype) * (said - reference.to(said.dtype))
        target = torch.tensor([float(v.passed is True) for v in batch.verdicts], dtype=said.dtype, device=said.device)
        error = torch.where(weights > 0, weights * (score - target) ** 2, 0).sum()
        error = error / max((batch.totals or batch.count()).sequences, 1.0)
        return Loss(
            loss.value + self.alpha * error, {**loss.metrics, "self_verdict/score": float(score.detach().mean())}
        )

    def _weights(self, batch: Batch) -> Float[Tensor, "N"]:
        """n / (2 n_c) for responses that ended and are learned from, times the sample's own weight; else 0."""
        device = batch.rewards.device
        used = (batch.active & (batch.lengths > 0)).cpu() & finished(batch)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        weights = used.to(batch.rewards.dtype)
        if self.balanced:
            for kind in (used & right, used & ~right):
                weights[kind] = float(used.sum()) / (2 * max(float(kind.sum()), 1.0))
        return weights.to(device) * batch.weights


claims(
    Claim(
        paper="S081",
        text="At equal rollouts, a vote weighted by the last-token verdict on each response is right more often than "
        "GRPO's majority vote over as many responses.",
        setting="columns",
        arms={
            "grpo": {"name": "grpo"},
            "laser": {"name": "S081", "objective": {"verdict": {"name": "last_token", "warmup": 0, "rest": 10}}},
        },
        better="laser",
        baseline="grpo",
        measure="vote",
    ),
    Claim(
        paper="S081",
        name="mechanism",
        text="The last-token verdict, once trained, tells right responses to held-out tasks from wrong "
        "ones better than before it is trained.",
        setting="columns",
        arms={
            "untrained": {
                "name": "S081",
                "credit": {"tau": 0.0},
                "objective": {"alpha": 0.0, "verdict": {"name": "last_token", "warmup": 0, "rest": 10}},
            },
            "laser": {"name": "S081", "objective": {"verdict": {"name": "last_token", "warmup": 0, "rest": 10}}},
        },
        better="laser",
        baseline="untrained",
        measure="auroc",
        options={"steps": 15},
    ),
)
