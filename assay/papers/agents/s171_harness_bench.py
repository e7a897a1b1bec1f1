"""S171: the same model and tasks under different harnesses, which are then what is measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.evaluate.harnesses import HarnessComparison, compare_harnesses
from assay.evaluate.process_judge import ProcessJudge


@paper(
    "S171",
    "Harness-Bench",
    seams=["tasks", "evaluate"],
    essentials={
        "a fresh folder of fixtures, work in it, an oracle of weighted checks on what is left": (
            "tasks/workspaces/test_checks.py::test_each_kind_of_check"
        ),
        "a task's way scores 1; nothing done and an empty folder less than 0.3": (
            "environments/test_workspace.py::test_every_job_can_be_done_and_is_not_done_by_itself"
        ),
        "a run that only says that it is done scores 0": "test_saying_it_is_done_is_worth_nothing",
        "hooks: a service on this machine, which fails before it answers": (
            "tasks/workspaces/test_service.py::test_each_path_fails_before_it_answers"
        ),
        "harnesses are programs that speak the chat protocol: one shot, a loop, a loop with plan and retries": (
            "test_three_harnesses_do_the_work"
        ),
        "all traffic passes a proxy that counts requests and tokens": "test_what_a_run_took",
        "four scores of a judge, their mean recomputed": "test_the_scores_of_a_judge",
        "outcome times process, 1 where nobody judged": "test_the_worked_products",
        "classes of failure": "test_classes_of_failure",
        "main effects, interaction, sums of squares and spread of the table": "test_the_worked_table",
        "over tasks, by a bootstrap": "test_the_bootstrap_is_over_tasks",
        "a command reports all of it": "test_the_command",
        "the same harnesses and tasks are trained on": "test_it_trains",
    },
    choices=(
        "four kinds of work that are made up, and folders of one's own; the paper's 106 tasks are not part of assay",
        "a task has one prompt; a run that breaks off is not judged, and one whose time is spent is",
        "wrong content is a class of failure of its own, beside the paper's six",
        "error_handling is 1 where nothing failed, whatever the judge says",
        "of a conversation a judge is shown 24,000 characters, of its beginning and end; in the code the first",
    ),
)
def harness_bench(judge: Any = None) -> Callable[..., HarnessComparison]:
    """Compare harnesses by :func:`~assay.evaluate.harnesses.compare_harnesses`, or on the command line.

        combined = outcome * process;  outcome = sum of the weights of passed checks;  process = mean of four scores
        x_mh = grand + model_m + harness_h + interaction_mh,  x the mean over tasks

    ::

        assay eval MODEL,MODEL --harness bare,react,planned --judge openai:JUDGE@http://host/v1 --out found \
            'tasks.source={name="environment", environment="workspace"}'

    A harness is trained in by ``method.rollout = {name = "harness", command = "react", environment = "workspace"}``.

    Args:
        judge: who scores how work was done, see :class:`~assay.evaluate.process_judge.ProcessJudge`; ``None`` for
            nobody.

    Source: Harness-Bench (Qihoo360/harness-bench).
    """
    return partial(compare_harnesses, judge=None if judge is None else ProcessJudge(judge))


claims(
    Claim(
        paper="S171",
        text="Every model under every harness tells what models bring from what harnesses bring; as many runs of every "
        "model under a harness of its own do not.",
        setting="harness_runs",
        arms={"crossed": {"design": "crossed"}, "own": {"design": "own"}},
        better="crossed",
        baseline="own",
        measure="model",
        evidence="construction",
    )
)
