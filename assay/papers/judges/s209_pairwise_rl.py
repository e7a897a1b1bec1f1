"""S209: a judge of pairs trains the policy in the way that it was trained itself: by comparison with an answer."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.gae import GAE
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.judges.both_orders import BothOrders
from assay.registry import build
from assay.rewards.judges.anchored_pairs import AnchoredPairs
from assay.rewards.judges.pair_judge import pair_judge_of
from assay.rewards.shaping.weighted import WeightedSum


@paper(
    "S209",
    "Pairwise-RL",
    arxiv="2504.04950",
    seams=["reward", "credit", "objective", "policies"],
    essentials={
        "the judge reads both answers and says which is better by its next token": "test_what_a_judge_learns_from",
        "it learns by cross-entropy in both orders": "test_the_loss_by_hand",
        "and is pulled to say the same in either": "test_the_loss_by_hand",
        "the reward is the preference over the prompt's own answer, of both orders": "test_worked_numbers",
        "an answer like it earns 0, whatever place is liked": "test_the_anchor_earns_nothing",
        "what a prompt adds to all scores cancels": "test_an_offset_cancels",
        "PPO with a critic and a penalty on the divergence": "test_it_acts_in_training",
        "the judge is trained in assay train": "test_a_judge_is_trained",
    },
    choices=(
        "the reward is p - 1/2, or its logit if asked for; a later report of its laboratory, Seed1.5-Thinking, "
        "takes the probability of such a judge as it is",
        "the consistency of both orders is a square, with weight 1",
        "probabilities are of all tokens in training, and of the two names in use",
        "the critic does not see the prompt's own answer",
        "GAE with lambda 0.95, penalty 0.05",
    ),
    lacks="the paper's own term of consistency and its weight",
)
def pairwise_rl(
    judge: Any = None,
    form: Literal["probability", "logit"] = "probability",
    kl_weight: float = 0.05,
    credit: Any = None,
    stage: Literal["policy", "judge"] = "policy",
    weight: float = 1.0,
) -> Method:
    """PPO on preferences over each prompt's own answer, by a judge of pairs; or, in the stage before, that judge.

        judge:   L = -log P(right name | order 1) - log P(right name | order 2) + weight (p_12 + p_21 - 1)^2
        policy:  r = p(y is better than a) - 1/2,   p the mean of both orders;   PPO with token penalty and critic

    The judge keeps the head of the language model. It is trained on tasks ``recorded`` with ``stage = "judge"``, and
    then named by ``judge = {name = "hf", model = ...}``.

    Args:
        judge, form: see :class:`~assay.rewards.judges.anchored_pairs.AnchoredPairs`; the judge's template and names are
            those that the judge is trained with.
        kl_weight: of the divergence from the reference policy, on tokens.
        credit: by default GAE with a critic.
        stage: which of the two.
        weight: see :class:`~assay.objectives.judges.both_orders.BothOrders`.

    Source: Pairwise-RL (arXiv 2504.04950).
    """
    if stage == "judge":
        names = {}
        if isinstance(judge, dict):
            names = {k: judge[k] for k in ("template", "names", "escape") if k in judge}
        return Method(rollout={"name": "pair_orders", **names}, objective=BothOrders(weight))
    pairs = AnchoredPairs(pair_judge_of(judge), form)
    reward = WeightedSum({"pairs": pairs, "kl": "kl"}, {"kl": kl_weight}) if kl_weight else pairs
    return Method(
        reward=reward,
        credit=GAE(discount=1.0, decay=0.95) if credit is None else build("credit", credit),
        objective=ClippedSurrogate(),
    )


CREDIT = {"name": "gae", "critic": {"name": "critic", "lr": 0.1}}
OPTIONS = {"kl_weight": 0.0, "credit": CREDIT}

claims(
    Claim(
        paper="S209",
        text="PPO on comparisons with each prompt's own answer comes to better answers than PPO on the same judge's "
        "scores, to which each prompt adds something of its own.",
        setting="uncalibrated",
        evidence="mechanism",
        arms={
            "compared": {"name": "S209", "judge": "here", "options": OPTIONS},
            "logits": {"name": "S209", "judge": "here", "options": {**OPTIONS, "form": "logit"}},
            "scored": {"name": "grpo", "credit": CREDIT, "reward": "here"},
        },
        better="compared",
        baseline="scored",
        measure="worth",
        sweep={"lr": (0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    )
)
