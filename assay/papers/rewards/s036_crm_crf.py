"""S036: conciseness as a bounded factor of the outcome, so that no wrong answer gains by being short."""

from __future__ import annotations

import re
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled, seed_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.ops import group_mean
from assay.registry import build
from assay.rewards.judged import judged
from assay.rewards.length.overlong import response_lengths
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.tasks.making.contrasted import Contrasted
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Pipeline
from assay.types import Message, Prompt

Difficulty = Literal["exp", "accuracy", "none"]

UNKNOWN = 500
"""Batches of the schedule where the run's length is not known."""

TERSE = """Solve the problem in as few words as it can be solved in: only steps that are needed, each said once, and \
the answer at the end.

Problem:
{question}"""
WORDY = """Solve the problem at great length: restate it, say things again in other words, add steps and checks that \
are not needed, and give the answer at the end.

Problem:
{question}"""
RATE = """Rate how concise the solution below is, from 0.1 (redundant) to 1 (nothing to leave out). Go through these \
in turn: does it avoid repetition, is every step relevant to the answer, does every token say something?

Problem:
{question}

Solution:
{response}

End with a line of one number from 0.1 to 1."""
QUESTION = """How concise is the following solution? Consider repetition, whether every step is needed, and how much
each token says. Reply with one number from 0.1 (redundant) to 1 (nothing to leave out), and nothing else.

Problem:
{problem}

Solution:
{solution}"""


@pipeline("S036")
def pairs(low: float = 0.4, high: float = 0.7, template: str = QUESTION) -> Pipeline:
    """Scored solutions for a conciseness reward model to learn from: ``assay tasks make S036``.

    Roles: ``writer`` solves every problem of the seeds once concisely and once redundantly; ``judge`` scores both.

    Args:
        low, high: pairs are kept whose redundant solution scores at most this, and whose concise one at least that.
        template: what the model is to be asked, see :class:`EngineConciseness`.
    """
    return Pipeline("S036", [("contrasted", Contrasted(TERSE, WORDY, RATE, template, low, high))])


@paper(
    "S036",
    "CRM-CRF",
    arxiv="2511.09158",
    seams=["tasks", "reward"],
    essentials={
        "conciseness is a factor of the outcome: a wrong answer is worth 0 however short, every right one more": (
            "test_wrong_is_worth_nothing_and_less_than_right"
        ),
        "the bonus is alpha c (s + d), bounded, d the question's difficulty": "test_by_hand",
        "s is annealed over training": "test_the_schedule_lasts_as_long_as_the_run",
        "the model's data: a concise and a redundant solution, scored, kept where the scores are far apart": (
            "test_pairs_are_kept_whose_scores_are_far_apart"
        ),
        "the model is tuned on them, and then tells concise solutions from redundant ones in the reward": (
            "test_a_model_that_was_tuned_on_pairs_gives_the_reward"
        ),
        "a model scores how concise a solution is, from 0.1 to 1": (
            "test_an_engine_is_asked_about_right_responses_once"
        ),
        "a group that is all right still says something": "test_a_group_that_is_all_right_still_says_something",
        "a policy does not collapse to short, wrong answers, as with a bonus that is added": (
            "test_a_policy_stays_right_where_an_added_bonus_makes_it_short"
        ),
    },
    choices=(
        "alpha = 0.5; s falls in a straight line from 1 to 0 over the run",
        "d = exp(share of responses that are right), as a reader of the paper reports it",
        "without a scorer c compares lengths among the prompt's right responses",
        "pairs: at most 0.4 for the redundant solution, at least 0.7 for the concise one; all wording",
    ),
)
def conciseness(
    scorer: Any = None,
    alpha: float = 0.5,
    start: float = 1.0,
    end: float = 0.0,
    steps: int | None = None,
    difficulty: Difficulty = "exp",
) -> Method:
    """GRPO with the outcome multiplied by a bounded bonus for conciseness, in place of a length penalty.

        R_i = o_i (1 + alpha c_i (s + d_q)),   o_i = 1[right],  c_i in [0.1, 1] how concise,  s annealed

    d_q = exp(share of the prompt's judged responses that are right), so that easy questions press harder. A wrong
    response is worth 0 however short; every right one is worth more. A group that is all right still says something,
    where the outcome alone would not. With alpha = 0 it is the outcome.

    Args:
        scorer: gives c_i: an engine, or the specification of one (a table with ``engine``), that is asked for a number,
            see :class:`EngineConciseness`; or a reward part. Without it 1 - 0.9 (T_i - least) / (most - least) over
            the lengths of the prompt's right responses, see :class:`RelativeConciseness`.
        alpha: not negative.
        start, end: s goes linearly from one to the other.
        steps: over so many batches; over the whole run if left out (500 where nobody says how long that is).
        difficulty: ``accuracy`` takes the share itself as d_q, ``none`` leaves d_q out.

    The scorer of the paper is a model of 3B parameters, fine-tuned on scored pairs of concise and redundant solutions:

        assay tasks make S036 --seeds gsm8k.jsonl --model WRITER --judge JUDGE --out pairs.jsonl
        assay train sft tasks.source.path=pairs.jsonl model.source=Qwen/Qwen2.5-3B run.dir=runs/crm
        assay train gsm8k method=S036 method.options.scorer='{engine={name="hf",model="runs/crm"},chat=true}'

    Source: "Efficient Reasoning via Reward Model" (arXiv 2511.09158) for R; alpha and the schedule of s are choices.
    """
    return Method(reward=ConciseOutcome(scorer, alpha, start, end, steps, difficulty))


