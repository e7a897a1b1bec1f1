"""S027: a group that fails gets one right response, found with the weakest of tiered hints that leads to it."""

from __future__ import annotations

from collections.abc import Sequence

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rollout.surgery.hints import HINT, Source
from assay.rollout.surgery.weakest_hint import Mode


@paper(
    "S027",
    "Scaf-GRPO",
    arxiv="2510.19807",
    seams=["curriculum", "rollout", "select"],
    essentials={
        "tiers of hints, cumulative within a tier, weakest tier first": "test_twelve_levels_in_three_tiers",
        "one response for each level, for groups that fail": "test_every_level_is_tried_once",
        "the weakest level that succeeds is chosen": "test_the_worked_example",
        "its response takes the place of the first failed one": "test_the_worked_example",
        "on-policy under its hint; stripped, or both, are options": "test_modes",
        "nothing is done in the first steps": "test_the_grace_period",
        "groups with a success are left alone": "test_who_is_left_alone",
        "it acts in training": "test_a_run_is_scaffolded",
        "solves without hints what it never solved": "test_solved_without_hints",
    },
    choices=(
        "all levels are asked at once, as in the code; the paper goes through the tiers, with the same choice",
        "of the grace period a number of steps",
        "the words around the hints",
        "stripped responses have their old log-probabilities recomputed under the plain prompt",
    ),
)
def scaf_grpo(
    after: int = 50,
    mode: Mode = "full",
    source: Source = "task",
    shares: Sequence[float] = (0.25, 0.5, 0.75),
    only: Sequence[str] = (),
    strongest: bool = False,
    opens: bool = False,
    template: str = HINT,
) -> Method:
    """GRPO on groups into which, where all failed, a right response to the prompt with a hint was put.

        level* = min {level: the response with hint level is right};   y_1 <- that response, under x + hint level*
        A_i = (R_i - mean R) / std R over the group as it then is: (2.47, -0.35, ...) of eight

    The task's hints are ``meta["tiers"]``, parts by the tier's name, such as knowledge, planning and solution with four
    parts each, or else its ``hints``.

    Args:
        after: steps of grace.
        mode, source, shares, only, strongest, opens, template: see
            :class:`~assay.rollout.surgery.weakest_hint.WeakestHint`.

    Source: Scaf-GRPO (arXiv 2510.19807) and its authors' code, in which the tier of planning is left out; here it is in
    if the task has it.
    """
    rollout = {
        "name": "weakest_hint",
        "after": after,
        "mode": mode,
        "source": source,
        "shares": tuple(shares),
        "only": tuple(only),
        "strongest": strongest,
        "opens": opens,
        "template": template,
    }
    objective = ClippedSurrogate(correction="none" if mode == "full" else "recompute")
    return Method(rollout=rollout, credit=GRPO(), objective=objective)


claims(
    Claim(
        paper="S027",
        text="Where success is about one in a million, a policy that gets one with the weakest hint that leads there "
        "comes to solve the problem without hints; GRPO, at as many responses, does not.",
        setting="hinted_chains",
        arms={"scaf": {"name": "S027", "options": {"after": 0}}, "grpo": {"name": "grpo"}},
        better="scaf",
        baseline="grpo",
        measure="solved",
        sweep={"lr": (25.0, 125.0, 625.0)},
        unequal="training ends with the step that passes 800 responses, and a step with hints has more of them",
    ),
    Claim(
        paper="S027",
        name="mechanism",
        text="A policy that is shown the weakest hint that works is right more often without hints, over training, "
        "than one that is shown the strongest.",
        setting="hinted_chains",
        arms={
            "weakest": {"name": "S027", "options": {"after": 0}},
            "strongest": {"name": "S027", "options": {"after": 0, "strongest": True}},
        },
        better="weakest",
        baseline="strongest",
        measure="area",
        sweep={"lr": (25.0, 125.0, 625.0)},
        options={"bonus": 8.0},
    ),
)
