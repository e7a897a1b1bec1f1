"""S076: one policy proposes programs and solves its own proposals; an executor alone says what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.curriculum.absolute_zero import AbsoluteZero
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.registry import build, part
from assay.rollout.proposing import Proposing
from assay.rollout.single_turn import SingleTurn, fits
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.base import Verifier
from assay.verify.programs.language import MODES, Mode, Refused, Triplet, examined
from assay.verify.programs.verifier import KIND, ProgramIO, refused


@paper(
    "S076",
    "Absolute Zero",
    arxiv="2505.03335",
    seams=["tasks", "curriculum", "rollout", "verify", "reward", "credit"],
    essentials={
        "deduction, abduction and induction, judged by running": "test_answers_are_judged_by_running",
        "a proposal is valid if it parses, runs, uses nothing banned and does the same twice": (
            "test_what_makes_a_proposal_valid"
        ),
        "the proposer earns 1 - a, and nothing if all or none of its solvers are right": (
            "test_the_reward_of_a_proposer"
        ),
        "what has not the form, and a proposal that is not valid, earns -1, a wrong answer -0.5": (
            "test_three_grades_of_reward"
        ),
        "buffers begin with the identity; what is valid is kept however easy it is": (
            "test_valid_proposals_are_kept_however_easy"
        ),
        "the newest proposals are solved first, the buffer fills up": "test_the_newest_are_solved_first",
        "advantages are normalised in each of six cells of role and mode": "test_each_cell_is_normalised_by_itself",
        "proposals see earlier ones, induction an earlier program": "test_what_a_proposer_is_shown",
        "one joint update of both roles, without any data": "test_it_trains_from_nothing",
        "what solvers estimate is not trained on": "test_solves_that_estimate_are_not_learned_from",
    },
    choices=(
        "the words of prompts",
        "buffers begin with the identity alone; the paper first fills them without learning",
        "inputs are literals, compared by value",
        "advantages are normalised over samples, not over tokens",
    ),
)
def azr(
    language: str = "python",
    modes: tuple[Mode, ...] = MODES,
    solves: int | None = None,
    shown: int = 6,
    inputs: int = 10,
    unlearnable: float = -0.5,
    learnability: bool = True,
    capacity: int = 16_384,
) -> Method:
    """Self-play on (program p, input i, output o = p(i)), in B proposals and B solutions of each of three modes a step.

        deduction: o from (p, i)    abduction: an i' with p(i') = o    induction: p from half of its pairs

        r_propose = 1 - a if 0 < a < 1, else 0        a: share of right among ``solves`` answers to the valid proposal
        r_solve = 1 right, 0 wrong
        R = -1 without the form of an answer, or not valid; -0.5 if wrong or r_propose = 0; else r
        A = (R - mean) / (std + eps)                  over the step's samples of the same role and mode

    Valid proposals join their mode's buffer, whatever they earn, and are solved in the same step, the newest first.
    One PPO update of everything but the answers that were only to tell a. The run's tasks serve to measure by alone.

    Args:
        language: ``python``, in the sandbox, or ``steps``, for nano models.
        modes: which of the three.
        solves: answers to a proposal; ``rollout.group`` if ``None``. B is ``rollout.prompts``.
        shown, inputs, capacity: see :class:`~assay.curriculum.absolute_zero.AbsoluteZero`.
        unlearnable: R of a valid proposal with r_propose = 0: -0.5 in the released code, 0 in the paper's words.
        learnability: without it a valid proposal earns 1, and is not solved to see how hard it is.

    Source: Absolute Zero (arXiv 2505.03335), section 3, and its released code.
    """
    shape: dict[str, Any] = {"language": language, "modes": modes, "shown": shown, "inputs": inputs}
    return Method(
        curriculum={"name": "absolute_zero", **shape, "capacity": capacity},
        rollout={"name": "absolute_zero", "n": solves, "learnability": learnability},
        reward=Composite(unlearnable),
        credit=build("credit", "grpo"),
    )


@part("rollout", "absolute_zero")
@dataclass(slots=True)
class SelfPlay(Proposing):
    """Proposals of curriculum ``absolute_zero``, judged by how they are solved, and solutions of the newest.

    Args:
        sampling, judge, more, curriculum, answer, inner, n, max_tokens: see :class:`~assay.rollout.derived.Derived`;
            ``n`` answers tell how hard a proposal is.
        learnability: see :func:`azr`.

    Raises:
        UsageError: the run's curriculum is another one, or ``n`` below 2.
    """

    learnability: bool = True
    _valid: dict[Mode, list[Triplet]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        Proposing.__post_init__(self)
        if not isinstance(self.curriculum, AbsoluteZero):
            raise UsageError("rollout 'absolute_zero' has its asks from curriculum 'absolute_zero'; use method S076")
        if self.learnability and (self.curriculum.group if self.n is None else self.n) < 2:
            raise UsageError(
                "rollout 'absolute_zero': one answer is always or never right; a proposal needs 2 or more: raise "
                "rollout.group or solves"
            )

    def derive(self, groups: Sequence[Group], engine: Engine, rng: np.random.Generator) -> list[Ask]:
        """Return what is solved in a step whose proposals were admitted."""
        step = groups[0].task.id.rpartition("/")[2].partition("-")[0] if groups else "0"
        return [Ask(task, 1) for mode in self.curriculum.modes for task in self.curriculum.pick(mode, step)]

    def verifier(self, kind: str) -> Verifier | None:
        return ProgramIO() if kind == KIND else None

    def pose(self, group: Group, episode: Episode, number: int) -> Task | Verdict:
        mode, asked = group.task.meta["mode"], group.task.reference
        known = self.curriculum.known
        found = examined(known, mode, episode.text, asked["program"], asked["propose"])
        if isinstance(found, Refused):
            return refused(found)
        self._valid.setdefault(mode, []).append(found)
        if not self.learnability:
            return Verdict(1.0, True, {"format": 1.0})
        task: Task = self.curriculum.task(mode, found, f"{group.task.id}/posed", group.task.id)
        return task

    def worth(self, accuracy: float) -> Verdict:
        return learnable(accuracy)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        self._valid = {}
        n = self.curriculum.group if self.n is None else self.n
        proposals, estimates = self.settled(SingleTurn(self.sampling).collect(asks, engine, rng), n, engine, rng)
        for mode in self.curriculum.modes:
            self.curriculum.admit(mode, self._valid.get(mode, []))
        wanted = self.derive(proposals, engine, rng)
        solving = [ask for ask in wanted if fits(ask, engine, self.further)]
        solved = self._judged(SingleTurn(self.further).collect(solving, engine, rng))
        told = [a for g in proposals for v in g.verdicts if (a := v.parts.get("accuracy")) is not None]
        self._metrics = {
            "propose/valid": sum(map(len, self._valid.values())) / max(len(asks), 1),
            "propose/learnable": float(np.mean([0 < a < 1 for a in told])) if told else 0.0,
            "propose/accuracy": float(np.mean(told)) if told else 0.0,
            "propose/tokens": float(sum(len(e.tokens) for g in estimates for e in g.episodes)),
            "derived/asked": float(len(solving)),
            "derived/left_out": float(len(wanted) - len(solving)),
            "derived/tokens": float(sum(len(e.tokens) for g in solved for e in g.episodes)),
        }
        return [_in_cell(group) for group in [*proposals, *solved]]


def learnable(accuracy: float) -> Verdict:
    """The verdict on a valid proposal: 1 - a where some of its solvers were right and some were not, else 0."""
    return Verdict(1 - accuracy if 0 < accuracy < 1 else 0.0, True, {"format": 1.0, "accuracy": accuracy})


def _in_cell(group: Group) -> Group:
    cell = f"{group.task.meta['role']}/{group.task.meta['mode']}"
    return replace(group, episodes=tuple(replace(e, advantage_group=cell) for e in group.episodes))


@part("reward", "composite")
@dataclass(frozen=True, slots=True)
class Composite:
    """-1 for a response without the form that was asked for, which an invalid proposal has not; -0.5 for a wrong one.

    R = -1 if ``parts["format"]`` is 0; ``wrong`` if not passed; ``empty`` if passed with score 0; else the score.

    Source: Absolute Zero (arXiv 2505.03335), equation 6.

    Args:
        empty: of what is valid and worth nothing.
        wrong, unformed: the two grades below.
    """

    empty: float = -0.5
    wrong: float = -0.5
    unformed: float = -1.0

    def grade(self, verdict: Verdict) -> float:
        if verdict.parts.get("format") == 0:
            return self.unformed
        if not verdict.passed:
            return self.wrong
        return verdict.score or self.empty

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor([self.grade(v) for v in batch.verdicts], dtype=batch.rewards.dtype)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts])
        return Reward(torch.where(valid, values, 0.0), valid=valid, terms={"composite": values})


LADDER: dict[str, Any] = {"language": "ladder", "modes": ["deduction"]}
"""Of setting ``frontier``, whose language has nothing to find but an output."""
ARMS: dict[str, dict[str, Any]] = {
    "learnable": {"name": "S076", "options": LADDER},
    "valid": {"name": "S076", "options": {**LADDER, "learnability": False}},
}
MORE = "answers that tell how hard a proposal is are sampled beside those that are learned from, and only for one arm"

claims(
    Claim(
        paper="S076",
        text="Proposers that earn 1 - a make a policy climb further on as many responses that it learns from than "
        "proposers that earn as much for whatever is valid.",
        setting="frontier",
        evidence="mechanism",
        arms=ARMS,
        better="learnable",
        baseline="valid",
        measure="solved",
        sweep={"lr": (0.3, 1.0, 3.0)},
        unequal=MORE,
    ),
    Claim(
        paper="S076",
        text="What they propose stays at the edge of what the policy can do while that moves: more of it is solved by "
        "some of eight answers and not by all.",
        setting="frontier",
        name="mechanism",
        arms=ARMS,
        better="learnable",
        baseline="valid",
        measure="learnable",
        sweep={"lr": (0.3, 1.0, 3.0)},
        unequal=MORE,
    ),
)
