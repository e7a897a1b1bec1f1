"""S071: the policy is asked to grade some of its own fresh solutions, and learns from both in one update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.inference.scoring.self_verification import TEMPLATE, asked_to_verify, check_verification
from assay.method import Method
from assay.registry import build, part
from assay.rewards.outcome.graded import Graded
from assay.rewards.spec import reward_of
from assay.rollout.derived import Derived
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.answer.extract import RULES
from assay.verify.base import Verifier
from assay.verify.text.exact import Exact

KIND = "rise_verification"
"""Of tasks that ask for the grade of a solution."""
PAPER = 8
"""Problems for each verification task: 1024 for 128."""


@paper(
    "S071",
    "RISE",
    arxiv="2505.13445",
    seams=["rollout", "tasks", "reward", "objective", "inference"],
    essentials={
        "solutions earn 1, -0.5 if wrong and -1 if no answer is marked": "test_the_three_grades",
        "verification tasks are made of this step's solutions, their gold answer the text of the grade": (
            "test_the_gold_answer_is_the_grade_that_the_solution_got"
        ),
        "solutions are thinned out evenly over problems": "test_the_cap_is_spread_evenly_over_problems",
        "a verification is graded as a solution is, by whether it predicts the grade": "test_verifications_are_graded",
        "one update of both, each verification task an advantage group of its own": (
            "test_one_update_learns_from_both_and_groups_stay_apart"
        ),
        "the solution that a verification prompt shows is not trained on": "test_what_is_shown_is_not_learned_from",
        "PPO: a critic, and the KL divergence from the reference in the reward": "test_it_is_ppo_with_kl_in_the_reward",
        "short verifications earn the lowest grade, on request": "test_short_verifications_earn_the_lowest_grade",
        "at test time the vote is weighted by the model's own grades": "test_the_vote_weighted_by_own_grades",
        "verification is learned although solving stays as it was": (
            "test_verification_is_learned_from_its_own_stream_alone"
        ),
    },
    choices=(
        "words of the verification prompt",
        'an answer is marked however the verifier reads it; the paper\'s box is grades.marks = ["boxed"]',
        "without verifications given, an eighth as many verification tasks as problems: the paper's 128 for 1024",
        "lambda of GAE is 1",
        "in a vote grades are moved into [0, 1]",
    ),
)
def rise(
    verifications: int | None = None,
    n: int | None = None,
    short: int = 0,
    grades: Any = "graded",
    template: str = TEMPLATE,
    kl: float = 0.01,
    credit: Any = None,
    inner: Any = "single_turn",
) -> Method:
    """Solve, then verify a few of the solutions, and learn from both kinds of responses in one PPO update.

        R(solution) = 1 right, -0.5 wrong, -1 no answer marked (in the paper: in a box)      (reward ``graded``)
        C of the step's solutions y become tasks "what is the grade of y?" with gold answer str(R(y))
        R(verification) = 1 if it marks that grade, -0.5 if another, -1 if none

    The C solutions are spread evenly over the problems, at random within each. Each verification task is answered ``n``
    times by the policy as it is, and is an advantage group of its own; the solution that it shows is part of its
    prompt, which is not learned from. With C = 0 it is PPO on solutions alone.

    At test time, scorer ``self_verification`` in ``weighted_majority`` or ``best_of_n``.

    Args:
        verifications: C; an eighth of the number of problems (at least one) if ``None``.
        n: responses to a verification task; as many as to a problem if ``None``.
        short: a verification of fewer characters earns the lowest grade; the released code has 800 as a variant.
        grades: reward ``graded`` or options of it.
        template: of the verification prompt, see :class:`~assay.inference.scoring.self_verification.SelfVerification`.
        kl: weight of the divergence from the reference in the reward; 0 leaves it out.
        credit: by default GAE with a critic and lambda 1; any other will do.
        inner: the rollout that solves.

    Source: RISE (arXiv 2505.13445) and its released code.
    """
    made = build("reward", grades)
    terms = {"terms": {"graded": made, "kl": "kl"}, "weights": {"kl": kl}}
    options = {"verifications": verifications, "n": n, "short": short, "template": template, "inner": inner}
    return Method(
        reward=reward_of({"name": "weighted", **terms}) if kl else made,
        credit=build("credit", {"name": "gae", "decay": 1.0} if credit is None else credit),
        rollout={"name": "self_verification", "grades": made, **options},
    )


@part("rollout", "self_verification")
@dataclass(slots=True)
class SelfVerifying(Derived):
    """Responses, and the policy's own grades of some of them.

    Args:
        sampling, judge, more, curriculum, answer, inner, n, max_tokens: see :class:`~assay.rollout.derived.Derived`.
        grades, verifications, template, short: see :func:`rise`.

    Raises:
        UsageError: ``verifications`` or ``short`` negative, or a template without ``{response}``.
    """

    grades: Any = "graded"
    verifications: int | None = None
    template: str = TEMPLATE
    short: int = 0
    _verifier: Verifier = field(init=False)

    def __post_init__(self) -> None:
        Derived.__post_init__(self)
        self.grades = build("reward", self.grades)
        if not isinstance(self.grades, Graded):
            raise UsageError("rollout 'self_verification': grades are those of reward 'graded'")
        if min(self.verifications or 0, self.short) < 0:
            raise UsageError("rollout 'self_verification': verifications and short must be at least 0")
        check_verification(self.template, "rollout 'self_verification'")
        self._verifier = GradeVerifier(self.grades, self.short)

    def verifier(self, kind: str) -> Verifier | None:
        return self._verifier if kind == KIND else None

    def _graded(self, group: Group) -> list[tuple[Episode, float]]:
        """Return the responses of a group that could be judged, with their grades."""
        pairs = zip(group.episodes, group.verdicts, strict=True)
        found = [(e, self.grades.grade(e.text, v)) for e, v in pairs if e.stop != "error"]
        return [(e, grade) for e, grade in found if grade is not None]

    def derive(self, groups: Sequence[Group], engine: Engine, rng: np.random.Generator) -> list[Ask]:
        known = [self._graded(group) for group in groups]
        wanted = max(1, len(groups) // PAPER) if self.verifications is None else self.verifications
        out = []
        for group, graded, count in zip(groups, known, shares(wanted, len(groups)), strict=True):
            for i in sorted(rng.permutation(len(graded))[:count].tolist() if count else []):
                episode, grade = graded[i]
                prompt = asked_to_verify(group.task.prompt, episode.text, self.grades, self.template)
                task = Task(f"{group.task.id}/grade-{i}", prompt, str(grade), KIND, parent=group.task.id)
                out.append(Ask(task, group.ask.n if self.n is None else self.n))
        return out


def shares(count: int, groups: int) -> list[int]:
    """Divide ``count`` among ``groups``, as evenly as can be, the first ones getting what is left over."""
    return [count // groups + (i < count % groups) for i in range(groups)]


@dataclass(frozen=True, slots=True)
class GradeVerifier:
    """Right iff a response marks the grade that is the task's reference.

    Args:
        grades: they say what marks a grade.
        short: a response of fewer characters counts as marking none.
    """

    grades: Graded
    short: int = 0

    def __call__(self, task: Task, response: str) -> Verdict:
        if len(response) < self.short:
            return Verdict(0.0, False, {"marked": 0.0}, f"shorter than {self.short} characters")
        marks = self.grades.marks
        return replace(Exact(), rules=marks or RULES, fallback="none" if marks else "line")(task, response)


TABLE: dict[str, Any] = {
    "template": "24/{question}/{response}",
    "grades": {"name": "graded", "wrong": 0.0},
    "kl": 0.0,
    "credit": "grpo",
}
"""How the prompts and grades of setting ``own_judge`` are written; GRPO, as it has no states for a critic to value."""

claims(
    Claim(
        paper="S071",
        text="A policy that learns from solving and from grading a few of its solutions grades them more accurately "
        "than one that spends as many responses on solving alone.",
        setting="own_judge",
        evidence="mechanism",
        arms={
            "rise": {"name": "S071", "options": TABLE},
            "solving alone": {"name": "S071", "options": {**TABLE, "verifications": 0}},
        },
        better="rise",
        baseline="solving alone",
        measure="judged",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
