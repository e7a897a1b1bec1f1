"""S139: thoughts that a solution takes back, and those it adopts into a wrong answer, are told by its own words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.ops import broadcast, group_mean, group_std, outcome
from assay.returns import returns_to_go
from assay.rewards.process.critiques import MARK
from assay.rewards.process.error_step import question
from assay.rewards.process.step_scores import make_scorer, of_verdict
from assay.rewards.process.summed import step_ends
from assay.signals.base import Models
from assay.signals.steps import Steps, decoder, step_texts
from assay.types import Task


@paper(
    "S139",
    "TP-GRPO",
    arxiv="2507.23317",
    seams=["credit"],
    essentials={
        "of a right solution, the steps that its reflections take back are checked, and they alone": (
            "test_intervals_that_a_reflection_takes_back_are_checked"
        ),
        "of a wrong one, steps that its answer adopts are wrong, others uncertain": "test_steps_that_the_answer_adopts",
        "runs of steps with one label are one thought": "test_runs_of_a_label_are_a_thought",
        "rewards of thoughts summed from each on, without the last; the outcome's is standardised, theirs are not": (
            "test_worked_advantages"
        ),
        "they are of the size of the group's accuracy": "test_the_reward_is_of_the_size_of_the_accuracy",
        "right thoughts keep the outcome's advantage": "test_right_thoughts_have_the_outcomes_advantage",
        "many updates on what was sampled and judged at once": "test_a_run_learns_from_labels_in_many_updates",
    },
    choices=(
        "alpha = 1",
        "the population's standard deviation, and no divergence from a reference, whose weight is not said",
        "the words of the judge's questions, and the form of its replies",
        "steps are cut by the text, as in other methods, where the paper's judge cuts what was thought; the last of "
        "them is the answer",
        "a response whose labels cannot be read has the outcome's advantage alone",
    ),
)
def tp_grpo(
    judge: Any,
    alpha: float = 1.0,
    merged: bool = True,
    steps: Steps = Steps(),  # noqa: B008  # frozen
    max_tokens: int = 8192,
) -> Method:
    """GRPO's advantage, less where a right solution was on a wrong track, and none where a wrong one was on another.

        right:  A_it = ro_i - r_c  where step(t) is incorrect,  ro_i  elsewhere;   r_c = alpha acc
        wrong:  A_it = ro_i        where step(t) is adopted,    0     elsewhere

    acc is the group's share of right responses, ro_i the outcome compared with the group's (mean, and population
    standard deviation). It is what rewards of thoughts come to that are summed from each one on, see :class:`Thoughts`.
    A group that is all right still blames its detours, by alpha, one that is all wrong teaches nothing.

    The judge need not be able to solve the problem, see :class:`IntrinsicJudge`. The paper samples and judges for some
    50 updates at once, and learns from them with ratios to the policy that sampled: rollout.prompts = 250 and
    train.mini_batches = 50 for batches of 5.

    Args:
        judge: an engine or a table that specifies one; or a scorer of steps
            (:class:`assay.rewards.process.step_scores.StepScores`), whose scores above 0 label a step correct, or
            adopted.
        alpha: at least 0.
        merged: neighbours with one label are one thought; else each step has its reward, for comparison.
        steps: how responses are cut.
        max_tokens: of the judge's replies, which are greedy.

    Source: TP-GRPO (arXiv 2507.23317).
    """
    scorer = IntrinsicJudge(judge, max_tokens) if isinstance(judge, Engine | Mapping) else judge
    return Method(credit=Thoughts(scorer, alpha, merged, steps))


RIGHT = """A solution of the problem below came to the right answer, but may have gone astray on the way. Its steps \
are numbered from 0.

Problem:
{problem}

Solution:
{steps}

Find each step that reflects and takes back what was said before (such as "wait, this is wrong"), and the steps that \
it takes back, which may be right after all. Write a line for each, "Reflection 5: 2-4" where step 5 takes back steps \
2 to 4, or "Reflection: none"."""

CHECK = """Below are a problem and a solution whose steps are numbered from 0. Some of them were doubted later on: \
{doubted}.

Problem:
{problem}

Solution:
{steps}

Check these one after the other; what depends on a wrong step is wrong. Write a line for each, "Step 2: correct" or \
"Step 2: incorrect"."""

WRONG = """Below are a problem and a solution, whose steps are numbered from 0. The last one holds its final answer, \
which is wrong.

Problem:
{problem}

Solution:
{steps}

