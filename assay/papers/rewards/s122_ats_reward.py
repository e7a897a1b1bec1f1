"""S122: screening of applications by a weighted sum of criteria, with penalties that are gentle."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judged import judged
from assay.types import Task

CRITERIA = ("status", "score", "skills", "experience")
WEIGHTS = (0.4, 0.2, 0.2, 0.2)
SELECTING = ("APPROVE", "CONSIDER", "STRONGLY_CONSIDER", "SELECTED")
"""What a response, or a reference, may call a selection."""


@paper(
    "S122",
    "ATS-Reward",
    arxiv="2511.16073",
    seams=["tasks", "reward", "evaluate"],
    essentials={
        "the reward is a weighted sum of status, score, skills and experience": "test_criteria_by_hand",
        "penalties are gentle: with harsh ones for false positives, rejecting everybody is best": (
            "test_when_rejecting_everybody_pays"
        ),
        "the skills of job and candidate are shown, and JSON with status and score asked for": (
            "test_what_is_shown_and_asked_for"
        ),
        "a divergence holds RL to the policy that fine-tuning left": "test_rl_is_held_to_the_fine_tuned_policy",
        "accuracy, and precision, recall and F1 of either class, are measured": "test_measures_by_class",
        "with mild penalties a policy learns to decide, with harsh ones to reject": "test_a_policy_learns_to_decide",
    },
    choices=(
        "the years of experience are in the reference; the authors' code reads them from the words of an explanation",
        "the KL weight of 0.4 is the ratio of loss and divergence in the authors' log",
    ),
)
def ats_reward(
    weights: tuple[float, float, float, float] = WEIGHTS,
    true_positive: float = 2.0,
    true_negative: float = 0.0,
    false_positive: float = -1.0,
    false_negative: float = -2.0,
    kl_weight: float = 0.4,
) -> Method:
    """GRPO on job applications with a weighted sum of four criteria, close to the policy that fine-tuning left.

        R_i = 0.4 status_i + 0.2 score_i + 0.2 skills_i + 0.2 experience_i
        status      2 and 0 for selecting and rejecting rightly, -1 and -2 for doing so wrongly
        score       max(-1, 1 - |said - reference| / 50), of scores from 0 to 100;  0 without a reference
        skills      1 if the candidate has three quarters of the job's skills, 0 from four tenths on, else -1
        experience  whether the score said befits the years y:
                    1 if y >= 7 and score >= 75, if 3 <= y <= 6 and 50 <= score < 80, or if y <= 2 and score < 50
                    -1 if y <= 2 and score > 85, or if y >= 5 and score < 40;  0 otherwise

    The skills do not depend on the response: they shift all rewards of a prompt, and no advantage. Should a false
    positive cost much more than a right selection earns, rejecting everybody is the best policy, and RL finds it, see
    :func:`worth_of_rejecting`; the divergence from the fine-tuned policy holds against that too.

    A response has a JSON object with ``status`` and ``score``; without one it says REJECTED and 0. A status that is
    none counts as a wrong selection. Tasks: see :func:`screening_task`; others are worth their verdict's score. See
    :func:`screened` for measures by class.

    Args:
        weights: of the four, not negative; taken as shares.
        true_positive, true_negative, false_positive, false_negative: of the status.
        kl_weight: of the divergence from the policy that RL began with.

    Source: "A Mathematical Framework for Custom Reward Functions in Job Application Evaluation" (arXiv 2511.16073) and
    its authors' notebook, where the penalties are called gentle after -2 and -5 for false positives and negatives.
    """
    reward = ScreeningReward(weights, true_positive, true_negative, false_positive, false_negative)
    return Method(reward=reward, objective=ClippedSurrogate(kl_weight=kl_weight))


@dataclass(frozen=True, slots=True)
class ScreeningReward:
    """R_i = sum_c w_c s_ci, see :func:`ats_reward`; a term of the log for each criterion.

    Args:
        weights, true_positive, true_negative, false_positive, false_negative: see there.

    Raises:
        UsageError: not four weights, a negative one or none above 0, or a worth that is not finite; when called, a
            reference that is none.
    """

    weights: tuple[float, float, float, float] = WEIGHTS
    true_positive: float = 2.0
    true_negative: float = 0.0
    false_positive: float = -1.0
    false_negative: float = -2.0

    def __post_init__(self) -> None:
        if len(self.weights) != len(CRITERIA) or min(self.weights) < 0 or sum(self.weights) <= 0:
            raise UsageError(f"reward 'S122': weights {self.weights} must be four, not negative, and not all 0")
        worths = (self.true_positive, self.true_negative, self.false_positive, self.false_negative)
        if not all(map(math.isfinite, worths)):
            raise UsageError(f"reward 'S122': what a status is worth, {worths}, must be finite")

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        terms = {name: torch.zeros_like(batch.rewards) for name in CRITERIA}
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            if not is_screening(task):
                values[i], valid[i] = batch.verdicts[i].score, batch.verdicts[i].passed is not None
                continue
            scores = self.scores(wanted_of(task), read(episode.text))
            whole = sum(w * scores[name] for name, w in zip(CRITERIA, self.weights, strict=True))
            values[i] = whole / sum(self.weights)
            for name, score in scores.items():
                terms[name][i] = score
        return Reward(values, valid=valid, terms=terms)

    def scores(self, wanted: Wanted, said: Screening) -> dict[str, float]:
        """Return what each criterion says."""
        near = 0.0 if wanted.score is None else max(-1.0, 1 - abs(said.score - wanted.score) / 50)
        fit = 0.0 if wanted.years is None else befits(said.score, wanted.years)
        return {
            "status": self.status(wanted.selected, said.selected),
            "score": near,
            "skills": overlap(wanted.job, wanted.candidate),
            "experience": fit,
        }

    def status(self, wanted: bool, said: bool | None) -> float:
        """Return the worth of a decision; of one that is none, that of a wrong selection."""
        if said is None:
            return self.false_positive
        if said:
            return self.true_positive if wanted else self.false_positive
        return self.false_negative if wanted else self.true_negative


@dataclass(frozen=True, slots=True)
class Screening:
    """What a response says: whether the candidate is selected, ``None`` for another status, and the score."""

    selected: bool | None
    score: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reference says, see :func:`screening_task`."""

    selected: bool
    job: Sequence[str]
    candidate: Sequence[str]
    score: float | None
    years: float | None


