"""S215: before RL on few problems of a domain, imitation of unfiltered reasoning about knights and knaves."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.tasks.puzzles.knights_knaves import KnightsAndKnaves

__all__ = ["KnightsAndKnaves", "warmed_up"]


@paper(
    "S215",
    "Warm up before you train",
    arxiv="2505.13718",
    seams=["tasks", "objective"],
    essentials={
        "puzzles with exactly one assignment of roles that fits": "test_two_hundred_puzzles_have_one_answer_each",
        "traces are imitated whole, wrong ones too": "test_traces_are_not_filtered",
        "supervised on puzzles, then GRPO on at most 100 problems of the target, in one run": (
            "test_the_recipe_goes_from_puzzles_to_few_problems"
        ),
        "without the first stage it is GRPO": "test_without_traces_it_is_grpo",
        "base, base with RL, warm, warm with RL, on the target and on other domains": (
            "test_four_models_are_measured_on_both_domains"
        ),
    },
    choices=(
        "traces are written by a procedure that supposes one assignment after another, and slips at a given rate",
        "the target of the recipe is addition, the puzzles are spelled out",
        "statements: six kinds alike, one operator inside each other",
    ),
    lacks="a recipe at small size: QwQ's traces, MATH and MMLU-Pro with models of billions of weights are not here",
)
def warmed_up() -> Method:
    """GRPO with a binary reward, no divergence term and few problems: the second stage of ``assay train warm_up``.

    The first stage imitates solutions to puzzles of tasks ``knights_knaves``, right or wrong:

        stage 1:  minimise -sum_t log pi(y_t | puzzle, y_<t) over whole traces
        stage 2:  GRPO on at most 100 problems of the target domain, reward 1[right]

    Whether the warm-up carries over is told by four models, {base, base + RL, warm, warm + RL}, on the target and on
    other domains.

    Source: "Warm Up Before You Train" (arXiv 2505.13718) and its authors' settings: G = 10, temperature 0.7, top-p
    0.95.
    """
    return Method()


claims(
    Claim(
        paper="S215",
        text="After imitating traces of another domain, a fifth of them wrong, RL on four problems leaves more of the "
        "target's other problems solved than the same RL alone.",
        setting="warmed",
        evidence="construction",
        arms={
            "rl": {"warm": 0, "method": {"name": "S215"}},
            "warm, then rl": {"warm": 20, "method": {"name": "S215"}},
        },
        better="warm, then rl",
        baseline="rl",
        measure="target",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
    Claim(
        paper="S215",
        name="elsewhere",
        text="After RL on four problems of the target, a policy that was warmed up on a third domain solves more of a "
        "domain that neither stage asked about.",
        setting="warmed",
        evidence="construction",
        arms={
            "rl": {"warm": 0, "method": {"name": "S215"}},
            "warm, then rl": {"warm": 20, "method": {"name": "S215"}},
        },
        better="warm, then rl",
        baseline="rl",
        measure="other",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
)