Which of the earlier steps say what the final answer says, or are what it rests on? Write one line with their numbers, \
"Adopted: 1, 3", or "Adopted: none"."""

REFLECTION = re.compile(
    r"^\W*reflection\W*(\d{1,6})\W+(\d{1,6})\s*(?:-|–|to)\s*(\d{1,6})", re.IGNORECASE | re.MULTILINE
)
NO_REFLECTION = re.compile(r"^\W*reflections?\W*none\b", re.IGNORECASE | re.MULTILINE)
ADOPTED = re.compile(r"^\W*adopted\W*:?\W*(none\b|\d[\d,;\s]*)", re.IGNORECASE | re.MULTILINE)


class IntrinsicJudge:
    """Labels the steps of a solution by what the solution itself says: it asks where, not whether it is right.

    - Of a right solution it finds what reflections take back, then checks these steps; all others are correct.
    - Of a wrong one it finds the steps that the final answer adopts; these are labelled, others are not.

    The last step, which holds the answer, always has the label: correct, or adopted. No labels where a reply cannot be
    read or a request failed.

    Args:
        engine: an engine, or the specification of one.
        max_tokens: of the replies, which are greedy.
    """

    def __init__(self, engine: Any, max_tokens: int = 8192):
        self.engine, self.sampling = judge_of(engine, "the judge of thoughts"), Sampling(max_tokens, 0.0)

    def labels(self, solutions: Sequence[tuple[Task, list[str], bool]]) -> list[list[bool] | None]:
        """Return a label for each step of each solution, of which it is said whether it is right."""
        shown = [
            question(task.question, "", [s.strip() for s in steps], RIGHT if right else WRONG)
            for task, steps, right in solutions
        ]
        many = [i for i, (_, steps, _) in enumerate(solutions) if len(steps) > 1]
        found: list[list[bool] | None] = [[True] * len(steps) for _, steps, _ in solutions]
        doubted: dict[int, list[int]] = {}
        for i, reply in zip(many, self._asked([shown[i] for i in many]), strict=True):
            _, steps, right = solutions[i]
            if right:
                taken_back = None if reply is None else intervals(reply, len(steps))
                found[i] = None if taken_back is None else [True] * len(steps)
                if taken_back:
                    doubted[i] = taken_back
            else:
                found[i] = None if reply is None else adopted(reply, len(steps))
        prompts = [
            question(solutions[i][0].question, "", solutions[i][1], filled(CHECK, doubted=", ".join(map(str, ks))))
            for i, ks in doubted.items()
        ]
        for (i, ks), reply in zip(doubted.items(), self._asked(prompts), strict=True):
            said = {} if reply is None else {int(m[1]): m[2] is None for m in MARK.finditer(reply)}
            row = [said.get(k) if k in ks else True for k in range(len(solutions[i][1]))]
            found[i] = None if None in row else [bool(x) for x in row]
        return found

    def _asked(self, prompts: Sequence[str]) -> list[str | None]:
        return [None if e.stop == "error" else e.text for e in ask(self.engine, prompts, self.sampling)]


def intervals(reply: str, steps: int) -> list[int] | None:
    """Return the steps that reflections take back, all of them before the one that reflects and the last; ``None`` if
    a reply says neither which nor that there are none."""
    found = [tuple(map(int, m.groups())) for m in REFLECTION.finditer(reply)]
    if not found:
        return [] if NO_REFLECTION.search(reply) else None
    return sorted({k for at, a, b in found for k in range(a, b + 1) if k < min(at, steps - 1)})


def adopted(reply: str, steps: int) -> list[bool] | None:
    """Return which steps the answer adopts, the last one always; ``None`` if a reply does not say."""
    found = ADOPTED.findall(reply)
    if not found:
        return None
    said = {int(k) for k in re.findall(r"\d{1,6}", found[-1])}
    return [k in said or k == steps - 1 for k in range(steps)]


@dataclass(frozen=True)
class StepLabels:
    """Signal ``step_labels`` ``(N, T)``: 1 on tokens of steps that are correct (of a right response) or adopted (of a
    wrong one), 0 on those of others; NaN on a response without labels and outside steps. Of a response without a
    verdict nothing is asked.

    Args:
        judge: an :class:`IntrinsicJudge`, or what :class:`assay.rewards.process.step_scores.StepScores` takes for one.
        steps: how responses are cut.
    """

    judge: Any
    steps: Steps = field(default_factory=Steps)

    name = "step_labels"

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        decode = decoder(models)
        spans = [self.steps.of(e, decode) for e in batch.episodes]
        texts = [step_texts(e, s, decode) for e, s in zip(batch.episodes, spans, strict=True)]
        out = torch.full(batch.tokens.shape, math.nan, dtype=batch.logprobs.dtype)
        for i, row in enumerate(self.rows(batch, texts)):
            for span, label in zip(spans[i], row or (), strict=row is not None):
                out[i, span.start : span.end] = float(label)
        return out

    def rows(self, batch: Batch, texts: Sequence[list[str]]) -> list[list[bool] | None]:
        """Return the label of each step."""
        if isinstance(self.judge, IntrinsicJudge):
            out: list[list[bool] | None] = [None] * len(batch)
            told = [i for i, v in enumerate(batch.verdicts) if v.passed is not None]
            asked = [(batch.tasks[i], texts[i], batch.verdicts[i].passed is True) for i in told]
            for i, row in zip(told, self.judge.labels(asked), strict=True):
                out[i] = row
            return out
        scores = (
            [of_verdict(v, len(t)) for v, t in zip(batch.verdicts, texts, strict=True)]
            if self.judge == "verdict"
            else make_scorer(self.judge).scores(list(zip(batch.tasks, texts, strict=True)))
        )
        # The step with the answer has the label that the response has.
        return [None if s is None else [x > 0 or k == len(s) - 1 for k, x in enumerate(s)] for s in scores]


@dataclass(frozen=True, slots=True)
class Thoughts:
    """A_it = ro_i + what the thoughts from t's own on earn, of a response with J thoughts in all:

        right: +r_c for a correct thought, -r_c for an incorrect one;  r_c = alpha acc
        wrong: ro_i for an adopted thought, -ro_i for another
        none for thought J, which holds the answer

    Thoughts are runs of steps with one label, so that labels alternate; that gives the advantages of :func:`tp_grpo`,
    which are computed directly. ``merged`` false makes a thought of each step: then a response earns by their number.
    """

    judge: Any
    alpha: float = 1.0
    merged: bool = True
    steps: Steps = field(default_factory=Steps)
    epsilon: float = 1e-6
    signal: StepLabels = field(init=False, repr=False, compare=False)

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        if self.alpha < 0:
            raise UsageError(f"credit 'S139': alpha {self.alpha:g} must be at least 0")
        object.__setattr__(self, "signal", StepLabels(self.judge, self.steps))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "group std"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        centred = rewards - group_mean(rewards, batch.group, batch.active)
        ro = centred / (group_std(rewards, batch.group, batch.active, ddof=0) + self.epsilon)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        acc = group_mean(right.to(rewards.dtype), batch.group, batch.active)
        whole, label = broadcast(ro, batch), batch.signals["step_labels"]
        mask = batch.mask & batch.active[:, None]
        if self.merged:
            return torch.where(mask, whole + direct(label, right, ro, self.alpha * acc), 0)
        worth = rewarded(label, right, ro, self.alpha * acc)
        ends = step_ends(batch.signals["steps"], batch.mask)
        last = ends.to(torch.int64).flip(1).cumsum(1).flip(1) == 1
        return torch.where(mask, whole + returns_to_go(torch.where(ends & ~last, worth, 0), batch.mask), 0)


def rewarded(
    label: Float[Tensor, "N T"], right: Bool[Tensor, "N"], ro: Float[Tensor, "N"], size: Float[Tensor, "N"]
) -> Float[Tensor, "N T"]:
    """Return what a thought with each token's label earns, see :class:`Thoughts`; 0 without a label."""
    worth = torch.where(right, size, ro)[:, None]
    return torch.where(label == 1, worth, torch.where(label == 0, -worth, 0))