def read(text: str) -> Screening:
    """Read a response, see :func:`ats_reward`: what is from the first { to the last } is its JSON."""
    try:
        said = json.loads(text[text.index("{") : text.rindex("}") + 1])
        score, status = int(said.get("score", 0)), str(said.get("status", "REJECTED")).upper()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return Screening(False, 0)
    return Screening(True if status in SELECTING else False if status == "REJECTED" else None, score)


def overlap(job: Sequence[str], candidate: Sequence[str]) -> float:
    """Return 1, 0 or -1 by the share of a job's skills that a candidate has; -1 where either has none."""
    wanted, there = ([skill.strip().lower() for skill in skills] for skills in (job, candidate))
    share = len({*wanted} & {*there}) / len(wanted) if wanted else 0.0
    return 1.0 if share >= 0.75 else 0.0 if share >= 0.4 else -1.0


def befits(score: int, years: float) -> float:
    """Return 1 for a score that goes with so many years of experience, -1 for one that does not, 0 in between."""
    if (years >= 7 and score >= 75) or (3 <= years <= 6 and 50 <= score < 80) or (years <= 2 and score < 50):
        return 1.0
    return -1.0 if (score > 85 and years <= 2) or (score < 40 and years >= 5) else 0.0


def is_screening(task: Task) -> bool:
    """Say whether a task's reference is a decision on an application."""
    return isinstance(task.reference, Mapping) and "status" in task.reference


def wanted_of(task: Task) -> Wanted:
    """Return the reference; raise UsageError where it is none."""
    row = task.reference
    numbers, lists = (row.get("score"), row.get("years")), (row.get("job", ()), row.get("candidate", ()))
    good = all(x is None or (isinstance(x, int | float) and math.isfinite(x)) for x in numbers)
    if not good or not all(isinstance(x, list | tuple) and all(isinstance(s, str) for s in x) for x in lists):
        raise UsageError(
            f"task {task.id}: the reference needs a status, lists of skills as job and candidate, and as score and "
            "years finite numbers or none"
        )
    return Wanted(str(row["status"]).strip().upper() in SELECTING, *lists, *numbers)