class ConciseOutcome(Around):
    """R_i = o_i (1 + alpha c_i (s + d_q)), see :func:`conciseness`; the count of batches is in the checkpoint.

    Terms: ``outcome``, ``conciseness``, ``difficulty``, ``schedule``.

    Args:
        scorer, alpha, start, end, steps, difficulty: see there.

    Raises:
        UsageError: an option out of range.
        RunError: a conciseness outside [0, 1] of a right response; says of which row.
    """

    def __init__(
        self,
        scorer: Any,
        alpha: float,
        start: float,
        end: float,
        steps: int | None,
        difficulty: Difficulty,
    ):
        if alpha < 0 or (steps is not None and steps < 1) or not (0 <= start <= 1 and 0 <= end <= 1):
            raise UsageError(
                f"reward 'S036': alpha {alpha:g} must not be negative, start {start:g} and end {end:g} in [0, 1], "
                f"steps {steps} at least 1"
            )
        if scorer is None:
            scorer = RelativeConciseness()
        elif isinstance(scorer, Engine) or (isinstance(scorer, dict) and "engine" in scorer):
            scorer = EngineConciseness(**scorer) if isinstance(scorer, dict) else EngineConciseness(scorer)
        super().__init__({"conciseness": scorer})
        self.alpha, self.start, self.end, self.steps, self.difficulty = alpha, start, end, steps, difficulty
        self.done, self.run = 0, UNKNOWN

    def planned(self, steps: int) -> None:
        """Take in how many steps the run has."""
        self.run = max(steps, 1)

    @property
    def schedule(self) -> float:
        """s as it is now."""
        return self.start + (self.end - self.start) * min(self.done / (self.steps or self.run), 1.0)

    def __call__(self, batch: Batch) -> Reward:
        found, dtype = self.found(batch), batch.rewards.dtype
        told = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        outcome, concise = right.to(dtype), found["conciseness"].values
        # A wrong response has its reward whether or not it could be scored.
        valid = told & (valid_in(found, batch) | ~right)
        for i in (valid & right & ~((concise >= 0) & (concise <= 1))).nonzero()[:, 0].tolist():
            raise RunError(
                f"reward 'S036': the conciseness {concise[i].item():g} of row {i} (task {batch.tasks[i].id}) is "
                "outside [0, 1]"
            )
        share = group_mean(outcome, batch.prompt_group, told)
        easy = {"exp": share.exp(), "accuracy": share, "none": torch.zeros_like(share)}[self.difficulty]
        bonus = self.alpha * concise * (self.schedule + easy)
        values = torch.where(right & valid, 1 + bonus, 0).to(dtype)
        terms = {
            "outcome": outcome,
            "difficulty": easy,
            "schedule": torch.full_like(outcome, self.schedule),
            **terms_of(found),
        }
        self.done += 1
        return Reward(values, valid=valid, terms=terms)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = int(state["done"])