def direct(
    label: Float[Tensor, "N T"], right: Bool[Tensor, "N"], ro: Float[Tensor, "N"], size: Float[Tensor, "N"]
) -> Float[Tensor, "N T"]:
    """Return what alternating thoughts add to ro: -r_c on incorrect ones, -ro on those that are not adopted."""
    return torch.where(label == 0, -torch.where(right, size, ro)[:, None], 0)


ONE = {"by": "fixed", "size": 1}


def _arm(**options: Any) -> dict[str, Any]:
    return {"name": "S139", "options": {"judge": "verdict", "steps": ONE, **options}}


claims(
    Claim(
        paper="S139",
        text="With a reward for every step that is called correct, a policy learns to take useless steps; with one for "
        "every thought it does not.",
        setting="steps",
        evidence="mechanism",
        arms={"thoughts": _arm(), "steps": _arm(merged=False)},
        better="thoughts",
        baseline="steps",
        measure="concise",
        options={"steps": 60, "prompts": 2},
        sweep={"lr": (1.0, 5.0, 25.0)},
    ),
    Claim(
        paper="S139",
        name="miracle",
        text="Where a miracle is right more often than work, a policy whose right responses pay for flawed thoughts "
        "learns to do without it, and one that is paid by outcome alone learns it.",
        setting="miracle",
        evidence="construction",
        arms={"thoughts": _arm(), "outcome": {"name": "grpo"}},
        better="thoughts",
        baseline="outcome",
        measure="honest",
        options={"answer": True},
        sweep={"lr": (0.03, 1.0, 30.0)},
    ),
)
