"""S057: what is wrong in a response is told by critiques of its steps, and the tokens of these steps pay for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.step_reward import StepReward
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.rewards.judged import judged
from assay.rewards.process.critiques import BESIDE_THE_REFERENCE, Critics, Voted
from assay.rewards.process.step_scores import StepScores
from assay.rewards.process.summed import step_ends, sum_by_step
from assay.signals.steps import Steps

Vote = Literal["greedy", "intersection", "majority", "union", "average"]


@paper(
    "S057",
    "CAPO",
    arxiv="2508.02298",
    seams=["reward", "credit"],
    essentials={
        "k critiques of every response, each of all its steps in one pass, with the reference answer in sight": (
            "test_critiques_are_asked_for_once_with_the_reference"
        ),
        "their vote: intersection, majority, union, average, or one greedy critique": "test_votes",
        "tokens of flawed steps lose a fixed amount of the outcome's reward": "test_the_four_cases",
        "the outcome outweighs the process": "test_the_outcome_stays_dominant",
        "advantages over all tokens of the group": "test_advantages_over_the_tokens_of_the_group",
        "it acts in training": "test_a_run_pays_for_flawed_steps",
        "without a miracle in the end": "test_miracles_are_not_learned",
    },
    choices=(
        "the words of the critics' question, and their form of reply",
        "a response whose critiques cannot be read leaves the update",
        "the population's standard deviation",
    ),
)
def capo(
    critic: Any,
    n: int = 4,
    vote: Vote = "intersection",
    whole: float = 2.0,
    process: float = 1.0,
    steps: Steps = Steps(),  # noqa: B008  # frozen
    ddof: int = 0,
    template: str = BESIDE_THE_REFERENCE,
    max_tokens: int = 4096,
    dominant: bool = True,
) -> Method:
    """GRPO by token: each has the outcome's reward, less a fixed amount where critics find its step wrong.

        R_it = whole o_i - process f_ik  for a token t of step k;  o_i the verdict's score, f_ik in [0, 1] the vote
        A_it = (R_it - mean R) / (std R + 1e-6), over all learnable tokens of all responses of the group

    f_ik is 1 where all of n critiques call step k wrong (``intersection``), at least half (``majority``), any
    (``union``), or the share of those that do (``average``); ``greedy`` is one critique at temperature 0. Intersection
    suits small policies (1.5B), majority and union larger ones (7B). With whole > process no token of a clean wrong
    response is worth more than a flawed one of a right response.

    Args:
        critic: an engine or a table that specifies one, see :class:`assay.rewards.process.critiques.Critics`; or a
            scorer of steps, see :class:`assay.rewards.process.step_scores.StepScores`, whose scores s in [-1, 1] are
            f = (1 - s) / 2: then ``n``, ``vote``, ``template`` and ``max_tokens`` say nothing.
        n, vote: see above.
        whole, process: W and P; process at least 0.
        steps: how responses are cut.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        template, max_tokens: of the critics' question and reply.
        dominant: refuse whole <= process.

    Source: CAPO (arXiv 2508.02298); its numbers, on 16 responses a prompt, with a judge of 70B parameters.
    """
    scorer = critic
    if isinstance(critic, Engine | Mapping):
        greedy = vote == "greedy"
        critics = Critics(critic, 1 if greedy else n, max_tokens, 0.0 if greedy else 1.0, template)
        scorer = Voted(critics, "union" if vote == "greedy" else vote)
    return Method(
        reward=FlawedSteps(scorer, steps, whole, process, dominant),
        credit=StepReward(steps, unit="token", merged=True, ddof=ddof),
    )


@dataclass(frozen=True, slots=True)
class FlawedSteps:
    """R_i = whole o_i, and -process f_ik on the last learnable token of step k, see :func:`capo`.

    f = (1 - s) / 2 of the signal ``step_scores``. Where steps could not be scored, or the verifier abstained, there is
    no reward. Terms: ``outcome``; ``flawed``, how many steps are.

    Raises:
        UsageError: ``process`` below 0, or not below ``whole`` while ``dominant``.
    """

    critic: Any
    steps: Steps = field(default_factory=Steps)
    whole: float = 2.0
    process: float = 1.0
    dominant: bool = True
    signal: StepScores = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.process < 0 or (self.dominant and self.whole <= self.process):
            raise UsageError(
                f"reward 'S057': process {self.process:g} must be at least 0 and below whole {self.whole:g}, or flaws "
                "outweigh the outcome (dominant = false allows it)"
            )
        object.__setattr__(self, "signal", StepScores(self.critic, self.steps))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    def __call__(self, batch: Batch) -> Reward:
        scores, steps = batch.signals["step_scores"], batch.signals["steps"]
        scored = ~scores.isnan().any(-1)
        outcome = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        # By step, since a step may end on a token that is not learned from, where its score then is.
        flaws = ((1 - sum_by_step(scores, steps)) / 2).to(outcome.dtype)
        ends = step_ends(steps, batch.mask) & scored[:, None]
        found = torch.where(ends, flaws.gather(1, steps.clamp(min=0)), 0)
        terms = {"outcome": outcome, "flawed": found.sum(-1)}
        return Reward(self.whole * outcome, -self.process * found, scored & judged(batch), terms)


ONE = {"by": "fixed", "size": 1}


def _arm(process: float, **options: Any) -> dict[str, Any]:
    return {"name": "S057", "options": {"critic": "here", "steps": ONE, "process": process, **options}}


claims(
    Claim(
        paper="S057",
        text="Where a miracle is right more often than work, a policy that pays for flawed steps by their tokens "
        "learns to do without it, and one that is paid by outcome alone learns it.",
        setting="miracle",
        evidence="construction",
        arms={
            "capo": _arm(1.0),
            "outcome": _arm(0.0),
            "process above": _arm(5.0, dominant=False),
        },
        better="capo",
        baseline="outcome",
        measure="honest",
        sweep={"lr": (1.0, 3.0, 10.0)},
    ),
    Claim(
        paper="S057",
        name="votes",
        text="Of critics that often call sound steps wrong, what four say together by intersection leads to right "
        "answers by sound steps more often than what one says.",
        setting="miracle",
        evidence="mechanism",
        arms={
            "intersection": _arm(1.0),
            "one": _arm(1.0, vote="greedy"),
            "union": _arm(1.0, vote="union"),
        },
        better="intersection",
        baseline="one",
        measure="verified",
        options={"alarms": 0.3, "missed": 0.1},
        sweep={"lr": (1.0, 10.0, 100.0)},
    ),
)