class RelativeConciseness:
    """c_i = 1 - 0.9 (T_i - least) / (most - least) over the right responses to a prompt; 1 where all are as long."""

    def __call__(self, batch: Batch) -> Reward:
        lengths = response_lengths(batch)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        values = torch.ones_like(lengths)
        for prompt in batch.prompt_group.unique().tolist():
            rows = (batch.prompt_group == prompt) & right
            if bool(rows.any()) and lengths[rows].max() > lengths[rows].min():
                least, most = lengths[rows].min(), lengths[rows].max()
                values[rows] = 1 - 0.9 * (lengths[rows] - least) / (most - least)
        return Reward(values, valid=judged(batch), terms={"conciseness": values})


class EngineConciseness:
    """c_i is the number that a model gives a right response, within [0.1, 1]; wrong ones are not asked about.

    A reply without a number, or a request that failed, leaves the sample without a reward. Equal questions are asked
    once.

    Args:
        engine: an engine, or the specification of one.
        max_tokens: of the reply.
        template: with ``{problem}`` and ``{solution}``.
        chat: ask in a user's message, so that the model's chat template is applied, as ``assay train sft`` does.

    Raises:
        UsageError: a template that does not show the solution.
    """

    def __init__(self, engine: Any, max_tokens: int = 16, template: str = QUESTION, chat: bool = False):
        if "{solution}" not in template:
            raise UsageError("reward 'S036': the template does not show the scorer the {solution}")
        self.engine, self.sampling, self.template = build("engine", engine), Sampling(max_tokens, 0.0), template
        self.chat = chat

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        asked = [i for i, v in enumerate(batch.verdicts) if v.passed]
        prompts = {
            i: filled(self.template, problem=batch.tasks[i].question, solution=batch.episodes[i].text) for i in asked
        }
        once = list(dict.fromkeys(prompts.values()))
        requests = [Request(self._said(p), 1, self.sampling, seed_of(p)) for p in once]
        replies = self.engine.generate(requests) if requests else []
        scores = {
            p: None if reply.stop == "error" else read_score(reply.text)
            for p, [reply] in zip(once, replies, strict=True)
        }
        for i in asked:
            score = scores[prompts[i]]
            valid[i], values[i] = bool(valid[i]) and score is not None, score or 0.0
        return Reward(values, valid=valid, terms={"conciseness": values})

    def _said(self, prompt: str) -> Prompt:
        return (Message(role="user", content=prompt),) if self.chat else prompt


def read_score(text: str) -> float | None:
    """Return the last number of a reply, within [0.1, 1]; nothing where there is none."""
    found = re.findall(r"-?\d+(?:\.\d+)?|-?\.\d+", text)
    return min(max(float(found[-1]), 0.1), 1.0) if found else None


SHORT, LONG = {"concise": 1.0}, {"concise": 0.1}
CONCISE = {"name": "part", "part": "concise"}

claims(
    Claim(
        paper="S036",
        text="A large additive bonus for conciseness makes a policy answer shortly and wrongly; as a factor of the "
        "outcome it does not.",
        setting="choices",
        evidence="construction",
        arms={
            "sum": {
                "name": "grpo",
                "reward": {"name": "weighted", "terms": {"verdict": "verdict", "concise": CONCISE}},
            },
            "product": {"name": "S036", "reward": {"name": "S036", "scorer": CONCISE, "alpha": 1.0}},
        },
        better="product",
        baseline="sum",
        measure="right",
        options={
            # Short and hardly ever right; long and mostly right.
            "choices": [
                [[0.05, True, SHORT], [0.95, False, SHORT]],
                [[0.8, True, LONG], [0.2, False, LONG]],
            ],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
