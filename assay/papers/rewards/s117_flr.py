"""S117: of a prompt's responses, prefer the one after which thanks are likelier than complaints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.picked_pairs import PickedPairs
from assay.rewards.judges.follow_up import FollowUpReward
from assay.select.pairs import Pairs
from assay.tasks.files.feedback import OPENING


@paper(
    "S117",
    "FLR",
    arxiv="2409.13948",
    seams=["reward", "select", "objective"],
    essentials={
        "a response is scored by the mean log-likelihood of follow-ups as the user's next turn": (
            "test_follow_ups_are_the_users_next_turn"
        ),
        "the reward is positive follow-ups' likelihood less negative ones'": "test_the_worked_example",
        "ten follow-ups of either kind for each of six aspects, which weigh the same": (
            "test_aspects_weigh_the_same_whatever_they_list"
        ),
        "of a prompt's responses the best and the worst are a pair for DPO": "test_the_best_is_preferred_to_the_worst",
        "other losses of preferences, such as KTO, can learn from the pairs": "test_options_reach_their_parts",
        "a scorer that was fine-tuned on feedback plays the user, roles swapped": (
            "test_roles_are_swapped_for_a_scorer_that_plays_the_user"
        ),
        "such a scorer is fine-tuned on what users said of responses, and reads just what it was tuned on": (
            "test_feedback_is_trained_as_it_is_scored"
        ),
        "after it, it tells from each other what users like and what they do not": "test_a_scorer_is_tuned_on_feedback",
        "a policy learns responses that please, without labels": "test_the_setting",
    },
    choices=(
        "the follow-ups are worded here; that all aspects weigh the same is not said",
        "pairs are of every step's responses; the paper's are made once, from the initial policy (train.steps = 1)",
        "log-likelihoods, as in the paper; the authors' script averages logits read at one position",
        "of a conversation with feedback the feedback alone is learned, and the words of the opening turn are ours",
        "a tuned scorer reads the whole conversation; the authors' script its last question and the response alone",
    ),
)
def flr(
    aspects: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    scorer: Any = "reference",
    opening: str | bool | None = None,
    margin: float | None = None,
    loss: Literal["dpo", "ipo", "kto"] = "dpo",
    beta: float = 0.1,
) -> Method:
    """DPO in place of GRPO, on the best and the worst response by how likely a user's reactions to them are.

        s(f) = mean_t log p(f_t | conversation, response, f_<t), f the user's next turn
        R_i = mean over aspects of (mean over positive f of s(f) - mean over negative f of s(f))
        pair (w, l): the responses of a prompt with the highest and the lowest R
        L = -log sigmoid(beta (log pi(y_w)/pi_ref(y_w) - log pi(y_l)/pi_ref(y_l))), pi_ref as RL began

    A scorer is tuned on rows of ``prompt``, ``response`` and ``feedback`` by ``assay train sft
    tasks.source.name=feedback tasks.source.path=feedback.jsonl``; then ``scorer = "runs/sft"``, ``opening = true``.

    No labels and no verifier are used. The reward can be used by itself: ``make_method("grpo", reward="S117")``.

    Args:
        aspects: follow-ups, see :class:`~assay.rewards.judges.follow_up.FollowUpReward`; by default ten of either kind
            for each of understanding, relevance, correctness, engagingness, informativeness and instruction following.
        scorer: whose p; another model than the policy, perhaps fine-tuned on feedback of users, is named here.
        opening: first turn for such a scorer that was fine-tuned with roles swapped; ``true`` for that of tasks
            ``feedback``, see :class:`~assay.tasks.files.feedback.Feedback`.
        margin: least difference of a pair's rewards; ``None`` for any.
        loss, beta: of preferences.

    The authors' script averages raw logits of a follow-up's tokens, all read at one position; here they are
    log-likelihoods, as in the paper. That all aspects weigh the same is a choice. The paper makes pairs once, from the
    initial policy; here they are made of every step's responses.

    Source: Follow-up Likelihood as Reward (arXiv 2409.13948) and the authors' code.
    """
    first = OPENING if opening is True else opening or None
    return Method(
        reward=FollowUpReward(aspects, scorer, first),
        select=Pairs(margin=margin),
        objective=PickedPairs({"name": loss, "beta": beta}),
    )


def in_lab(negative: int) -> dict[str, Any]:
    """An arm of the setting ``reactions``, of whose follow-ups the first 10 are positive and the others are not."""
    lists = {"positive": [str(k) for k in range(10)], "negative": [str(k) for k in range(10, 10 + negative)]}
    return {"name": "S117", "reward": {"name": "follow_up", "aspects": {"all": lists}}}


claims(
    Claim(
        paper="S117",
        text="Where after some responses any reaction is likelier than after others, pairs made by how much likelier "
        "the positive ones are than the negative teach more than pairs made by the positive ones alone.",
        setting="reactions",
        evidence="construction",
        arms={"positive": in_lab(0), "contrast": in_lab(10)},
        better="contrast",
        baseline="positive",
        measure="area",
        sweep={"lr": (0.03, 0.1, 0.3, 1.0)},
    )
)
