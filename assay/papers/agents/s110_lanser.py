"""S110: a checker's facts about each edit are a reward of the turn, online and again from a record."""

from __future__ import annotations

from dataclasses import replace

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_group import TurnGroup
from assay.method import Method
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.process.turns import TurnRewards
from assay.rewards.shaping.weighted import WeightedSum


@paper(
    "S110",
    "Lanser",
    arxiv="2510.22907",
    seams=["tasks", "rollout", "verify", "reward", "credit", "evaluate"],
    essentials={
        "r = alpha (D_before - D_after) + beta S - gamma (1 - a)": "test_the_worked_rewards",
        "on a frozen snapshot the reward does not fall where no fact gets worse": "test_it_is_monotone",
        "selectors: points, ranges, symbols, paths in the tree, and pieces of text": (
            "verify/diagnostics/test_places.py::test_selectors"
        ),
        "relocation by tree, module, words and nearness, in a fixed order": (
            "verify/diagnostics/test_places.py::test_relocation"
        ),
        "a real checker's diagnostics: errors that are mended lower D": (
            "verify/diagnostics/test_check.py::test_errors_that_are_mended"
        ),
        "what hides an error, or takes its place away, counts as one": (
            "verify/diagnostics/test_check.py::test_silence_is_no_win"
        ),
        "the record of a step is the same bytes, named by its hash, and tells no time": "test_bundles_are_canonical",
        "rewards follow again from the record, bit for bit": "test_replay",
        "edits stay in the folder, and apply as a whole or not at all": (
            "environments/test_diagnosed.py::test_what_is_refused_is_not_safe"
        ),
        "the terms of errors add up to their difference over the episode": (
            "environments/test_diagnosed.py::test_rewards_of_turns"
        ),
        "a language server in the sandbox: what it finds, where a name is defined and used, the same each time": (
            "verify/diagnostics/test_server.py::test_what_a_server_knows"
        ),
        "a rename is of all files or none, within the folder, and refused where no name of theirs stands": (
            "verify/diagnostics/test_server.py::test_a_rename_is_of_all_files_or_none"
        ),
        "the agent asks the server and renames; a refusal is not safe": (
            "environments/test_language_server.py::test_the_agent_asks_and_renames"
        ),
        "the agent has the tools, and its turns the reward, in training": "test_it_acts_in_training",
    },
    choices=(
        "errors of all files in the folder count",
        "a is the score of the best place, halved where another is as good",
        "pieces of text are found again by the words of as many lines, not by winnowed runs of seven characters",
        "without safety the second term is 0, as in equation 5.1; the paper's second example takes 0.4 away",
    ),
)
def lanser(weight: float = 1.0) -> Method:
    """Rewards of turns by what a checker finds, beside the verdict.

        r_it = 0.5 (D_{t-1} - D_t) + 0.4 S_t - 0.1 (1 - a_t) on the last own token of turn t

    It is the environment that pays, ``diagnosed``, or ``language_server`` with one, whose options are the
    three weights::

        [method]
        name = "S110"
        rollout = {name = "multi_turn", environment = "diagnosed", turns = 16}

    Turns are compared by their returns with those of the same place in the task's other episodes.

    Args:
        weight: of what the environment pays, beside the verdict.

    Source: Lanser-CLI (arXiv 2510.22907).
    """
    reward = WeightedSum({"verdict": VerdictReward(), "facts": TurnRewards()}, {"facts": weight})
    return Method(reward=reward, credit=TurnGroup())


claims(
    CLAIM := Claim(
        paper="S110",
        text="Turns that are paid by what a checker finds before and after them, beside the verdict, lead to a file "
        "that does what it should from fewer rollouts than the verdict alone.",
        setting="mended",
        arms={"verdict": {"name": "S110", "reward": "verdict"}, "facts": {"name": "S110"}},
        better="facts",
        baseline="verdict",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    ),
    replace(
        CLAIM,
        name="silence",
        text="Where what hides an error from the checker counts as one, a policy mends the file more often than where "
        "the checker is taken at its word.",
        evidence="mechanism",
        arms={"trusted": {"name": "S110", "counted": False}, "counted": {"name": "S110"}},
        better="counted",
        baseline="trusted",
        measure="final",
    ),
)
