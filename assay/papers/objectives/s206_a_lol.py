"""S206: learn offline from the recorded responses that beat what the reference policy earns on their prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import IMPOSSIBLE, Aggregation, Estimator, broadcast, masked_mean
from assay.registry import build
from assay.signals.base import Signal
from assay.signals.prompt_value import PromptValue

Form = Literal["sequence", "token", "free", "gold"]
Draw = Literal["priority", "uniform", "all"]


@paper(
    "S206",
    "A-LoL",
    arxiv="2305.14718",
    seams=["curriculum", "rollout", "credit", "select", "objective"],
    essentials={
        "a whole response is one action, of advantage R - V(x)": "test_the_advantage_is_what_the_value_leaves",
        "V: an attention head on the frozen reference's prompt states, fitted to what its own samples earn": (
            "test_the_value_learns_which_prompts_are_hard_and_then_stays"
        ),
        "only responses of positive advantage are learned from, drawn in proportion to it": (
            "test_only_responses_above_the_value_are_drawn_in_proportion"
        ),
        "they are dropped and drawn over all of the data, before it is learned from": (
            "test_records_are_dropped_and_drawn_over_all_of_the_data"
        ),
        "the importance weight against the reference is one of the whole response, clipped, and constant": (
            "test_the_weight_of_a_whole_response"
        ),
        "variants: a weight for each token, without the reference, and with a divergence": "test_the_weights_of_tokens",
        "nothing is generated but for the value": "test_it_samples_only_until_the_value_is_fitted",
        "in training it earns more than imitation, and more than imitation weighted by the reward": (
            "test_it_earns_more_than_imitation"
        ),
    },
    choices=(
        "V is fitted at a rate of 1e-3 on the samples of ten steps, a fifth of the prompts held out; the paper takes "
        "1e-5 and the validation prompts",
        "a step draws prompts x group responses of the data, with replacement",
    ),
)
def a_lol(
    form: Form = "sequence",
    clip: float = 0.9,
    kl: float = 0.0,
    draw: Draw = "priority",
    value_steps: int = 10,
    value_epochs: int = 10,
    value_lr: float = 1e-3,
    max_value: float = 1.0,
    over: Literal["data", "step"] = "data",
    pool: int | None = None,
) -> Method:
    """GRPO replaced by an offline policy gradient that takes a whole recorded response as one action.

        A = R(x, y) - V(x); responses with A <= 0 are dropped
        L = mean A w (-sum_t log pi(y_t)),   w = clip(pi(y | x) / pi_ref(y | x), 1 - clip, 1 + clip)

    over responses drawn with probability proportional to A. w is constant, of the current policy; pi_ref is the policy
    that RL began with, which should have been fine-tuned on the data (the warm-up). V is a small head on the frozen
    reference's hidden states of the prompt, fitted once to what its own samples earn: only the first ``value_steps``
    steps generate, and they change no weight. Then A is known of every response of the data.

    Args:
        form: ``sequence`` as above; ``token``: A sum_t clip(pi_t / pi_ref,t) (-log pi_t), one weight for each token;
            ``free``: w = 1, without the reference; ``gold``: sum_t max(pi_t, 0.1) (-log pi_t).
        clip: half-width of the range of w.
        kl: weight of + sum_t (log pi - log pi_ref) in the loss; with ``free`` this is "A-LoL KL".
        draw: ``priority`` as above, ``uniform``: each response with A > 0 alike, ``all``: the others too.
        value_steps, value_epochs, value_lr: of V, see :class:`~assay.signals.prompt_value.PromptValue`.
        max_value: largest reward.
        over: whether responses are dropped and drawn over all of the ``data``, see
            :class:`~assay.curriculum.drawn.Drawn`, or among those of each ``step``, see :class:`PositiveLeftover`.
        pool: of the draws over data; an endless source needs one.

    Recorded responses stand in ``task.meta["responses"]``, see :class:`~assay.rollout.recorded.Recorded`. With credit
    ``reinforce`` and ``draw="all"`` it is "R-LoL", and with ``free`` besides weighted behaviour cloning.

    Source: A-LoL (arXiv 2305.14718) and its authors' code.
    """
    value = PromptValue(value_steps, value_epochs, value_lr, ceiling=max_value)
    return Method(
        rollout={"name": "recorded", "first": value},
        credit=Leftover(value),
        select=PositiveLeftover(draw, value),
        objective=Leftovers(form=form, clip=clip, kl_weight=kl),
        curriculum={"name": "drawn", "pool": pool} if over == "data" else "uniform",
    )


@dataclass(frozen=True, slots=True)
class Leftover:
    """A_it = R_i - V(x_i) on every token, V the signal ``prompt_value``."""

    value: Any = "prompt_value"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", build("signal", self.value))

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({self.value})

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "value of the prompt", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        return broadcast(batch.rewards - batch.signals["prompt_value"].to(batch.rewards.dtype), batch)


@dataclass(frozen=True, slots=True)
class PositiveLeftover:
    """Samples with A = R - V > 0, as often as they are drawn; 0 for the others and for those V is fitted on.

    In a step, as many draws with replacement as there are such samples, with probabilities proportional to A
    (``priority``): the weight of a sample is its count, over the mean count of those drawn at all, so that a mean over
    samples with non-zero weight is the mean over draws. ``uniform`` and ``all`` give weights of 1, without a draw, to
    samples with A > 0 and to all but those V is fitted on. What curriculum ``drawn`` has drawn from all the data, by
    :meth:`chances`, is not drawn again: its weights are 1 where A > 0.

    Args:
        draw: see above.
        value: the signal ``prompt_value``.
        seed: of the draws.
    """

    draw: Draw = "priority"
    value: Any = "prompt_value"
    seed: int = 0
    _drawn: dict[str, int] = field(default_factory=lambda: {"steps": 0}, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", build("signal", self.value))

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({self.value})

    @property
    def one_sided(self) -> bool:
        """Of rewards 0 and 1, only 1 is above a value between them."""
        return self.draw != "all"

    @property
    def ready(self) -> bool:
        """Whether V is known, and with it the advantage of any response."""
        return bool(self.value.ready)

    def chances(self, batch: Batch) -> Float[Tensor, "N"]:
        """Return what a response is drawn in proportion to: A where it is positive and else 0, or 1 and 0."""
        leftover = batch.rewards - batch.signals["prompt_value"].to(batch.rewards.dtype)
        data = torch.tensor([e.meta.get("role") != "value" and len(e.tokens) > 0 for e in batch.episodes])
        keep = data & batch.valid & ((leftover > 0) | (self.draw == "all"))
        return torch.where(keep, leftover, 0) if self.draw == "priority" else keep.to(batch.rewards.dtype)

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        found = self.chances(batch)
        if self.draw != "priority" or not bool(found.any()):
            return found
        if all(task.meta.get("drawn") for task in batch.tasks):
            return (found > 0).to(found.dtype)
        rng = np.random.default_rng([self.seed, self._drawn["steps"]])
        self._drawn["steps"] += 1
        chances = found.double().numpy()
        drawn = rng.multinomial(int((chances > 0).sum()), chances / chances.sum())
        counts = torch.from_numpy(drawn).to(batch.rewards.dtype)
        return counts * (counts > 0).sum() / counts.sum()

    def state_dict(self) -> dict[str, Any]:
        return dict(self._drawn)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._drawn.update(state)


@dataclass(frozen=True, slots=True)
class Leftovers(PolicyLoss):
    """l_it = A_it w_it (-log pi(y_t)) of :func:`a_lol`, summed over a response; w is constant.

    Shared terms as in :class:`~assay.objectives.policy_loss.PolicyLoss`; ``kl_weight`` is the paper's beta.

    Args:
        form: ``sequence``, ``token``, ``free`` or ``gold``.
        clip: half-width of the range of w, in [0, 1].
        floor: least weight under ``gold``.

    Raises:
        UsageError: ``clip`` out of range.
    """

    aggregation: Aggregation = "sequence_sum"
    kl_estimator: Estimator = "k1"
    form: Form = "sequence"
    clip: float = 0.9
    floor: float = 0.1

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        if not 0 <= self.clip <= 1:
            raise UsageError(f"objective 'S206': clip {self.clip:g} is outside [0, 1]")

    @property
    def needs(self) -> frozenset[str]:
        own = {"reference_logprobs"} if self.form in ("sequence", "token") else set()
        return frozenset({*own, *PolicyLoss.needs.__get__(self)})

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        here = r.logprobs.detach()
        if self.form in ("sequence", "token"):
            known = torch.where(r.mask, r.batch.signals["reference_logprobs"], 0).clamp(min=IMPOSSIBLE).to(here.dtype)
            gap = here - known
            if self.form == "sequence":
                gap = gap.sum(-1, keepdim=True).expand_as(gap)
            ratio = gap.clamp(-20, 20).exp()
            weight = ratio.clamp(1 - self.clip, 1 + self.clip)
        elif self.form == "gold":
            ratio = here.exp()
            weight = ratio.clamp(min=self.floor)
        else:
            ratio = weight = torch.ones_like(here)
        clipped = masked_mean((weight != ratio).to(here.dtype), r.mask)
        metrics: dict[str, Any] = {"a_lol/weight": masked_mean(weight, r.mask), "clip_fraction": clipped}
        return -r.advantages * weight * r.logprobs, metrics

    def words(self) -> tuple[str, str]:
        bounds = f"[{1 - self.clip:g}, {1 + self.clip:g}]"
        return {
            "sequence": ("sequence, to the reference", bounds),
            "token": ("token, to the reference", bounds),
            "free": ("none", "none"),
            "gold": ("token probability", f"at least {self.floor:g}"),
        }[self.form]


STEP = {"curriculum": "uniform"}
"""Of an arm that drops and draws among the records of a step, which are of all questions in the setting."""

claims(
    Claim(
        paper="S206",
        text="From the same recorded responses and the same fine-tuned start, A-LoL ends with a higher expected reward "
        "than imitation weighted by the reward.",
        setting="offline",
        arms={
            "imitation": {
                "name": "S206",
                "credit": "reinforce",
                "select": {"draw": "all"},
                "objective": {"form": "free"},
                **STEP,
            },
            "free": {"name": "S206", "objective": {"form": "free"}, **STEP},
            "a-lol": {"name": "S206", **STEP},
        },
        better="a-lol",
        baseline="imitation",
        measure="final",
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
