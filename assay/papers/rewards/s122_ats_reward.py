"""S122: screening of applications by a weighted sum of criteria, with penalties too mild to make rejecting all best."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judged import judged
from assay.types import Task

CRITERIA = ("decision", "skills", "experience", "format")
WEIGHTS = (0.5, 0.2, 0.2, 0.1)


@paper(
    "S122",
    "ATS-Reward",
    arxiv="2511.16073",
    seams=["tasks", "reward", "evaluate"],
    essentials={
        "the reward is a weighted sum of four criteria of a screening": "test_criteria_by_hand",
        "penalties are mild: with harsh ones for false positives, rejecting everybody is best": (
            "test_when_rejecting_everybody_pays"
        ),
        "a divergence holds RL to the policy that fine-tuning left": "test_rl_is_held_to_the_fine_tuned_policy",
        "accuracy, and precision, recall and F1 of either class, are measured": "test_measures_by_class",
        "with mild penalties a policy learns to decide, with harsh ones to reject": "test_a_policy_learns_to_decide",
    },
    choices=(
        "weights 0.5, 0.2, 0.2 and 0.1; -0.5 for a false positive and -0.25 for a false negative; KL weight 0.04",
        "decision and scores are read from lines of their own",
    ),
    lacks="the paper's own four criteria and numbers: what is scored here (decision, skills, experience, form) is ours",
)
def ats_reward(
    weights: tuple[float, float, float, float] = WEIGHTS,
    false_positive: float = -0.5,
    false_negative: float = -0.25,
    kl_weight: float = 0.04,
) -> Method:
    """GRPO on job applications with a weighted sum of four criteria, close to the policy that fine-tuning left.

        R_i = w_1 decision_i + w_2 skills_i + w_3 experience_i + w_4 format_i,   each in [-1, 1], sum w = 1

    decision: 1 if right, ``false_positive`` for selecting whom the reference rejects, ``false_negative`` for the
    reverse, -1 if there is none. skills and experience: 1 - 2 |said - reference|, -1 if not said. format: 1 if the
    response says exactly one decision, and each score once and in [0, 1]; else -1. Should a false positive cost much
    more than a right decision earns, rejecting everybody is the best policy, and RL finds it, see
    :func:`worth_of_rejecting`; the divergence from the fine-tuned policy holds against that too.

    A response has the lines ``Decision: SELECTED`` or ``REJECTED``, ``Skills: 0.8`` and ``Experience: 0.5``; a task the
    reference ``{"decision": ..., "skills": ..., "experience": ...}``, see :func:`screening_task`. Scores that the
    reference leaves out count neither for nor against: their weight goes to the others. Other tasks are worth their
    verdict's score. See :func:`screened` for measures by class.

    Args:
        weights: of the four, not negative; taken as shares.
        false_positive, false_negative: in [-1, 1].
        kl_weight: of the divergence from the policy that RL began with.

    Source: "A Mathematical Framework for Custom Reward Functions in Job Application Evaluation" (arXiv 2511.16073) for
    the sum of four criteria, mild penalties and the divergence; the criteria and every number are choices.
    """
    reward = ScreeningReward(weights, false_positive, false_negative)
    return Method(reward=reward, objective=ClippedSurrogate(kl_weight=kl_weight))


@dataclass(frozen=True, slots=True)
class ScreeningReward:
    """R_i = sum_c w_c s_ci, see :func:`ats_reward`; a term of the log for each criterion.

    Args:
        weights, false_positive, false_negative: see there.

    Raises:
        UsageError: not four weights, a negative one or none above 0, or a penalty outside [-1, 1]; when called, a
            reference whose decision or scores are none.
    """

    weights: tuple[float, float, float, float] = WEIGHTS
    false_positive: float = -0.5
    false_negative: float = -0.25

    def __post_init__(self) -> None:
        if len(self.weights) != len(CRITERIA) or min(self.weights) < 0 or sum(self.weights) <= 0:
            raise UsageError(f"reward 'S122': weights {self.weights} must be four, not negative, and not all 0")
        if not all(-1 <= x <= 1 for x in (self.false_positive, self.false_negative)):
            raise UsageError("reward 'S122': false_positive and false_negative must be in [-1, 1]")

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        terms = {name: torch.zeros_like(batch.rewards) for name in CRITERIA}
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            if not is_screening(task):
                values[i], valid[i] = batch.verdicts[i].score, batch.verdicts[i].passed is not None
                continue
            scores = self.scores(wanted_of(task), read(episode.text))
            shares = {name: w for name, w in zip(CRITERIA, self.weights, strict=True) if name in scores}
            whole = sum(shares.values())
            values[i] = sum(shares[name] * scores[name] for name in shares) / whole if whole else 0.0
            for name, score in scores.items():
                terms[name][i] = score
        return Reward(values, valid=valid, terms=terms)

    def scores(self, wanted: Mapping[str, Any], said: Screening) -> dict[str, float]:
        """Return the criteria's scores in [-1, 1]; those that the reference says nothing of are left out."""
        out = {"decision": self.decision(wanted["decision"], said.decision)}
        for name in ("skills", "experience"):
            if wanted.get(name) is not None:
                given = said.scores.get(name)
                out[name] = -1.0 if given is None else 1 - 2 * abs(given - wanted[name])
        return out | {"format": 1.0 if said.formed else -1.0}

    def decision(self, wanted: bool, said: bool | None) -> float:
        """Return the score of a decision."""
        if said is None:
            return -1.0
        return 1.0 if said == wanted else self.false_positive if said else self.false_negative


