"""S137: rewards of tokens that a model gives itself by contrastive prompts, as a regulariser of preference learning."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO, SimPO
from assay.ops import IMPOSSIBLE
from assay.registry import build, part
from assay.rollout.templates import through_template
from assay.signals.base import Models, with_prompts
from assay.signals.scorer import loaded

BETTER = (
    "{question}\n\nWrite a revised response that is helpful, correct, coherent and concise: it makes no mistake, and "
    "says what is needed and no more."
)
WORSE = (
    "{question}\n\nWrite a revised response that is unhelpful, incorrect, incoherent and verbose: it makes mistakes, "
    "and says what is not needed."
)
CACHED = 20_000
"""Responses whose token rewards are remembered."""


@paper(
    "S137",
    "T-REG",
    arxiv="2412.02685",
    seams=["objective", "reward"],
    essentials={
        "token rewards from one model under two prompts": "test_token_rewards_by_hand",
        "by a frozen evaluator, once for each response": "test_they_are_computed_once_by_the_reference",
        "the regulariser is on chosen and rejected responses alike": "test_the_loss_by_hand",
        "the sequence weight is that of the gradient, detached": "test_the_weight_is_that_of_the_gradient",
        "the gradient raises tokens with a positive reward and lowers others": (
            "test_the_gradient_raises_praised_tokens_in_both_responses"
        ),
        "SimPO with the same regulariser": "test_simpo_takes_the_same_regulariser",
        "its baselines: rewards of 1 on the chosen alone, a weight of 1, rewards of a DPO model": "test_baselines",
        "pairs are the best and the worst of a prompt's responses by their reward": (
            "test_the_pair_is_the_best_and_the_worst_of_five"
        ),
        "a token that the evaluator blames loses although its response is chosen": (
            "test_a_blamed_token_of_a_chosen_response_loses"
        ),
    },
    choices=("the two prompts", "beta", "alpha 0.25, of the paper's 0.1, 0.25 and 0.5"),
)
def t_reg(
    alpha: float = 0.25,
    beta: float | None = None,
    loss: Literal["dpo", "simpo"] = "dpo",
    rewards: Any = "contrast",
    weighted: bool = True,
    better: str = BETTER,
    worse: str = WORSE,
    rollout: Any = "recorded",
) -> Method:
    """DPO or SimPO on the best and the worst response, and on the tokens of both a pull towards rewards of their own.

        r_t = sigmoid(log p(y_t | x_better, y_<t) - log p(y_t | x_worse, y_<t)) - 1/2          p: the reference policy
        L_REG(y) = -sum_t beta r_t log pi(y_t | x, y_<t)
        L = L_DPO + alpha w (L_REG(y_w) + L_REG(y_l)),    w = sigmoid(m_l - m_w), detached

    x_better asks for a helpful, correct, coherent and concise response, x_worse for the opposite. m is beta times the
    log-ratio of a response to the reference; w is what the gradient of DPO weighs a pair by. With SimPO m is beta times
    the mean log-probability, and w has its margin in it.

    Args:
        alpha: weight of the regulariser, at least 0; 0 is the plain loss.
        beta: of the loss; 0.1 with DPO and 2 with SimPO if ``None``.
        loss: ``dpo`` or ``simpo``.
        rewards: ``contrast``, as above; ``chosen``: 1 on every token of the chosen response and 0 on the rejected (DPO
            with SFT); or a model, whose log-ratio to the reference takes the place of the contrast (a DPO model).
        weighted: ``False`` for w = 1.
        better, worse: templates with ``{question}``.
        rollout: by default responses on record, in ``task.meta["responses"]``.

    Source: T-REG (arXiv 2412.02685).
    """
    source = None if rewards == "chosen" else Contrast(better, worse, None if rewards == "contrast" else rewards)
    regulariser = TokenRewards(alpha, source, weighted) if alpha else None
    made: DPO | SimPO = DPO(0.1 if beta is None else beta, regulariser=regulariser)
    if loss == "simpo":
        made = SimPO(2.0 if beta is None else beta, regulariser=regulariser)
    if alpha < 0:
        raise UsageError(f"S137: alpha {alpha:g} must be at least 0")
    return Method(select=build("select", "pairs"), objective=PickedPairs(made), rollout=rollout)


@part("signal", "contrast")
@dataclass(frozen=True, slots=True)
class Contrast:
    """Signal ``contrast`` ``(N, T)``: sigmoid(a_t - b_t) - 1/2, in (-1/2, 1/2), of each token; 0 outside responses.

    a_t and b_t are its log-probabilities under the two prompts, by the reference policy at temperature 1. With
    ``model`` a_t is that model's and b_t the reference's, both under the prompt itself. A response that does not fit
    the context behind one of the prompts has 0 throughout. As the evaluators are frozen, each response is read once,
    by itself: what it gets depends on nothing else.

    Args:
        better, worse: templates with ``{question}``.
        model: a hub id, a folder, a table or a policy; ``None`` for the contrast of prompts.

    Raises:
        UsageError: the templates are equal, or the model cannot be loaded.
    """

    better: str = BETTER
    worse: str = WORSE
    model: Any = None
    _known: dict[tuple[bytes, bytes], Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    name = "contrast"
    models = frozenset({"reference"})

    def __post_init__(self) -> None:
        if self.better == self.worse:
            raise UsageError("signal 'contrast': the two templates are equal, so that there is no contrast")
        if self.model is not None:
            object.__setattr__(self, "model", loaded(self.model, self.name))

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        out = torch.zeros_like(batch.logprobs)
        for i, episode in enumerate(batch.episodes):
            key = (np.asarray(episode.prompt).tobytes(), np.asarray(episode.tokens).tobytes())
            if key not in self._known:
                while len(self._known) >= CACHED:
                    del self._known[next(iter(self._known))]
                self._known[key] = self.read(batch.rows(torch.tensor([i])), models)
            found = self._known[key]
            out[i, : len(found)] = found.to(out)
        return torch.where(batch.mask, out, 0)

    def read(self, one: Batch, models: Models) -> Float[Tensor, "T"]:
        """Return the rewards of the tokens of one response."""
        plain = replace(models, temperature=1.0)
        if self.model is not None:
            pair = [replace(plain, policy=self.model).quantities(one, {"logprobs"})["logprobs"][0]]
            return self._squashed(pair[0], plain.quantities(one, {"logprobs"}, "reference")["logprobs"][0])
        sides = []
        for template in (self.better, self.worse):
            prompt = np.asarray(models.encode(through_template(one.tasks[0].prompt, template)), dtype=np.int64)
            context = getattr(models.policy, "context", None)
            if context is not None and len(prompt) + one.tokens.shape[1] > context:
                return torch.zeros(one.tokens.shape[1], dtype=one.logprobs.dtype)
            shown = with_prompts(one, [prompt])
            sides.append(plain.quantities(shown, {"logprobs"}, "reference")["logprobs"][0])
        return self._squashed(*sides)

    @staticmethod
    def _squashed(better: Float[Tensor, "T"], worse: Float[Tensor, "T"]) -> Float[Tensor, "T"]:
        return torch.sigmoid(better.clamp(min=IMPOSSIBLE) - worse.clamp(min=IMPOSSIBLE)) - 0.5


@dataclass(frozen=True, slots=True)
class TokenRewards:
    """alpha w (L_REG(y_w) + L_REG(y_l)), see :func:`t_reg`.

    Args:
        alpha: above 0.
        source: of the token rewards; ``None`` for 1 on the chosen and 0 on the rejected.
        weighted: whether w is that of the gradient, rather than 1.
    """

    alpha: float
    source: Contrast | None
    weighted: bool = True

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset() if self.source is None else frozenset({self.source})

    def __call__(
        self,
        logits: Float[Tensor, "P"],
        better: Int[Tensor, "P"],
        worse: Int[Tensor, "P"],
        logprobs: Float[Tensor, "N T"],
        batch: Batch,
        beta: float,
    ) -> Float[Tensor, "P"]:
        mask = batch.mask & batch.active[:, None]
        rewards = torch.ones_like(logprobs) if self.source is None else batch.signals["contrast"].to(logprobs)
        penalty = -beta * torch.where(mask, rewards * logprobs.clamp(min=IMPOSSIBLE), 0).sum(-1)
        both = penalty[better] if self.source is None else penalty[better] + penalty[worse]
        weight = torch.sigmoid(-logits.detach()) if self.weighted else torch.ones_like(both)
        return self.alpha * weight * both


PROMPTS = {"better": "{question}/3", "worse": "{question}/4"}
"""How the evaluator's prompts of setting ``token_blame`` are written."""
ARMS: dict[str, dict[str, Any]] = {
    "t-reg": {"name": "S137", "options": PROMPTS},
    "dpo": {"name": "S137", "options": {**PROMPTS, "alpha": 0.0}},
}

claims(
    Claim(
        paper="S137",
        text="From pairs whose better response has flaws of its own, token rewards lead to more right tokens than DPO.",
        setting="token_blame",
        evidence="mechanism",
        arms=ARMS,
        better="t-reg",
        baseline="dpo",
        measure="right",
        sweep={"lr": (10.0, 30.0, 100.0, 300.0)},
    ),
    Claim(
        paper="S137",
        text="Wrong tokens within better responses become less likely than under DPO, which goes by whole responses.",
        setting="token_blame",
        name="blame",
        evidence="mechanism",
        arms=ARMS,
        better="t-reg",
        baseline="dpo",
        measure="blamed",
        sweep={"lr": (10.0, 30.0, 100.0, 300.0)},
    ),
)
