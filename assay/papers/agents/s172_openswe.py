"""S172: pull requests become tasks once their tests are run twice; learned from are those of middling difficulty."""

from __future__ import annotations

from collections.abc import Sequence

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.sft import SFT
from assay.select.difficulty import Difficulty
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Pipeline
from assay.tasks.repositories.agents import Build


@pipeline("S172")
def environments(rounds: int = 5, looks: int = 8) -> Pipeline:
    """Pull requests with folder and script that models have made: ``assay tasks make S172``.

    ::

        assay tasks make S172 --seeds "repositories(path=requests.jsonl,examined=false)" --model MODEL --out made.jsonl

    They are read with ``tasks.source.name=made`` and played in the environment ``repository``.

    Args:
        rounds, looks: see :class:`~assay.tasks.repositories.agents.Build`.
    """
    return Pipeline("S172", (("build", Build(rounds, looks)),))


@paper(
    "S172",
    "OpenSWE",
    arxiv="2603.13023",
    seams=["tasks", "curriculum", "verify", "select", "objective"],
    essentials={
        "two runs: with the tests alone the exit code is not 0, with the fix it is; without the marker it has failed": (
            "tasks/repositories/test_examine.py::test_two_runs"
        ),
        "looked at on success too: a code that stands in the script, and no test collected, are refused": (
            "tasks/repositories/test_examine.py::test_scripts_that_say_so_by_themselves"
        ),
        "models explore a repository, prepare its folder, write its script and look at both, in rounds": (
            "tasks/repositories/test_agents.py::test_who_has_to_mend_it_writes_again"
        ),
        "what they make is a task that is played and judged by their script": (
            "tasks/repositories/test_agents.py::test_what_is_made_is_played"
        ),
        "what fails goes back to who can mend it, or is of no use": (
            "tasks/repositories/test_examine.py::test_who_has_to_mend_it"
        ),
        "a pull request has an issue, and a fix apart from its tests": (
            "tasks/repositories/test_examine.py::test_what_is_no_task"
        ),
        "pull requests are played, and judged by their script on the files that are left": (
            "tasks/repositories/test_source.py::test_a_pull_request_is_played"
        ),
        "kept are tasks solved by one or two of four trajectories, and of those the right ones": "test_what_is_kept",
        "kept tasks have rewards of variance 3/16 at least": "test_the_variance_of_what_is_kept",
        "malformed actions and those that led to an error are masked, and stay in sight": "test_bad_steps_are_masked",
        "trajectories that fetch the fix are dropped": "test_hacks_are_dropped",
        "fine-tuning on what is left": "test_it_acts_in_training",
    },
    choices=(
        "the container is a folder in the sandbox, without a network, that a script prepares; models take no tools but "
        "three to look around with",
        "tests and code share a process, as in the paper, where tasks are pull requests; made-up ones are apart",
    ),
)
def openswe(least: float = 0.25, most: float = 0.5, hacks: Sequence[str] = ("git pull",), mask: bool = True) -> Method:
    """Rejection fine-tuning on the right trajectories of tasks that one or two of four solve, sound turns alone.

        kept(i) = [least <= p(task) <= most] [R_i = 1] [no hack]
        L = - sum over kept i, over tokens t of turns without error, of log pi(y_it | x_i, y_i,<t) / tokens

    Four samples of a task (``rollout.group = 4``) are the paper's. Tasks are the made-up ones of the environment
    ``repository``, or ``repositories``, pull requests that were run twice, played there too, or such whose folder and
    script models have made (:func:`environments`).

    Args:
        least, most, hacks, mask: see :class:`~assay.select.difficulty.Difficulty`.

    Source: daVinci-Env (arXiv 2603.13023), OpenSWE.
    """
    return Method(select=Difficulty(least, most, tuple(hacks), mask), objective=SFT())


claims(
    Claim(
        paper="S172",
        text="Where easy tasks forgive wrong choices, right trajectories of the tasks that one or two of four solve "
        "lead to more success over all tasks than all right trajectories do, from as many rollouts.",
        setting="forgiving",
        arms={"middling": {"name": "S172"}, "all right": {"name": "S172", "select": {"name": "verdict"}}},
        better="middling",
        baseline="all right",
        measure="final",
        sweep={"lr": (3.0, 10.0, 30.0)},
    )
)
