"""S058: prompts that no rollout solved are asked anew with a hint, and what comes of it trains the policy without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.off_policy.guided import Form, Guided
from assay.rollout.surgery.hints import HINT, Source


@paper(
    "S058",
    "Guide",
    arxiv="2506.13923",
    seams=["curriculum", "rollout", "select", "objective"],
    essentials={
        "a group without a right response is dropped, and asked anew with a hint": "test_failed_groups_are_asked_anew",
        "guided responses alone are a group": "test_guided_advantages",
        "guided groups, like plain ones, count if some are right and some wrong": "test_groups_that_say_nothing_go",
        "prompts are drawn until the batch is full of such groups": "test_the_batch_is_filled",
        "the ratio: the plain prompt in the numerator, the hinted one in the denominator": "test_the_ratio",
        "g(w) = w / (w + q), q a constant 90th percentile, no clip": "test_the_worked_weights",
        "what it is without a hint": "test_without_a_hint_a_guided_token_counts_half",
        "it acts in training": "test_a_run_is_guided",
        "solves without hints what it never solved": "test_solved_without_hints",
    },
    choices=(
        "the percentile is over a response's tokens, as where micro-batches are of one response",
        "one hint, the task's weakest, after the question",
        "of failed responses none are kept in the guided group",
        "groups beyond a full batch are dropped; the authors keep them for the next step",
    ),
)
def guide(
    source: Source = "task",
    shares: Sequence[float] = (0.5,),
    hints: int = 1,
    rounds: int = 10,
    template: str = HINT,
    form: Form = "smoothed",
    quantile: float = 0.9,
    gamma: float = 0.1,
) -> Method:
    """GRPO on plain groups, and on groups under a hint where no plain response was right, learned without the hint.

        w_t = pi(y_t | x, y_<t) / pi_old(y_t | x', y_<t),   g(w) = w / (w + sg[max(P90(w), 1e-4)])
        l_t = -g(w_t) A  on guided tokens;  -min(rho A, clip(rho) A) on others
        A_i = (R_i - mean R) / std R  within the plain, or the guided, group

    Args:
        source: where hints are from, see :class:`~assay.rollout.surgery.reasked.Reasked`.
        shares: of a solution, where ``source = "solution"``.
        hints: how many are tried, the weakest first.
        rounds: generation rounds in a step, at most.
        template: of the prompt with the hint.
        form, quantile, gamma: see :class:`~assay.objectives.off_policy.guided.Guided`.

    Source: Guide (arXiv 2506.13923) and its authors' code.
    """
    inner: dict[str, Any] = {
        "name": "reasked",
        "source": source,
        "shares": tuple(shares),
        "most": hints,
        "train": "plain",
        "template": template,
    }
    return Method(
        rollout={"name": "dynamic", "inner": inner, "rounds": rounds},
        credit=GRPO(),
        objective=Guided(form=form, quantile=quantile, gamma=gamma),
    )


GUIDE = {"source": "solution", "shares": (1.0,), "rounds": 1}

claims(
    Claim(
        paper="S058",
        text="Where success is about one in a million, a policy that is guided where all its responses failed, and "
        "learns from that without the guide, comes to solve it; one that draws other responses does not.",
        setting="hinted_chains",
        arms={
            "guide": {"name": "S058", "options": GUIDE},
            "plain": {"name": "grpo", "rollout": {"name": "dynamic", "rounds": 1}},
        },
        better="guide",
        baseline="plain",
        measure="solved",
        sweep={"lr": (25.0, 125.0, 625.0)},
    )
)
