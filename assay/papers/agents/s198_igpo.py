"""S198: a turn is worth what it adds to the likelihood of the right answer, by the policy's own account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_group import TurnGroup
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.ops import group_mean
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.likelihood.information_gain import InformationGain
from assay.rewards.shaping.weighted import WeightedSum
from assay.signals.turns.likelihood import BRIDGE, CLOSE, TurnLikelihood


@paper(
    "S198",
    "IGPO",
    arxiv="2510.14967",
    seams=["reward", "credit", "objective"],
    essentials={
        "after every turn the right answer is scored by the sampling weights, behind a fixed bridge": (
            "test_what_is_scored_after_every_turn"
        ),
        "its tokens are found in the whole text, not written apart": "test_the_answers_tokens_are_found_in_the_whole",
        "the likelihood is the geometric mean over its tokens, of several answers of the first": (
            "test_the_likelihood_of_an_answer"
        ),
        "a turn earns the difference, the last one what the answer is worth": "test_the_worked_example",
        "an answer is worth its word F1, and -2 where none stands": "test_an_answers_words",
        "rewards of all turns of a group are normalised together, then summed over later turns": (
            "test_the_worked_example"
        ),
        "or gains and answers apart": "test_gains_and_answers_apart",
        "or returns by token less the group's mean at the same token": "test_returns_by_token",
        "gains telescope": "test_gains_add_up",
        "what cannot be scored has gained nothing": "test_what_cannot_be_scored",
        "groups without a right answer learn": "test_a_group_without_a_right_answer_learns",
        "what shows the answer is worth more than nothing": "test_to_be_shown_the_answer_is_a_gain",
        "it trains by searching": "test_it_trains_by_searching",
    },
    choices=(
        "the unbiased deviation",
        "an answer that is malformed earns -2, as in the authors' code",
        "gains are weighted as the answer is (weight 1)",
    ),
)
def igpo(
    answer: Any = "answer_f1",
    weight: float = 1.0,
    logarithm: bool = False,
    normalise: Literal["together", "apart", "token"] = "together",
    discount: float = 1.0,
    ddof: int = 1,
    bridge: str = BRIDGE,
    close: str = CLOSE,
    kl_weight: float = 1e-3,
) -> Method:
    """GRPO of turns that are worth the gain in the likelihood p of the right answer, and at last the answer itself.

        r_it = weight (p_{t+1} - p_t) for all turns but the last,  r_iT = F1 of the answer, -2 where there is none
        A_it = sum_{k >= t} discount^(k - t) (r_ik - mean r) / (std r + epsilon),  over all turns of the group

    p_t is the policy's own, before turn t, see :class:`~assay.signals.turns.likelihood.TurnLikelihood`: no judge, no
    other model. Where all answers of a group are wrong, turns still differ. For episodes of several turns, whose tasks
    have a text for a reference, such as ``search``::

        [method]
        name = "S198"
        rollout = {name = "multi_turn", environment = {name = "search", protocol = "tags"}, turns = 10}

    Args:
        answer: a reward part, of the response as a whole; e.g. ``{name = "answer_f1", malformed = 0.0}``.
        weight: of gains.
        logarithm: gains of log-probabilities; their weight should be small.
        normalise: rewards ``together``; gains and answers ``apart``; or (``token``, the authors' code) returns by token
            less the mean of the group's at the same token, without a deviation.
        discount: per turn, per token with ``token``.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        bridge, close: what the answer stands between when it is scored.
        kl_weight: of the divergence (k3) from the model it began with.

    Source: IGPO (arXiv 2510.14967) and its authors' code. Its runs: 16 rollouts of up to 10 turns, learning rate 1e-6.
    """
    gain = InformationGain(TurnLikelihood(bridge, close), logarithm)
    together = TurnGroup("task" if normalise == "together" else "last", "after", discount, ddof=ddof)
    return Method(
        reward=WeightedSum({"answer": answer, "gain": gain}, {"gain": weight}),
        credit=TokenReturns(discount) if normalise == "token" else together,
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


@dataclass(frozen=True, slots=True)
class TokenReturns:
    """A_it = sum_{u >= t} discount^(u - t) r_iu - the mean of that over the group's responses with a token t.

    Args:
        discount: per learnable token, in [0, 1].
    """

    discount: float = 1.0

    group_relative = True
    level = "token"

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean at the same token", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        returns = returns_to_go(placed_rewards(batch), batch.mask, self.discount)
        use = batch.mask & batch.active[:, None]
        columns = [group_mean(x, batch.group, here) for x, here in zip(returns.T, use.T, strict=True)]
        mean = torch.stack(columns, 1) if columns else torch.zeros_like(returns)
        return torch.where(use, returns - mean, 0)


claims(
    Claim(
        paper="S198",
        text="Where few answers are right at first, a policy that reads comes to answer questions sooner by what turns "
        "add to the likelihood of the answer than by the answer alone.",
        setting="lookups",
        arms={
            "igpo": {"name": "S198", "options": {"bridge": "<answer>", "close": "</answer>", "kl_weight": 0.0}},
            "grpo": {"name": "grpo", "reward": "answer_f1"},
        },
        better="igpo",
        baseline="grpo",
        measure="area",
        sweep={"lr": (3.0, 10.0, 30.0, 100.0)},
        tuning=(1000, 1001),
    )
)
