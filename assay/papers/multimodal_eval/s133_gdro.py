"""S133: a flow learns from groups of drawings on record, ranked by their rewards, and draws none."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.drawings.group_ranking import GroupRanking
from assay.rewards.outcome.corrected import Corrected
from assay.signals.drawings.noised import Noised

__all__ = ["Corrected", "GroupRanking", "Noised", "gdro"]


@paper(
    "S133",
    "GDRO",
    arxiv="2601.02036",
    seams=["rollout", "objective", "reward"],
    essentials={
        "scores of denoising errors against the reference, targets over what remains": "test_the_worked_examples",
        "two samples and order alone are Diffusion-DPO": "test_two_samples_are_a_pair",
        "a group has one noise level, each sample noise of its own, the same for the reference": (
            "test_levels_are_shared_and_noise_is_not"
        ),
        "the error of the best sample alone is added": "test_the_best_alone_is_shown",
        "at the reference the loss is log k!": "test_the_worked_examples",
        "drawings and rewards on record alone, nothing is drawn": "test_it_trains_on_what_is_on_record",
        "the corrected score": "test_a_score_counts_as_far_as_it_is_any_good",
    },
    choices=(
        "errors are summed over dimensions; the paper does not say, and beta goes with it",
        "the noise level is uniform",
        "the mean over groups",
    ),
)
def gdro(beta: float = 12.0, tau: float = 0.05, gamma: float = 0.5, reduce: Literal["sum", "mean"] = "sum") -> Method:
    """Offline learning of a flow from groups of its drawings and their rewards.

        e_j = |v - v_theta(x_t)|^2,   s_j = -beta (e_j - e_ref,j),   q_i(j) = softmax over j >= i of r_j / tau
        L = sum_{i<k} [log sum_{m>=i} exp(s_m) - sum_{j>=i} q_i(j) s_j] + gamma e_1

    The drawings stand in ``task.meta["responses"]`` with their rewards (six to a prompt, drawn before by the policy
    that training begins with), and as many of them as ``rollout.group`` says make a group; a model that draws is
    ``source = "flow"``. Whether the reward is hacked, reward ``corrected`` tells.

    Args:
        beta, tau, gamma, reduce: see :class:`~assay.objectives.drawings.group_ranking.GroupRanking`.

    Source: GDRO (arXiv 2601.02036), with FLUX.1-dev: k = 6, tau .05, beta 12 and gamma .5 (text in pictures), 6 and 1
    (GenEval).
    """
    return Method(rollout="recorded", objective=GroupRanking(beta, tau, gamma, reduce))


claims(
    Claim(
        paper="S133",
        text="From drawings and rewards on record alone, ranking whole groups makes a flow's drawings better than "
        "imitating the best of each group.",
        setting="ring",
        arms={
            "ranking": {"name": "S133", "options": {"beta": 0.5}},
            "best": {"name": "S133", "options": {"beta": 0.0}},
            "unranked": {"name": "S133", "options": {"beta": 0.5, "tau": 1000.0}},
        },
        better="ranking",
        baseline="best",
        measure="final",
        options={"records": 256, "prompts": 16, "group": 6, "steps": 200},
        sweep={"lr": (3e-4, 1e-3, 3e-3)},
    )
)
