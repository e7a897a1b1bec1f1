"""S043: of the samples that pass their tests, take the one the model found least likely."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.inference.sampling.surprisal import Rule, Surprisal
from assay.verify.kind import KindVerifier


@paper(
    "S043",
    "surprisal-guided selection",
    arxiv="2602.07670",
    seams=["inference", "evaluate"],
    essentials={
        "of the samples that pass, the one of least log-probability, the mean over its tokens": (
            "test_the_strategy_takes_the_least_likely_right_path"
        ),
        "the rules it is compared with: random, most confident, best of the three least likely, oracle": (
            "test_rules_on_five_samples"
        ),
        "it wins where the best solutions are in the tail of the distribution, and loses where they are not": (
            "test_the_gain_is_where_the_best_is_in_the_tail_and_a_loss_where_it_is_not"
        ),
        "Cohen's h of two success rates": "test_cohens_h",
        "surprisal and score by ranks, with length held fixed": (
            "test_partial_correlation_is_the_formula_of_three_correlations_of_ranks"
        ),
        "test-time training, a few steps on the task's own samples and the best of its checkpoints": (
            "inference/test_test_time_training.py::test_the_checkpoint_is_chosen_by_its_own_samples"
        ),
        "adaptation in numbers of samples of the base model: the K of equal success rate": (
            "test_equivalent_samples_is_the_first_k_that_reaches_the_rate"
        ),
    },
    choices=(
        "samples: as many as the budget allows, at temperature 1; 64 in the paper, at temperature 0.25",
        "ties go to the first sample; one without log-probabilities is left out, unless none has any",
        "test-time training is on each task by itself, which the paper has beside five at once",
        "the best checkpoint: by mean score; the paper counts samples that are right and faster than the reference",
        "what steps do to diversity (over-sharpening): distinct solutions and spread of scores among k samples",
    ),
)
def surprisal_select(
    sampling: Sampling | None = None, verifier: Any = None, rule: Rule = "surprisal", total: bool = False
) -> Surprisal:
    """Best-of-K at test time: sample K responses, check them, and take the right one that is the least likely.

        i* = argmin over i with passed_i of (1 / T_i) sum_t log pi(y_it | x, y_i<t)

    ``rule`` has the comparisons: ``confident`` (argmax), ``random``, ``top3`` (the best-scored of the three least
    likely) and ``oracle`` (the best-scored). Without a right response there is no answer. Names the inference part
    ``surprisal``; the verifier's score says how good a right response is.

    For the comparison of rules see :mod:`assay.statistics.selection`: ``cohens_h``, ``equivalent_samples``, and
    ``partial_correlation`` of the ranks of surprisal and score with length held fixed; for Wilcoxon's and the sign
    test, SciPy.

    What search is compared with, gradient steps on each task's own samples and the best of the checkpoints, is the
    inference part ``test_time_training``; what the steps do to the diversity of solutions,
    :mod:`assay.statistics.sharpening`.

    Args:
        sampling: how tokens are drawn; temperature 0.25 and K = 64 in the paper.
        verifier: says which are right; by default that of the task's kind.
        rule: see above.
        total: the sum over tokens in place of the mean.

    Source: surprisal-guided selection (arXiv 2602.07670) and its code.
    """
    return Surprisal(sampling or Sampling(), verifier or KindVerifier(), rule, total)


claims(
    Claim(
        paper="S043",
        text="Where the best solutions are unusual, the least likely of the samples that pass is better than the most "
        "likely one, at the same cost.",
        setting="solutions",
        arms={rule: {"name": "surprisal", "rule": rule} for rule in ("surprisal", "confident", "random", "top3")},
        better="surprisal",
        baseline="confident",
        measure="speed",
    )
)
