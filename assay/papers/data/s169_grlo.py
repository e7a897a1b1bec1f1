"""S169: PPO on a reward model's scores of open-ended answers, and what carries over to tasks that can be checked."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.credit.gae import GAE
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.spec import reward_of


@paper(
    "S169",
    "GRLO",
    arxiv="2605.15464",
    seams=["reward", "credit", "objective"],
    essentials={
        "the reward is a reward model's score of prompt and response, at the last token": (
            "test_the_score_stands_at_the_last_token"
        ),
        "GAE with discount and decay 1, whitened": "test_the_worked_example",
        "a reward model on another scale teaches the same": "test_the_scale_of_the_reward_model_does_not_matter",
        "no divergence from a reference, no reward for form or correctness": "test_nothing_else_is_rewarded",
        "a critic that learns beside the policy": "test_the_recipe_measures_what_carries_over",
        "what carries over is measured before, between and after: open-ended first, verifiable rewards then": (
            "test_the_recipe_measures_what_carries_over"
        ),
    },
    choices=(
        "the clip range is 0.2 on both sides",
        "the manager of rewards that the authors' script names is not in their code: here it is the plain score",
    ),
    lacks="a recipe at small size, and no claim of the lab: what carries over needs models that know several domains",
)
def grlo(scorer: Any, discount: float = 1.0, decay: float = 1.0) -> Method:
    """PPO whose only reward is a reward model's score; ``assay train grlo`` goes on to verifiable rewards.

        R_i = r(x, y_i) at the last token
        delta_t = r_t + discount V_t+1 - V_t;   A_t = delta_t + discount decay A_t+1

    A is whitened over the tokens of the batch, so that the scale of r matters to the critic alone. There is no
    divergence term and no reward for form or correctness. The held-out tasks of the recipe are the verifiable ones:
    measured before, after the open-ended stage (what carries over), and after the other.

    Args:
        scorer: a reward: ``{name = "preference_model", source = ...}``, a function, or any other part.
        discount, decay: gamma and lambda.

    Source: GRLO (arXiv 2605.15464) and its authors' script.
    """
    return Method(
        reward=reward_of(scorer),
        credit=GAE(discount=discount, decay=decay),
        objective=ClippedSurrogate(kl_weight=0.0),
    )
