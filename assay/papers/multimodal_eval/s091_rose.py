"""S091: branch where the next word is open in meaning, credit each branch by what it added, and trim long answers."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.branch_values import BranchValues
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.select.reward_std import RewardSpread


@paper(
    "S091",
    "ROSE",
    arxiv="2601.05053",
    seams=["rollout", "credit", "select", "objective", "inference"],
    essentials={
        "semantic entropy: entropy of the next token times how far apart the likeliest tokens' embeddings are": (
            "test_a_language_model_branches_by_its_own_embeddings"
        ),
        "how far apart: minus the sum over pairs of different tokens of p_i p_j cos(e_i, e_j)": (
            "test_opposites_are_more_open_than_synonyms"
        ),
        "responses branch before the position of largest semantic entropy, with probability eps from the prompt": (
            "test_responses_branch_at_the_most_open_position_not_yet_used"
        ),
        "what follows a branch is drawn from the policy": (
            "test_a_response_is_drawn_from_the_policy_wherever_it_branches"
        ),
        "advantages by segment: what each branch point adds to the mean outcome of those through it": (
            "test_advantages_of_a_tree_of_four"
        ),
        "right responses lose by their length against the shortest right one, after the branch they share": (
            "test_long_right_answers_lose_after_the_branch_they_share_with_the_shortest"
        ),
        "Dr. GRPO's loss: clipped, tokens summed and divided by the longest length, a KL term, equal groups out": (
            "test_the_loss_is_dr_grpos"
        ),
        "a step of training raises the likelihood of what a branch added": "test_a_step_reinforces_what_a_branch_added",
    },
    choices=(
        "branch points are known by the tokens before them and used once; the authors' code knows them by depth",
        "no branch point before the first token, where the authors' code may start a response anew",
        "entropy of all tokens, as in the paper; the authors' code sums over the 20 likeliest",
        "alpha: 1, of the paper's .5 to 3",
        "one round of generation in a step, of which groups of equal rewards are left out; the authors' script asks "
        "other prompts in their place, in up to 8 rounds (``rounds = 8``)",
        "tokens of a tabular policy, which have no embeddings, are equally unlike each other",
    ),
)
def rose(
    eps: float = 0.5,
    top: int = 20,
    alpha: float = 1.0,
    kl_weight: float = 0.001,
    max_length: int = 4096,
    rounds: int = 1,
) -> Method:
    """Dr. GRPO on trees of responses that branch at semantic uncertainty, with advantages by segment.

        SE_t = H_t SD_t,   H = -sum p ln p,   SD = -sum_{i != j} p_i p_j cos(e_i, e_j)   of the ``top`` likeliest
        response 1 from the prompt; each further one with probability eps too, else from the largest SE not yet used
        A on tokens between branch points k_j and k_{j+1}:  V(k_{j+1}) - V(k_j);  after the last:  R - V(k_m)
        right responses longer than the shortest right one b, after the last shared branch point k_c:
                A <- A - |A| (1 - ((L_b - k_c) / (L_i - k_c))^alpha)
        loss: clipped, tokens summed and divided by a constant, + kl_weight KL; groups of equal rewards left out

    V is the mean outcome of the group's responses through a branch point. With eps = 1 and alpha = 0 it is Dr. GRPO.
    At test time the same branching votes: inference ``semantic_branching``.

    Args:
        eps, top: see :class:`~assay.rollout.semantic_branching.SemanticBranching`.
        alpha: of the length term; 0.5 to 3 in the paper.
        kl_weight: of the divergence from the reference policy.
        max_length: the constant, the longest response in tokens.
        rounds: of generation in a step, at most; above 1 other prompts are asked in place of groups left out.

    Source: ROSE (arXiv 2601.05053) and its authors' code. Branch points are known here by the tokens before them and
    used once each, where that code knows them by their depth.
    """
    return Method(
        credit=BranchValues(alpha),
        select=RewardSpread(beta=0.0, least=1e-6, rounds=rounds),
        objective=ClippedSurrogate(aggregation="constant", max_length=max_length, kl_weight=kl_weight),
        rollout={"name": "semantic_branching", "eps": eps, "top": top},
    )


claims(
    Claim(
        paper="S091",
        text="At equal responses, branching at semantic uncertainty with advantages by segment learns faster than "
        "Dr. GRPO, whose advantage is one number for a response.",
        setting="tree",
        arms={
            "dr grpo": {
                "name": "grpo",
                "credit": {"normalise": False},
                "objective": {"name": "clip", "aggregation": "constant", "max_length": 5},
            },
            "rose": {"name": "S091", "objective": {"max_length": 5, "kl_weight": 0.0}},
        },
        better="rose",
        baseline="dr grpo",
        measure="area",
        options={"tasks": 2, "branching": 3, "depth": 5, "right": 8, "clustered": True, "steps": 40, "prompts": 2},
        sweep={"lr": (3.0, 10.0, 30.0, 100.0)},
    )
)
