"""S221: only the prompts of a batch that are solved best have their length penalised."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.rewards.length.gated import GatedLength


@paper(
    "S221",
    "GRPO-lambda",
    arxiv="2505.18086",
    seams=["reward"],
    essentials={
        "each prompt's share of right responses decides between a length penalty and the plain 0/1 reward": (
            "test_the_best_share_of_the_batch_is_gated"
        ),
        "the top lambda of the batch's prompts are penalised, ranked by that share": (
            "test_ties_go_to_the_earlier_prompt_and_the_number_is_rounded_down"
        ),
        "on penalised prompts a right response is worth less the longer it is, and a wrong one nothing": (
            "test_the_penalty_by_hand"
        ),
        "the other prompts have GRPO's rewards and advantages": "test_without_a_share_it_is_grpo",
        "in training it shortens answers to easy prompts and spares hard ones the price": (
            "test_in_training_the_gate_shortens_less_than_a_penalty_everywhere_and_keeps_more_right"
        ),
    },
    choices=(
        "alpha 0.2; lambda is that of the paper's figure, 0.2, rounded down to a number of prompts and at least one",
        "a prompt that was never solved is not penalised, whatever its rank",
    ),
)
def grpo_lambda(share: float = 0.2, alpha: float = 0.2, threshold: float | None = None) -> Method:
    """GRPO whose right responses are worth less the longer they are, on the prompts that the policy solves best.

        p_b = share of right responses of prompt b; the max(1, floor(share B)) prompts of highest p_b > 0 are gated
        R_i = 1[right] (1 - alpha sigmoid((T_i - mu_b) / (sd_b + 1e-7)))    on gated prompts
        R_i = 1[right]                                                      on all others

    mu_b and sd_b are mean and (population) standard deviation of the lengths of the prompt's right responses. A prompt
    that is not yet solved needs its length; a penalty everywhere makes accuracy collapse. ``share=0`` is GRPO,
    ``share=1`` the penalty everywhere.

    Args:
        share: lambda, of the batch's B prompts, in [0, 1].
        alpha: greatest loss of a right response, in [0, 1].
        threshold: gate by p_b >= threshold instead of by rank.

    Source: "Stable Reinforcement Learning for Efficient Reasoning" (arXiv 2505.18086), by notes on it that quote its
    rewards; its alpha is not known.
    """
    return Method(reward=GatedLength(share=share, alpha=alpha, threshold=threshold))


claims(
    Claim(
        paper="S221",
        text="A length penalty on the prompts that are solved best keeps more accuracy than the same penalty on all.",
        setting="lengths",
        arms={
            "gated": {"name": "S221"},
            "always": {"name": "S221", "reward": {"share": 1.0}},
            "none": {"name": "grpo"},
        },
        better="gated",
        baseline="always",
        measure="accuracy",
        options={"steps": 200},
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
    )
)
