"""A description is worth what a reader who has it alone gets right of questions about what is described."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.engines.asking import ask, escaped, filled, judge_of, seed_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.types import Episode, Task, Verdict
from assay.verify.choice.questions import Question, questions_of
from assay.verify.choice.verifier import Choice

TEMPLATE = """A picture that you cannot see is described so:
"{caption}"

{question}

Go by the description alone, and not by what you know or would guess. Reply with the letter of one option, and nothing \
else."""
CANNOT = "The description does not say"
CHOICE = Choice()


@dataclass(frozen=True, slots=True)
class CaptionReader:
    """Asks a model without eyes questions about what a response describes; the score is the share it gets right.

        score_i = 1/N sum_n 1[reader(caption_i, question n, its options shuffled) is right]

    Questions are ``task.reference["questions"]``, see :func:`~assay.verify.choice.questions.questions_of`. Each of N
    draws is of all of them, with the options in a new order; both are of the caption and n alone. ``cannot`` is one
    more option at the end, and never right. A reply that chooses no option is wrong. A draw on which the reader failed
    is left out; where it failed on all the verdict abstains.

    As a verifier (``tasks.verify = {name = "assay.rewards.text.caption_reader:CaptionReader", reader = ...}``) it
    measures captions as the Prism framework does: with ``queries = 0`` every question is asked once. A response passes
    if all is right. ``parts``: ``read``, the share of replies that choose an option.

    Args:
        reader: an engine, or the specification of one.
        queries: N; 0 for each question once.
        shuffle: ``False`` leaves options as they stand.
        template: with ``{caption}`` and ``{question}``; the caption is shown as JSON has texts.
        max_tokens: of the reply.
        cannot: text of the option for what the caption does not say; empty for none.
        again: ``False``: draws go through the questions in a random order, as often as it takes.
        temperature: of the reply.

    Raises:
        UsageError: no engine, ``queries`` or ``temperature`` below 0, or a template that does not show both.

    Source: CapRL (arXiv 2509.22647) and its authors' code; the framework is Prism's (arXiv 2406.14544).
    """

    reader: Any
    queries: int = 8
    shuffle: bool = True
    template: str = TEMPLATE
    max_tokens: int = 8
    cannot: str = CANNOT
    again: bool = True
    temperature: float = 0.6

    def __post_init__(self) -> None:
        object.__setattr__(self, "reader", judge_of(self.reader, "the reader of captions"))
        if min(self.queries, self.temperature) < 0 or any(
            f"{{{name}}}" not in self.template for name in ("caption", "question")
        ):
            raise UsageError(
                f"the reader of captions: queries {self.queries} and temperature {self.temperature:g} must be at least "
                "0, and the template show {caption} and {question}"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many captions by one call of the reader."""
        drawn = [(caption, self.draws(questions_of(task), caption)) for task, caption in pairs]
        prompts = [
            filled(self.template, caption=escaped(caption), question=query.question)
            for caption, queries in drawn
            for query in queries
        ]
        replies = iter(ask(self.reader, prompts, Sampling(self.max_tokens, self.temperature)))
        return [self.verdict(queries, [next(replies) for _ in queries]) for _, queries in drawn]

    def draws(self, questions: Sequence[Question], caption: str) -> list[Task]:
        """Return what the reader is asked, as tasks of choosing."""
        count, rng = self.queries or len(questions), np.random.default_rng(seed_of(caption))
        round_ = rng.permutation(len(questions))
        picks = rng.integers(len(questions), size=count) if self.again and self.queries else np.resize(round_, count)
        out = []
        for n, pick in enumerate(picks):
            question, rng = questions[pick], np.random.default_rng([seed_of(caption), n + 1])
            places = np.arange(len(question.options))
            order = (rng.permutation(places) if self.shuffle else places).tolist()
            if self.cannot and self.cannot not in question.options:
                question, order = replace(question, options=(*question.options, self.cannot)), [*order, len(places)]
            out.append(question.ordered(order))
        return out

    def verdict(self, queries: Sequence[Task], replies: Sequence[Episode]) -> Verdict:
        """Return what replies come to."""
        judged = [CHOICE(q, r.text) for q, r in zip(queries, replies, strict=True) if r.stop != "error"]
        if not judged:
            return Verdict.abstain("the reader of captions failed", "infrastructure")
        right = sum(bool(v.passed) for v in judged)
        read = sum(bool(v.passed) or v.feedback.startswith("equal") for v in judged)
        score = right / len(judged)
        return Verdict(score, score == 1, {"read": read / len(judged)}, f"{right} of {len(judged)} are right")


@part("reward", "caption_reader")
class CaptionReward:
    """R_i = the score of a :class:`CaptionReader` + ``length`` l_i

    with l_i = 1 up to ``full`` tokens, 0 from ``none`` on, and a straight line between. A caption on which the reader
    failed has no reward. Verdicts are not read.

    Args:
        reader: an engine, or the specification of one; or a :class:`CaptionReader`.
        queries, shuffle, template, max_tokens, cannot, again, temperature: see there.
        length: weight of the length.
        full, none: see above.

    Raises:
        UsageError: as there, or lengths out of order; before a run, a task without questions.

    Source: CapRL (arXiv 2509.22647); the length is of its successor.
    """

    def __init__(
        self,
        reader: Any = None,
        queries: int = 8,
        shuffle: bool = True,
        template: str = TEMPLATE,
        max_tokens: int = 8,
        length: float = 0.0,
        full: int = 2048,
        none: int = 3072,
        cannot: str = CANNOT,
        again: bool = True,
        temperature: float = 0.6,
    ):
        if length < 0 or not 0 <= full < none:
            raise UsageError(
                f"reward 'caption_reader': length {length:g} must be at least 0, and 0 <= full {full} < none {none}"
            )
        if reader is None:
            raise UsageError("reward 'caption_reader': nobody reads the captions; name a reader, which is an engine")
        self.reader = CaptionReader(reader, queries, shuffle, template, max_tokens, cannot, again, temperature)
        self.length, self.full, self.none = length, full, none

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            questions_of(task)

    def __call__(self, batch: Batch) -> Reward:
        verdicts = self.reader.map(zip(batch.tasks, (e.text for e in batch.episodes), strict=True))
        scores = torch.tensor([v.score for v in verdicts], dtype=batch.rewards.dtype)
        lengths = batch.lengths.to(scores.dtype)
        brief = ((self.none - lengths) / (self.none - self.full)).clamp(0, 1)
        read = torch.tensor([v.parts.get("read") or 0.0 for v in verdicts], dtype=scores.dtype)
        valid = torch.tensor([v.passed is not None for v in verdicts], dtype=torch.bool)
        terms = {"answered": scores, "brief": brief, "read": read}
        return Reward(scores + self.length * brief, valid=valid, terms=terms)
