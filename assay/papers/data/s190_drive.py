"""S190: a supervised stage, one that explores in a short window, and one on few hard problems with many tries each."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.curriculum.hardest import Hardest
from assay.method import Method
from assay.rewards.length.finished import Finished
from assay.select.unprobed import Unprobed

__all__ = ["Hardest", "drive", "informative"]


@paper(
    "S190",
    "DRIVE",
    arxiv="2511.06307",
    seams=["tasks", "curriculum", "reward", "select"],
    essentials={
        "three stages in one run: supervised, broad in a short window, few hard problems with many responses": (
            "test_the_recipe_goes_through_its_stages"
        ),
        "hard problems are there twice in the supervised stage": "test_hard_tasks_are_repeated",
        "before each phase every problem that is left is tried with the policy of the moment, without learning": (
            "test_a_phase_begins_by_trying_all_that_are_left"
        ),
        "the lowest pass rates stay, those of 0 among them": "test_the_hardest_stay",
        "what was dropped never comes back": "test_what_was_dropped_never_comes_back",
        "a response that was cut off earns 0, and is counted": "test_a_response_that_was_cut_off_earns_nothing",
        "many responses make a group of a hard problem say something": "test_how_often_a_group_says_something",
    },
    choices=(
        "three phases on 72, 50 and 25 problems, sizes that one reading of the paper gives",
        "50 steps of learning a phase; hard problems twice in the supervised stage",
        "a problem is tried with as many responses as it is learned from; ties go to the earlier one",
        "each stage has a fresh optimiser",
    ),
    lacks="a recipe at small size: the prompts, the arena that chose among them and 32B models are not here",
)
def drive(pool: int = 72, keep: tuple[float, ...] = (1.0, 0.69, 0.5), steps: int = 50) -> Method:
    """GRPO on a set of problems that shrinks to the hardest; the last of the three stages of ``assay train drive``.

        before phase k: p_q = share of right responses of each problem q that is left, G of them
        left <- the ceil(keep_k |left|) problems of lowest p_q;  then GRPO on them, G responses each

    A hard problem's group says something with probability 1 - (1 - p)^G - p^G, see :func:`informative`: for p = 0.02
    that is 0.149 of groups of 8 and 0.726 of groups of 64. The stage before has ``curriculum = "uniform"``, G = 8 and a
    window shorter than the answers the policy was shown: reward 0 for what is cut off.

    Args:
        pool: problems to begin with.
        keep: share that stays, for each phase.
        steps: of learning in each phase but the last, which goes on to the end of the stage.

    Source: DRIVE (arXiv 2511.06307), from notes on its text: three phases. Their steps and shares, and the factor of
    duplication, are not given.
    """
    return Method(
        reward=Finished(),
        select=Unprobed(),
        curriculum={"name": "hardest", "pool": pool, "keep": list(keep), "steps": steps},
    )


def informative(p: float, group: int) -> float:
    """Return the probability that a group of responses, right with probability ``p`` each, has right and wrong ones."""
    return 1 - (1 - p) ** group - p**group


KINDS = ((6, 1.0, 0.0, 2.0), (6, 1.0, 0.0, -1.0), (6, 1.0, 0.0, -3.9))
"""Problems solved in 0.88, 0.27 and 0.02 of tries."""

claims(
    Claim(
        paper="S190",
        text="At equal rollouts, a set of problems that shrinks to those the policy fails most solves more of the hard "
        "ones than asking all of them alike.",
        setting="problems",
        arms={
            "all": {"name": "S190", "curriculum": "uniform"},
            "drive": {"name": "S190", "options": {"pool": 18, "steps": 10}},
        },
        better="drive",
        baseline="all",
        measure="hard",
        options={"kinds": KINDS, "steps": 30},
        sweep={"lr": (1.0, 3.0, 10.0)},
    ),
    Claim(
        paper="S190",
        name="mechanism",
        text="At equal rollouts, groups of 64 raise the success of problems solved in 0.02 of tries more than eight "
        "times as many groups of 8.",
        setting="problems",
        arms={
            "8": {"name": "S190", "curriculum": "uniform", "setting": {"group": 8, "steps": 80}},
            "64": {"name": "S190", "curriculum": "uniform", "setting": {"group": 64, "steps": 10}},
        },
        better="64",
        baseline="8",
        measure="hard",
        options={"kinds": ((2, 1.0, 0.0, 2.0), (6, 1.0, 0.0, -3.9))},
        sweep={"lr": (3.0, 10.0, 30.0)},
    ),
)