@dataclass(frozen=True, slots=True)
class Screening:
    """What a response says.

    Attributes:
        decision: true for selected; ``None`` where it says none, or both.
        scores: by name, in [0, 1]; the first that is said of each.
        formed: one decision and each score, once.
    """

    decision: bool | None
    scores: Mapping[str, float]
    formed: bool


_DECISION = re.compile(r"^[\s#*_-]*decision[\s*_]*:[\s*_]*(selected|rejected)\b", re.IGNORECASE | re.MULTILINE)
_SCORE = re.compile(
    r"^[\s#*_-]*(skills|experience)[\s*_]*:[\s*_]*(-?\d+(?:\.\d+)?)(?![\d.]*\d)", re.IGNORECASE | re.MULTILINE
)


def read(text: str) -> Screening:
    """Read a response, see :func:`ats_reward`."""
    decisions = [m[1].lower() == "selected" for m in _DECISION.finditer(text)]
    said = [(m[1].lower(), float(m[2])) for m in _SCORE.finditer(text)]
    scores: dict[str, float] = {}
    for name, value in said:
        if 0 <= value <= 1:
            scores.setdefault(name, value)
    formed = len(decisions) == 1 and len(said) == len(scores) == 2
    return Screening(decisions[0] if len(set(decisions)) == 1 else None, scores, formed)


def is_screening(task: Task) -> bool:
    """Say whether a task's reference is a decision on an application."""
    return isinstance(task.reference, Mapping) and "decision" in task.reference


def wanted_of(task: Task) -> dict[str, Any]:
    """Return the reference with its decision as a truth value; raise UsageError where it is none."""
    wanted = dict(task.reference)
    decision = str(wanted["decision"]).strip().upper()
    numbers = [wanted[name] for name in ("skills", "experience") if wanted.get(name) is not None]
    good = all(isinstance(x, int | float) and math.isfinite(x) and 0 <= x <= 1 for x in numbers)
    if decision not in ("SELECTED", "REJECTED") or not good:
        raise UsageError(f"task {task.id}: the reference needs a decision SELECTED or REJECTED, and scores in [0, 1]")
    return wanted | {"decision": decision == "SELECTED"}


def screening_task(
    key: str, job: str, application: str, selected: bool, skills: float | None = None, experience: float | None = None
) -> Task:
    """Return a task that asks for a decision on an application; scores in [0, 1] may be left out."""
    prompt = (
        f"Job:\n{job}\n\nApplication:\n{application}\n\nGive scores from 0 to 1 and a decision, as the lines\n"
        "Skills: ...\nExperience: ...\nDecision: SELECTED or REJECTED"
    )
    reference = {"decision": "SELECTED" if selected else "REJECTED", "skills": skills, "experience": experience}
    task = Task(key, prompt, reference=reference, kind="none")
    wanted_of(task)
    return task


def screened(pairs: Iterable[tuple[Task, str]]) -> dict[str, float]:
    """Return ``accuracy``, the shares ``selected`` and ``undecided``, and precision, recall and F1 of both classes.

    A response without a decision is wrong and of neither class. ``selected_precision`` and so on are left out where
    nothing was said to be, or is, of the class. Empty for no pairs.
    """
    rows = [(bool(wanted_of(task)["decision"]), read(text).decision) for task, text in pairs]
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


def worth_of_rejecting(
    positives: float, accuracy: float, false_positive: float, false_negative: float
) -> tuple[float, float]:
    """Return the expected score of the decision of a policy that rejects everybody, and of one that predicts.

    Args:
        positives: share of applications that should be selected.
        accuracy: of the prediction on either class.
        false_positive, false_negative: scores of the errors; a right decision has 1.
    """
    negatives, error = 1 - positives, 1 - accuracy
    rejecting = negatives + positives * false_negative
    return rejecting, accuracy + error * (negatives * false_positive + positives * false_negative)


MILD = ScreeningReward()
SAID: dict[str, Mapping[str, float]] = {
    "right": {"mild": 1.0, "harsh": 1.0},
    "fp": {"mild": MILD.false_positive, "harsh": -5.0},
    "fn": {"mild": MILD.false_negative, "harsh": 0.0},
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
            # Reject all; or decide, right on 80 of 100. Three of ten applicants should be selected.
            "choices": [
                [[0.7, True, SAID["right"]], [0.3, False, SAID["fn"]]],
                [[0.8, True, SAID["right"]], [0.14, False, SAID["fp"]], [0.06, False, SAID["fn"]]],
            ],
            "steps": 200,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
