"""S112: reinforcement learning on many families of puzzles, each with a knob of difficulty and rules that judge it."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build


@paper(
    "S112",
    "SynLogic",
    arxiv="2505.19641",
    seams=["tasks", "verify", "rollout", "objective"],
    essentials={
        "generators with a knob of difficulty; the same seed gives the same puzzle": (
            "test_the_same_seed_gives_the_same_puzzle"
        ),
        "rules judge an answer, from the puzzle's data": "test_a_solution_is_right_and_a_changed_one_is_not",
        "another solution than the one thought of is right too": "test_other_solutions_are_right_too",
        "arrows, of all that could be drawn": "test_of_all_arrows_two_ways_are_right",
        "riddles of houses, by clues of several kinds": "test_clues_hold_of_houses",
        "digits that are missing, of all there are": (
            "papers/data/test_s112_lines.py::test_all_digits_that_make_it_true_are_right"
        ),
        "names and numbers in any order, any expression": (
            "papers/data/test_s112_lines.py::test_any_order_and_any_expression_will_do"
        ),
        "damaged tables, mended from what is told": "papers/data/test_s112_lines.py::test_damaged_tables_can_be_mended",
        "things that change, counted from what is told": (
            "papers/data/test_s112_lines.py::test_belongings_are_counted_as_they_are_told"
        ),
        "the answer stands in its tags, after the thoughts": "test_only_what_is_tagged_counts",
        "families that others have generators for": "test_families_of_reasoning_gym",
        "levels lie between what chat models solve and what strong ones still can": "test_calibration",
        "levels make larger puzzles": "test_levels_make_larger_puzzles",
        "clip-higher, no KL, prompts that are all right or all wrong replaced": "test_it_is_dapo",
        "a run on a mixture of families": "test_a_run_on_a_mixture",
    },
    choices=(
        "levels 1 to 10: sides of grids, steps of riddles",
        "walls of a number wall need not hang together",
        "its islands may touch at corners, which the released verifier refuses and its prompt does not forbid",
        "a grid's solution need not be the only one",
        "words cross, and touch nowhere else",
        "numbers of mathador are thrown with dice; a thought on brackets goes by the sequence, not by the last one",
    ),
)
def synlogic(clip_high: float = 0.28, rounds: int = 4) -> Method:
    """DAPO on the task source ``rule_puzzles``: an answer is worth 1 if its form and the rules are kept, else 0.

        r = 1{the answer is in its tags} 1{it keeps to the rules}
        loss of the clipped surrogate with clip_high > clip_low, no KL; prompts with equal rewards are replaced

    Mix the families with mathematics or programs by task source ``mixture``.

    Args:
        clip_high: of the ratio, above 1.
        rounds: of asking, until as many prompts are neither all right nor all wrong.

    Source: SynLogic (arXiv 2505.19641), sections 3 and 4.
    """
    return Method(
        objective=ClippedSurrogate(clip_high=clip_high),
        rollout={"name": "dynamic", "rounds": rounds},
        credit=build("credit", "grpo"),
    )


ARM = {"name": "S112", "options": {"rounds": 1}}

claims(
    Claim(
        paper="S112",
        text="Mixed with puzzles that need some of what it needs, mathematics is learned better than alone, at "
        "equal rollouts.",
        setting="problems",
        evidence="construction",
        arms={
            "mathematics": {**ARM, "setting": {"asked": (1,), "steps": 8}},
            "mixed": {**ARM, "setting": {"asked": (0, 1), "steps": 4}},
        },
        better="mixed",
        baseline="mathematics",
        measure="hard/area",
        options={"kinds": ((8, 1.0, 1.0, -0.5), (8, 1.0, 1.0, -5.0))},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    ),
    Claim(
        paper="S112",
        name="mechanism",
        text="Of levels that are always solved, sometimes and never, the middle one alone teaches more than all three, "
        "at equal rollouts.",
        setting="problems",
        arms={
            "all levels": {**ARM, "setting": {"asked": (0, 1, 2), "steps": 4}},
            "calibrated": {**ARM, "setting": {"asked": (1,), "steps": 12}},
        },
        better="calibrated",
        baseline="all levels",
        measure="all",
        options={"kinds": ((6, 1.0, 0.0, 8.0), (6, 1.0, 0.0, -4.0), (6, 1.0, 0.0, -12.0))},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    ),
)
