"""S166: reinforcement learning on raw text: reason about it, then write the segment that comes next or is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.verify.text.continuation import CLOSE, OPEN, prediction
from assay.verify.text.text import references

QUESTION = """Below are the beginning of what truly follows in a text, and a prediction of it.

Truth: {reference}

Prediction: {predicted}

Does the prediction say the same as the truth does from its start up to some point? Its words may differ from the
truth's, its meaning may not, and it must not begin later than the truth, nor go on in another way.
Reply with one line and nothing else: "Score: 1" if so, "Score: 0" if not."""
_SCORE = re.compile(r"^\W*(?:score\W*)?([01])\b", re.IGNORECASE | re.MULTILINE)


@paper(
    "S166",
    "RLPT",
    arxiv="2509.19249",
    seams=["tasks", "verify", "reward"],
    essentials={
        "tasks from raw text: the next segment, and the one missing in the middle": "test_a_document_of_four_sentences",
        "lambda: how many of the one kind come with the other": "test_the_missing_are_a_share_of_the_next",
        "the reward: 1 for a beginning of the true continuation that has the whole segment": (
            "test_a_prediction_is_a_beginning_or_wrong"
        ),
        "a generative reward model judges it by meaning, with several true segments in sight": (
            "test_the_judge_decides_what_words_do_not"
        ),
        "what is not between the marks earns nothing": "test_marks",
        "on-policy GRPO without a divergence": "test_the_objective_has_no_divergence",
        "in training the next segment is learned": "test_the_setting_starts_as_it_says",
    },
    choices=(
        "lambda: 1, as many of the one kind as of the other",
        "segments of 20 to 400 characters are asked for; sentences end by rules of our own",
        "the judge's words; what has the truth's words is right without asking",
        "the generative reward model is to be given; without it words are compared",
    ),
)
def rlpt(judge: Any = None, max_chars: int = 2000) -> Method:
    """GRPO on tasks made from raw text: next-segment reasoning.

        J = E_next[r(o, s_i)] + lambda E_middle[r(o, s_i)]
        next:    o is written given s_1 ... s_(i-1)             (autoregressive segment reasoning)
        middle:  o is written given s_1 ... s_(i-1) and s_(i+1) (middle segment reasoning)
        r = 1 if what o says between the marks means the same as a beginning of s_i s_(i+1) ..., else 0

    On policy and without a divergence from any reference policy. The tasks are those of source ``text``, whose option
    ``middle`` is lambda; their verifier ``continuation`` compares words. With a ``judge`` that says only what needs no
    second opinion: a prediction of the same words is right, none at all is wrong, and the judge decides the rest by
    meaning. Several segments are shown to it, because a prediction that runs on into the next one is not wrong; to
    demand exactly s_i, take ``reward = {name = "part", part = "next"}``.

    Args:
        judge: an engine or the specification of one; without it, the verdict.
        max_chars: of the reference that the judge sees, and of a prediction; a longer one is wrong.

    Source: RLPT (arXiv 2509.19249), sections 3.2 and 3.3, with 8 responses at temperature 1, a batch of 512 and a
    learning rate of 1e-6, after fine-tuning on instructions. The judge's wording is a choice.
    """
    return Method(reward=ContinuationReward(judge, max_chars))


@dataclass(slots=True)
class ContinuationReward:
    """See :func:`rlpt`; terms ``verdict`` and, with a judge, ``asked``: 1 where it was.

    A reply that is no score, or a judge that fails, leaves the sample without a reward. Tasks of another kind are worth
    their verdict's score.

    Args:
        judge, max_chars: see there.
        open, close: what a prediction stands between.
        template: of what the judge is asked, with ``{reference}`` and ``{predicted}``.
        max_tokens: of its reply.

    Raises:
        UsageError: a judge that cannot generate, a template that does not show the prediction, or no room for one.
    """

    judge: Any = None
    max_chars: int = 2000
    open: str = OPEN
    close: str = CLOSE
    template: str = QUESTION
    max_tokens: int = 8
    _engine: Engine | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not {"{reference}", "{predicted}"} <= {*re.findall(r"\{\w+\}", self.template)} or self.max_chars < 1:
            raise UsageError(
                "reward 'S166': the template must show {reference} and {predicted}, and max_chars be 1 or more"
            )
        if self.judge is not None:
            self._engine = judge_of(self.judge, "reward 'S166'")

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        terms = {"verdict": values.clone()}
        if self._engine is None:
            return Reward(values, valid=valid, terms=terms)
        prompts = {i: prompt for i in range(len(batch)) if valid[i] and (prompt := self._prompt(batch, i))}
        replies = ask(self._engine, list(prompts.values()), Sampling(self.max_tokens, 0.0))
        terms["asked"] = torch.zeros_like(values)
        for i, reply in zip(prompts, replies, strict=True):
            score = None if reply.stop == "error" else _SCORE.search(reply.text)
            valid[i], values[i] = score is not None, float(score[1]) if score else 0.0
            terms["asked"][i] = 1
        return Reward(values, valid=valid, terms=terms)

    def _prompt(self, batch: Batch, i: int) -> str:
        """What to ask of sample i; nothing where the verdict is enough."""
        task, verdict = batch.tasks[i], batch.verdicts[i]
        said = prediction(batch.episodes[i].text, self.open, self.close)
        if task.kind != "continuation" or verdict.passed or not said or len(said) > self.max_chars:
            return ""
        reference = " ".join(references(task.reference))[: self.max_chars]
        return filled(self.template, reference=reference, predicted=said)


claims(
    Claim(
        paper="S166",
        text="Where responses run over several sentences, a reward for any true beginning of what follows teaches the "
        "next sentence sooner than a reward for that sentence alone.",
        setting="continuations",
        arms={
            "beginning": {"name": "S166"},
            "sentence": {"name": "S166", "reward": {"name": "part", "part": "next"}},
        },
        better="beginning",
        baseline="sentence",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    )
)
