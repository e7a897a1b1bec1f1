"""S189: trajectories at a computer judged by a rubric of the task, with process and outcome told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.outcome.verdict_part import VerdictPart
from assay.rewards.shaping.weighted import WeightedSum
from assay.statistics.agreement import Kappa, Table, kappa


@paper(
    "S189",
    "Universal Verifier",
    arxiv="2604.06240",
    seams=["verify", "reward", "evaluate"],
    essentials={
        "a rubric of the task's text alone": "test_the_rubric_knows_the_task_alone",
        "criteria that do not apply count neither way": "test_process_by_hand",
        "every screen is looked at, and those that tell most of a criterion mark it": "test_evidence_by_criterion",
        "screens may be pictures, which the judge is shown": "test_pictures_are_shown",
        "marked with and without screens; claims that are not seen are contradictions": "test_claims_are_contradicted",
        "what could not be helped costs nothing": "test_process_by_hand",
        "an error is charged once": "test_an_error_is_charged_once",
        "the outcome is judged apart": "test_process_and_outcome_are_apart",
        "a judge that fails is no verdict": "test_a_judge_that_fails_abstains",
        "agreement with people: kappa, false positives, false negatives": "test_agreement_with_people",
        "it acts in training": "test_it_trains",
        "false positives fall": "test_screens_tell_lies",
    },
    choices=(
        "five screens of a criterion, a good process from 0.8 on, one point a criterion if none are told",
        "what was blocked earns all its points",
        "a reward of the outcome plus half the process",
        "all wording, and JSON for every reply",
    ),
    lacks="CUAVerifierBench",
)
def universal_verifier(
    judge: Any,
    environment: Any = "screens",
    top: int = 5,
    threshold: float = 0.8,
    process_weight: float = 0.5,
    turns: int = 30,
    kl_weight: float = 0.0,
) -> Method:
    """GRPO on what a verifier makes of trajectories: R = outcome + process_weight process.

    The environment is :class:`~assay.environments.verified.environment.TrajectoryVerified` around another one, which
    the tasks are of as well::

        [tasks.source]
        name = "environment"
        environment = "screens"
        [method]
        name = "S189"
        options = {judge = {name = "openai", model = "..."}, environment = "screens"}

    Args:
        judge: an engine, or the specification of one.
        environment: the other one: a part's name, or a table.
        top, threshold: see there.
        process_weight: see above, at least 0.
        turns: of an episode, at most.
        kl_weight: of the divergence from the reference policy.

    Raises:
        UsageError: a weight below 0, or an option that does not fit.

    Source: "The Art of Building Verifiers for Computer Use Agents" (arXiv 2604.06240).
    """
    if process_weight < 0:
        raise UsageError(f"S189: process_weight {process_weight:g} must be at least 0")
    world = {"name": "trajectory_verified", "judge": judge, "environment": environment, "top": top}
    return Method(
        rollout={"name": "multi_turn", "environment": {**world, "threshold": threshold}, "turns": turns},
        reward=WeightedSum({"outcome": VerdictReward(), "process": VerdictPart("process", scale=process_weight)}),
        credit=GRPO(),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


@dataclass(frozen=True, slots=True)
class Agreement:
    """How verdicts agree with people's: Cohen's kappa, and the shares of people's failures that pass (``false``) and of
    their successes that do not (``missed``); ``None`` where there are no such."""

    kappa: Kappa
    false: float | None
    missed: float | None


def agreement(verdicts: Sequence[bool], people: Sequence[bool]) -> Agreement:
    """Return how verdicts on trajectories agree with what people say of them, of the process or of the outcome."""
    table = Table.count(zip(verdicts, people, strict=True))
    failed, done = table.first + table.neither, table.both + table.second
    return Agreement(kappa(table), table.first / failed if failed else None, table.second / done if done else None)


claims(
    Claim(
        paper="S189",
        text="Of trajectories whose agent claims what it has not done, fewer failures pass where each criterion is "
        "judged by the screens that tell most of it than where the last screens are looked at.",
        setting="judged_trajectories",
        evidence="construction",
        arms={
            "relevant screens": {"evidence": "relevant"},
            "last screens": {"evidence": "last"},
            "the agent's word": {"evidence": "account"},
        },
        better="relevant screens",
        baseline="last screens",
        measure="honest",
        unequal="each screen is looked at once more",
    )
)
