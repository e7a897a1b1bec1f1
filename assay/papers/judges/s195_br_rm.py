"""S195: a judge of pairs that thinks twice: first about where the answers may fail, then about which one is better."""

from __future__ import annotations

import math
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.rloo import RLOO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.penalties import Penalties


@paper(
    "S195",
    "BR-RM",
    arxiv="2510.23596",
    seams=["tasks", "rollout", "verify", "reward", "credit"],
    essentials={
        "turn 1: one to three dimensions of eight, and what may be wrong with either answer": "test_what_is_focused_on",
        "turn 2: read again by these, with what comes before what, a default where none is named": (
            "test_the_second_turn_goes_by_the_first"
        ),
        "a verdict of strict form": "test_the_form_of_a_verdict",
        "0, -10 and -100 for right, wrong and malformed verdicts; nothing for the first turn": "test_penalties_by_hand",
        "advantages over the siblings, normalised": "test_advantages_by_hand",
        "both turns are one trajectory, without what is asked in between": "test_it_trains",
        "pairs in either order": "test_swapped_answers_swap_the_label",
    },
    choices=(
        "all wording, and the names of blocks",
        "the second prompt repeats the dimensions; the authors' code keeps them in the conversation alone",
        "what is neither 1 nor 2 is malformed; the authors' code takes any number's distance",
        "both orders of every pair, the paper's are at random",
        "penalty on the divergence 0.001; the authors' configuration has 0.02 and their scripts 0.001",
        "a wrong verdict costs 10, as in the authors' code; their page says 1",
        "models and pairs are one's own, the released ones of 8B and 14B are not here",
    ),
)
def br_rm(
    environment: Any = "rethinking", wrong: float = -10.0, unreadable: float = -100.0, kl_weight: float = 0.001
) -> Method:
    """Leave-one-out policy gradient for a judge in two turns, whose tokens are all trained by the verdict of the last.

        R = 0 if z = z*, wrong if not, unreadable without a verdict;  A_i = (R_i - mean_{j != i} R_j) / std_{j != i} R_j

    The loss is a mean over tokens, weighted for the mismatch of engine and trainer. Where one sibling is malformed, a
    wrong verdict has a *positive* advantage at these penalties; ``unreadable = -10`` makes them alike. Pairs are those
    of environment ``rethinking``::

        [tasks.source]
        name = "environment"
        environment = {name = "rethinking", path = "preferences.jsonl"}
        [method]
        name = "S195"
        options = {environment = {name = "rethinking", path = "preferences.jsonl"}}
        [rollout]
        group = 8
        stop = ["[End of Issues of Answer 2]", "[End of Verdict]"]

    :func:`~assay.tasks.judging.pairs.by_order` says whether the judge likes a place.

    Args:
        environment: name or table of environment ``rethinking``.
        wrong, unreadable: see above.
        kl_weight: of the divergence.

    Source: "Think Twice: Branch-and-Rethink Reasoning Reward Model" (arXiv 2510.23596) and its authors' code. Its runs:
    64 pairs a step, 8 traces each, at most 16,384 tokens, learning rate 5e-7 (8B) and 1e-6 (14B), 1,000 steps.
    """
    return Method(
        rollout={"name": "multi_turn", "environment": environment, "turns": 2},
        reward=Penalties(wrong, unreadable),
        credit=RLOO(normalise=True),
        objective=ClippedSurrogate(kl_weight=kl_weight, correction="token_truncate", correction_cap=math.inf),
    )


OPTIONS = {"kl_weight": 0.0}

claims(
    Claim(
        paper="S195",
        text="Where some replies break the form, a judge whose wrong verdicts cost as much as broken forms is right "
        "more often, over training, than one at the released scale, on which a broken form costs ten times as much.",
        setting="malformed_verdicts",
        evidence="mechanism",
        arms={
            "alike": {"name": "S195", "rollout": "single_turn", "options": {**OPTIONS, "unreadable": -10.0}},
            "released": {"name": "S195", "rollout": "single_turn", "options": OPTIONS},
            "grpo": {"name": "grpo"},
        },
        better="alike",
        baseline="released",
        measure="area",
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    )
)
