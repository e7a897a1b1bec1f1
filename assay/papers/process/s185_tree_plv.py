"""S185: a verifier of steps that learns which of two steps after the same beginning is better."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.inference.supervision.searches import BestFirst
from assay.inference.supervision.train import PRMMethod
from assay.rewards.step_models.losses import Compared
from assay.rewards.step_models.training import StepTraining


@paper(
    "S185",
    "Tree-PLV",
    arxiv="2407.00390",
    seams=["tasks", "policies", "inference"],
    essentials={
        "a node is worth the share of its completions that reach the answer": (
            "inference/supervision/test_searches.py::test_best_first_goes_where_the_value_is_highest"
        ),
        "the tree grows best first": (
            "inference/supervision/test_searches.py::test_best_first_goes_where_the_value_is_highest"
        ),
        "pairs of siblings that are at least a margin apart, completed to whole responses": (
            "test_pairs_are_a_margin_apart"
        ),
        "the ranking loss of every step from the fork on": "test_the_loss_from_the_fork_on",
        "compared with whole responses alone, and with labels of single steps": "test_what_it_is_compared_with",
        "a response is scored by its last step, and the best-scored is the answer": "test_made_and_used",
        "ranking by pairs stands up to wrong labels of whole paths": "test_pairs_rank_better_than_noisy_labels",
    },
    choices=(
        "4 next steps are sampled from a beginning, 16 beginnings expanded",
        "of responses of different length the last steps are compared with each other",
        "the completion of the better step is a right one and that of the worse a wrong one, where there are such",
    ),
)
def tree_plv(
    completions: int = 8,
    branch: int = 4,
    expansions: int = 16,
    margin: float = 0.375,
    compared: Compared = "steps",
    training: dict[str, Any] | None = None,
) -> PRMMethod:
    """A scorer of steps from preferences between siblings: ``assay train-prm MODEL --method S185``.

        R(s) = right completions of s / completions;   always the open s of the highest R is expanded
        pairs: siblings with R(+) - R(-) >= margin, completed to y+ and y-, which part at step d
        L = - sum_{i=d}^{n} log sigmoid(r(x, y+_1:i) - r(x, y-_1:i))

    At test time a response is worth r at its end: ``best_of_n(scorer.name=steps, scorer.scorer=prm,
    scorer.reduce=last)``.

    Args:
        completions, branch, expansions: see :class:`~assay.inference.supervision.searches.BestFirst`.
        margin: see above, above 0.
        compared: ``steps``; ``last`` for pairs of whole responses, ``fork`` for the siblings alone.
        training: options of :class:`~assay.rewards.step_models.training.StepTraining`.

    Source: Tree-PLV (arXiv 2407.00390), equations 2 to 4; 8 completions, margin 3/8.
    """
    how: dict[str, Any] = {"compared": compared, **(training or {})}
    return PRMMethod(BestFirst(completions, branch, expansions), training=StepTraining(**how), pairs=margin)


claims(
    Claim(
        paper="S185",
        text="From the same trees, a scorer that ranks steps against their siblings chooses right responses among n "
        "more often than one that learns whether single steps are right.",
        setting="step_features",
        arms={
            "step pairs": {"method": "S185"},
            "last steps": {"method": "S185", "options": {"compared": "last"}},
            "labels": {"method": "S185", "loss": "hard"},
        },
        better="step pairs",
        baseline="labels",
        measure="accuracy",
        options={"problems": 8, "asked": 60},
        sweep={"lr": (0.01, 0.1)},
        tuning=(1000,),
    )
)
