"""S130: process supervision without people: the first error of wrong responses, by binary search."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.inference.supervision.searches import FirstErrors
from assay.inference.supervision.train import PRMMethod
from assay.rewards.step_models.training import StepTraining


@paper(
    "S130",
    "OmegaPRM",
    arxiv="2406.06592",
    seams=["tasks", "policies", "inference"],
    essentials={
        "a beginning's value is the share of its completions that are right": (
            "test_values_of_beginnings_come_near_those_of_the_tree"
        ),
        "the first error of a wrong response is found by binary search": (
            "test_the_first_error_is_found_in_about_log2_of_the_steps"
        ),
        "which beginning and which wrong response comes next: Q + U": "test_which_search_comes_next",
        "completions are used again: their wrong ones join the pool, and whole questions of one outcome are left out": (
            "test_the_pool_and_what_is_left_out"
        ),
        "soft, hard and pairwise labels": "test_soft_hard_and_pairwise_labels_of_one_tree",
        "a solution is scored by the product of its steps, and votes are weighed by that": (
            "test_the_product_of_steps_chooses_and_votes"
        ),
        "made and used from the command line": "test_made_and_used_from_the_command_line",
    },
    choices=(
        "L counts tokens, 500 as in the paper",
        "steps are cut by the text, where the paper halves down to a sixteenth of an average solution",
        "that a question has one outcome alone is told by its first k responses, where the paper asks for 32",
        "wrong responses that were searched are examples, 0 at their ends, and so are all responses to the question",
        "beginnings that were not tested have no label",
        "a linear head on the model's own states, 20 epochs, unless asked otherwise",
    ),
)
def omegaprm(
    k: int = 8,
    searches: int = 100,
    rollouts: int | None = None,
    a: float = 0.5,
    b: float = 0.9,
    length: float = 500.0,
    c: float = 0.125,
    scan: Literal["binary", "linear"] = "binary",
    labels: Literal["soft", "hard", "pairs"] = "soft",
    training: dict[str, Any] | None = None,
) -> PRMMethod:
    """A process reward model from a model's own completions: ``assay train-prm MODEL --method S130``.

        MC(s) = right completions of s / completions of s
        argmax_(s, r) a^(1 - MC(s)) b^(len(r) / L) + c sqrt(sum_i N(s_i)) / (1 + N(s)),   0 < MC(s) < 1, r wrong
        halve r after s: MC(m) > 0, the first error is after m; MC(m) = 0, it is at its end or before
        L = mean over tested beginnings of - p log f - (1 - p) log(1 - f),   p = MC (soft) or 1[MC > 0] (hard)
        pairs: - log s(z+ - z-) of siblings' scores, where they part

    At test time a solution is worth the product of its steps' scores, e.g. ``best_of_n(scorer.name=steps,
    scorer.scorer=prm, scorer.reduce=product)``, and ``weighted_majority`` adds that up for each answer.

    Args:
        k, searches, rollouts, a, b, length, c, scan: see
            :class:`~assay.inference.supervision.searches.FirstErrors`.
        labels: see above.
        training: options of :class:`~assay.rewards.step_models.training.StepTraining`.

    Source: OmegaPRM (arXiv 2406.06592).
    """
    search = FirstErrors(k, searches, rollouts, a, b, length, c, scan)
    how: dict[str, Any] = {"loss": "hard" if labels == "hard" else "soft", "compared": "fork", **(training or {})}
    return PRMMethod(search, training=StepTraining(**how), pairs=0.125 if labels == "pairs" else None)


claims(
    Claim(
        paper="S130",
        text="Halving wrong responses locates more first errors with the same number of completions than testing their "
        "beginnings one after the other.",
        setting="supervision",
        arms={
            scan: {"search": {"name": "first_errors", "k": 8, "searches": 1000, "rollouts": 160, "scan": scan}}
            for scan in ("binary", "linear")
        },
        better="binary",
        baseline="linear",
        measure="rate",
        unequal="each search ends when its pool is empty or it has had its completions",
    )
)
