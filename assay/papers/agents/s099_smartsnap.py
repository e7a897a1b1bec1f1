"""S099: the agent proves what it has done with turns that it cites, and a judge sees nothing else."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.evidence import EvidenceReward


@paper(
    "S099",
    "SmartSnap",
    arxiv="2512.22322",
    seams=["rollout", "verify", "reward", "objective"],
    essentials={
        "actions of the environment and submit, which ends the episode with turns as evidence": (
            "test_a_submission_ends_the_episode"
        ),
        "evidence e is what was done in turn e and what was observed after": "test_the_judge_sees_cited_turns_alone",
        "turns that are not cited change nothing": "test_turns_that_are_not_cited_change_nothing",
        "one submission, last, of turns that there are: else -1, and nobody is asked": "test_what_is_no_submission",
        "votes of a judge, whose failures are counted apart": "test_votes",
        "+1 for a majority for success, 0 for valid evidence, else -1, minus a cost beyond three turns": (
            "test_the_worked_rewards"
        ),
        "a bonus for acting, constant or gone after some steps": "test_the_bonus_for_acting",
        "completeness, conciseness, creativity are what the policy is told": "test_what_the_policy_is_told",
        "GRPO over whole trajectories": "test_the_worked_advantages",
        "it trains": "test_it_trains",
    },
    choices=(
        "where every opinion fails the verdict abstains; the authors' code gives -1 (unjudged = fail)",
        "a turn cited twice costs twice and is shown once",
        "the words of the judge's prompt; it sees actions and observations, as in the paper; in the code observations",
        "an opinion that cannot be read is no vote; in the authors' code it is one against success and evidence",
        "the paper's start from supervised examples is left to the warm-up",
    ),
)
def smartsnap(cost: float = 0.1, free: int = 3, bonus: float = 0.0, decay: int | None = None) -> Method:
    """GRPO on what a submission of evidence is worth, see :class:`~assay.rewards.outcome.evidence.EvidenceReward`.

    The environment is :class:`~assay.environments.submitted.Submitted`, around another one::

        [tasks.source]
        name = "environment"
        environment = {name = "submit_evidence", environment = "screens"}
        [method]
        name = "S099"
        rollout = {name = "multi_turn", environment = {name = "submit_evidence", environment = "screens"}, turns = 30}

    Args:
        cost, free, bonus, decay: see the reward.

    Source: SmartSnap (arXiv 2512.22322) and its authors' code. Its runs: 8 rollouts of up to 30 turns, learning rate
    1e-6, no divergence from a reference, three votes at temperature 0.7.
    """
    return Method(
        reward=EvidenceReward(cost, free, bonus, decay),
        credit=GRPO(),
        objective=ClippedSurrogate(clip_low=0.2, clip_high=0.2, dual_clip=10.0),
    )


CITED = ((1,), (0,), (0, 1, 0, 1, 0))
SUBMISSIONS = tuple(f'submit {{"message": "done", "evidences": {list(turns)}}}' for turns in CITED)
PROVEN = {"name": "submit_evidence", "environment": {"name": "corridor", "rooms": 2, "moves": 3}, "judge": "corridor"}
MANY = {"tasks": (0,), "prompts": 1, "group": 32, "steps": 60}

claims(
    Claim(
        paper="S099",
        text="With a cost of each turn cited beyond three the policy comes to prove its success by the decisive turn "
        "alone; without it, by that or by all there are.",
        setting="environment",
        evidence="construction",
        arms={"cost": {"name": "S099"}, "free": {"name": "S099", "reward": {"name": "evidence", "cost": 0.0}}},
        better="cost",
        baseline="free",
        measure="part/concise",
        options={"environment": PROVEN, "words": (("right", "stop", *SUBMISSIONS),), "turns": 3, **MANY},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0, 30.0)},
    )
)
