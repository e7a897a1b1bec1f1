"""S002: a model that may be interrupted: thoughts are valued by the answers they give at every budget."""

from __future__ import annotations

from dataclasses import replace

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.brpo import BRPO, Variant
from assay.method import Method
from assay.rollout.anytime import Prior
from assay.rollout.thinking import Judged


@paper(
    "S002",
    "AnytimeReasoner (BRPO)",
    arxiv="2505.13438",
    seams=["rollout", "credit", "inference"],
    essentials={
        "thoughts are cut at several budgets, and several answers are sampled from each cut": (
            "test_thoughts_are_cut_and_answered_at_every_budget"
        ),
        "a thought that is cut is ended by force, with a header before the answer; what is put in is not learned": (
            "test_thoughts_of_a_language_model_end_by_themselves_or_by_force"
        ),
        "no score for a response that never ends its thought, nor for an answer that ends it again": (
            "test_what_a_thought_scores"
        ),
        "budget relative advantages: rewards still to come, less a baseline of budgets passed and of the group": (
            "test_the_worked_example"
        ),
        "its expected gradient is that of the accuracy over the prior of budgets": (
            "test_the_expected_gradient_of_the_thoughts_is_that_of_the_anytime_accuracy"
        ),
        "answers are learned apart from thoughts, compared with those from the same cut": (
            "test_answers_are_compared_with_those_from_the_same_cut"
        ),
        "training makes answers better at every budget": "test_training_makes_thoughts_better_wherever_they_are_cut",
    },
    choices=(
        "budgets are a quarter, a half, three quarters and all of rollout.max_tokens (the paper: 2000 to 8000)",
        "the mean over the group includes the thought itself, as in the released code",
        "an answer without siblings at its cut is compared with those of other thoughts at the same budget",
        "budgets that a thought fits in share all of its answers; the released code gives each its own few of them",
        "the loss is a mean over tokens; the released code divides by a constant",
    ),
)
def brpo(
    budgets: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0),
    prior: Prior = "linear",
    summaries: int = 4,
    summary_tokens: int = 128,
    baseline: Variant = "both",
    end: str | None = None,
    forced: str | None = None,
    header: str | None = None,
    stop: bool = True,
    judged: Judged = "answer",
) -> Method:
    """GRPO on thoughts that are cut at several budgets, with a baseline made of the budgets passed and of the group.

        r_ij   = mean score of the answers sampled after thought i is cut at budget j (ended by force if not ended)
        Ret_is = sum_{j >= s} P_j r_ij
        V1_is  = (sum_{j < s} 2^j r_ij / sum_{j < s} 2^j) sum_{j >= s} P_j,   V2_s = mean_i Ret_is
        A_is   = Ret_is - (s V1_is + (S - s) V2_s) / S      on the thought's tokens between budgets s and s + 1
        answers: A = score - mean over the answers from the same cut

    No standard deviation, no divergence. What maximises it is the accuracy at a budget drawn from P, not at the last
    one alone. The verifier sees an answer with its header; an answer that ends the thinking once more scores 0. Texts
    that are put in are part of the prompt. With one budget it is Dr. GRPO's advantage on thoughts. Inference part
    ``anytime`` answers under a budget.

    Args:
        budgets: tokens, or shares of ``rollout.max_tokens`` if the last is at most 1.
        prior: P_j, ``linear`` in the budget, ``uniform``, or all on the ``last``.
        summaries: answers per cut.
        summary_tokens: longest answer.
        baseline: ``both`` as above, ``own`` is V1 alone, ``group`` V2 alone, or ``none``.
        end, forced, header, stop, judged: see :class:`assay.rollout.thinking.Marks`.

    Source: AnytimeReasoner (arXiv 2505.13438) and its implementation; budgets there are 2000, 4000, 6000 and 8000.
    """
    texts = {"end": end, "forced": forced, "header": header, "stop": stop, "judged": judged}
    cuts = {"budgets": budgets, "prior": prior, "summaries": summaries, "summary_tokens": summary_tokens}
    return Method(credit=BRPO(baseline), rollout={"name": "anytime", **cuts, **texts})


claims(
    CLAIM := Claim(
        paper="S002",
        text="At equal numbers of thoughts and answers, rewards at several budgets give better answers to thoughts cut "
        "anywhere than rewards at the last budget alone.",
        setting="anytime",
        arms={
            "last": {
                "name": "S002",
                "rollout": {
                    **(
                        TEXTS := {
                            "end": "0",
                            "forced": "0",
                            "header": "",
                            "stop": False,
                            "judged": "response",
                            "summary_tokens": 1,
                        }
                    ),
                    "budgets": (1.0,),
                    "summaries": 8,
                },
            },
            "brpo": {"name": "S002", "rollout": {**TEXTS, "summaries": 2}},
        },
        better="brpo",
        baseline="last",
        measure="anytime",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0)},
    ),
    replace(
        CLAIM,
        name="mechanism",
        text="Where answers cannot be learned by heart, rewards at several budgets make thoughts come to "
        "the point early: cut anywhere, they answer better than after rewards at the last budget "
        "alone.",
        options={"longest": 6, "enough": 3, "eager": -2.0, "steps": 40},
        sweep={"lr": (3.0, 10.0, 30.0)},
        tuning=(1000, 1001),
    ),
)
