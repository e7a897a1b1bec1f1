"""S010: the reward of a whole response, divided among its pieces as a cooperative game divides what players earn."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.gae import GAE
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.rewards.judged import judged
from assay.rewards.judges.reference_judge import ReferenceJudge
from assay.rewards.process.shapley import Form, Shares
from assay.rewards.shaping.weighted import WeightedSum
from assay.signals.steps import Steps

SENTENCES = Steps("sentence")


@paper(
    "S010",
    "dense rewards (SCAR)",
    arxiv="2512.04302",
    seams=["reward", "credit"],
    essentials={
        "a piece of a response is paid its Shapley value of the whole's reward": (
            "test_shares_are_means_over_orders_and_add_up"
        ),
        "Owen values on nested halves where pieces are many": "test_scores_needed_grow_with_the_square",
        "what is paid adds up to the reward, so the best policy stays the best": (
            "test_what_a_response_earns_in_all_is_its_score"
        ),
        "parts of a response are scored by what scores the whole, a judge or a verifier": (
            "test_a_judge_scores_the_parts_in_one_call"
        ),
        "returns from each piece on, whose policy gradient is the reward's where it is a sum over pieces": (
            "test_returns_of_shares_estimate_the_gradient_where_the_score_is_a_sum_or_its_differences"
        ),
        "it is learned from": "test_it_acts_in_training",
    },
    choices=(
        "pieces are sentences, exact up to 6 and joined beyond 16",
        "a divergence of weight 0.01, decay 0.95",
    ),
    lacks="a proposal of three directions, of which only the one for language models is here: no subgoals for agents, "
    "no rewards shared by tasks",
)
def dense_rewards(
    score: Any = "verifier",
    pieces: Steps = SENTENCES,
    form: Form = "shapley",
    dense: float = 1.0,
    exact: int = 6,
    most: int = 16,
    kl_weight: float = 0.01,
    critic: Any = "critic",
) -> Method:
    """PPO with a critic where each piece of a response is paid its Shapley value of the score, when it is written.

        r_k = dense phi_k on the last token of piece k,  and (1 - dense) R at the end;   sum_k phi_k = R
        phi_k = sum over S without k of |S|! (n - |S| - 1)! / n! (v(S + k) - v(S)),  v(all) = R, v(nothing) = 0
        A by GAE with discount 1 and decay 0.95, whitened; clipped surrogate; -kl_weight k1 on every token

    v(S) is the score of the text made of the pieces in S alone, so no process labels are needed; for many pieces Owen
    values on nested halves take the place of Shapley's. Every response earns in all what it did, so the best policy
    stays the best. What a piece earns may depend on pieces after it (two that say the same share what one would have
    earned): sums from a token on then leave out a part of what a token changed, and the policy gradient is that of R
    only where v is a sum over pieces. ``form = "prefix"``, phi_k = v(1..k) - v(1..k-1), is a difference of potentials
    and has no such bias. A score that needs the whole response (a final answer) gives all to the piece it is in.

    Args:
        score: v: ``verifier``; a function, or ``path/to/file.py:name``; a verifier; or a judge: an engine, which is
            asked for the probability that a text means what the reference does. See
            :class:`assay.rewards.process.shapley.Shares`.
        pieces: how responses are cut.
        form: ``shapley``, ``owen`` or ``prefix``.
        dense: share of the reward that is divided, in [0, 1]; 0 is PPO on R.
        exact: pieces up to which Shapley's values are exact.
        most: pieces; neighbours are joined beyond.
        kl_weight: of the divergence from the reference policy; a choice.
        critic: see :class:`assay.signals.critic.Critic`.

    Source: "Towards better dense rewards in Reinforcement Learning Applications" (arXiv 2512.04302), its method for
    language models, SCAR (arXiv 2505.20417). The two others, subgoals embedded by a graph of states for hierarchical
    agents and rewards from structure shared by tasks in continual learning, have no counterpart here.
    """
    if not 0 <= dense <= 1:
        raise UsageError(f"reward 'S010': dense {dense:g} is outside [0, 1]")
    v = ReferenceJudge(score, shown="response") if isinstance(score, Engine) else score
    reward = Divided(Shares(v, pieces, form, exact, most), dense)
    return Method(
        reward=WeightedSum({"shares": reward, "kl": "kl"}, {"kl": kl_weight}) if kl_weight else reward,
        credit=GAE(discount=1.0, decay=0.95, critic=critic),
    )


class Divided:
    """r_k = dense phi_k on the tokens where the signal ``shares`` has phi_k, and R_i = (1 - dense) sum_k phi_k.

    No reward where shares could not be told or the verifier failed. Terms: ``score``, the sum of the shares;
    ``largest``, the largest of them as a share of their absolute sum, 1 for a score that one piece earns alone.

    Args:
        shares: the signal.
        dense: in [0, 1].
    """

    def __init__(self, shares: Shares, dense: float = 1.0):
        self.shares, self.dense = shares, dense

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.shares})

    def __call__(self, batch: Batch) -> Reward:
        shares = batch.signals["shares"].to(batch.rewards.dtype)
        told = ~shares.isnan().any(-1)
        shares = torch.where(told[:, None], shares, 0)
        score, size = shares.sum(-1), shares.abs().sum(-1)
        most = shares.abs().amax(-1) if shares.shape[1] else torch.zeros_like(size)
        terms = {"score": score, "largest": torch.where(size > 0, most / torch.where(size > 0, size, 1), 0)}
        return Reward((1 - self.dense) * score, self.dense * shares, judged(batch) & told, terms)


CREDIT = {"name": "gae", "critic": {"name": "critic", "lr": 0.1}}


def _divided(form: str) -> dict[str, Any]:
    reward = {"name": "S010", "score": "here", "pieces": {"by": "fixed", "size": 1}, "form": form, "kl_weight": 0.0}
    return {"name": "S010", "reward": reward, "credit": CREDIT}


claims(
    Claim(
        paper="S010",
        text="Where a response is scored by how many of the wanted words it has, a policy learns faster if the score "
        "is divided among its words by Shapley's values than if it is paid at the end.",
        setting="keywords",
        arms={
            "shapley": _divided("shapley"),
            "prefix": _divided("prefix"),
            "end": {"name": "S010", "reward": "verdict", "credit": CREDIT},
        },
        better="shapley",
        baseline="end",
        measure="area",
        sweep={"lr": (10.0, 30.0, 100.0, 300.0)},
    )
)