def screening_task(
    key: str,
    job: Sequence[str],
    candidate: Sequence[str],
    status: str,
    score: float | None = None,
    years: float | None = None,
) -> Task:
    """Return a task that asks for a decision on a candidate's skills.

    Args:
        key: the task's id.
        job, candidate: skills.
        status: one of :data:`SELECTING` for a selection; anything else is a rejection.
        score: from 0 to 100.
        years: of experience.
    """
    prompt = (
        "As an expert in hiring, compare the candidate's skills with those that the job asks for.\n\n"
        f"### Job Requirements:\n{', '.join(job)}\n\n### Candidate Skills:\n{', '.join(candidate)}\n\n"
        "Reply with JSON that has nothing but the status (SELECTED or REJECTED) and the score (0 to 100)."
    )
    reference = {"status": status, "job": [*job], "candidate": [*candidate], "score": score, "years": years}
    task = Task(key, prompt, reference=reference, kind="none")
    wanted_of(task)
    return task


def screened(pairs: Iterable[tuple[Task, str]]) -> dict[str, float]:
    """Return ``accuracy``, the shares ``selected`` and ``undecided``, and precision, recall and F1 of both classes.

    A response without a decision is wrong and of neither class. ``selected_precision`` and so on are left out where
    nothing was said to be, or is, of the class. Empty for no pairs.
    """
    rows = [(wanted_of(task).selected, read(text).selected) for task, text in pairs]
    if not rows:
        return {}
    out = {
        "accuracy": sum(said == wanted for wanted, said in rows) / len(rows),
        "selected": sum(said is True for _, said in rows) / len(rows),
        "undecided": sum(said is None for _, said in rows) / len(rows),
    }
    for name, kind in (("selected", True), ("rejected", False)):
        hits = sum(wanted is kind and said is kind for wanted, said in rows)
        told, there = sum(said is kind for _, said in rows), sum(wanted is kind for wanted, _ in rows)
        if told:
            out[f"{name}_precision"] = hits / told
        if there:
            out[f"{name}_recall"] = hits / there
        if told or there:
            out[f"{name}_f1"] = 2 * hits / (told + there)
    return out


def worth_of_rejecting(positives: float, accuracy: float, status: ScreeningReward) -> tuple[float, float]:
    """Return the expected worth of the status of a policy that rejects everybody, and of one that predicts.

    Args:
        positives: share of applications that should be selected.
        accuracy: of the prediction on either class.
        status: what the four outcomes are worth.
    """
    negatives, error = 1 - positives, 1 - accuracy
    rejecting = negatives * status.true_negative + positives * status.false_negative
    right = accuracy * (positives * status.true_positive + negatives * status.true_negative)
    return rejecting, right + error * (negatives * status.false_positive + positives * status.false_negative)


MILD = ScreeningReward()
HARSH = ScreeningReward(false_positive=-5.0, false_negative=0.0)
SAID = {
    name: {kind: float(getattr(reward, name)) for kind, reward in (("mild", MILD), ("harsh", HARSH))}
    for name in ("true_positive", "true_negative", "false_positive", "false_negative")
}

claims(
    Claim(
        paper="S122",
        text="With a large penalty for selecting the wrong applicant a policy learns to reject all, with mild ones it "
        "learns to decide.",
        setting="choices",
        evidence="construction",
        arms={kind: {"name": "grpo", "reward": {"name": "part", "part": kind}} for kind in ("harsh", "mild")},
        better="mild",
        baseline="harsh",
        measure="choice 1",
        options={
            # Reject all; or decide, right on 70 of 100. Three of ten applicants should be selected.
            "choices": [
                [[0.7, True, SAID["true_negative"]], [0.3, False, SAID["false_negative"]]],
                [
                    [0.21, True, SAID["true_positive"]],
                    [0.49, True, SAID["true_negative"]],
                    [0.21, False, SAID["false_positive"]],
                    [0.09, False, SAID["false_negative"]],
                ],
            ],
            "steps": 200,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
