"""A request taken apart into yes-or-no questions, which a judge answers of what was drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import filled, first_tokens, judge_of, seed_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError, UsageError
from assay.media import MARK, Picture, marks
from assay.policies.flow.samples import point, split
from assay.registry import part
from assay.types import Prompt

Combine = Literal["geometric", "mean", "pooled"]
TEMPLATE = "{drawn}\n{question} Answer yes or no, and no where what the question is about is not there."
ANSWERS = 5
"""Likeliest first tokens of an answer that are read."""


@part("reward", "decomposed")
class Decomposed:
    """Each question q of ``task.meta["questions"]`` has a confidence; those of a kind their mean:

        p_q = P(yes) / (P(yes) + P(no)),   sc = mean over semantic q,   pq = mean over quality q,   R = sqrt(sc pq)

    P is read of the five likeliest first tokens of the judge's answer, in any case of letters; from a judge who reports
    no log-probabilities the answer's first word counts as certain. An answer that is neither leaves the response
    without a reward. What is drawn is shown as a picture, a point as its numbers.

    Args:
        judge: an engine that sees, or the specification of one.
        combine: ``geometric`` as above; ``mean``: (sc + pq) / 2; ``pooled``: the mean over all questions.
        template: of a question, with ``{question}`` and ``{drawn}``.

    Raises:
        UsageError: no engine, a template that does not show both.
        RunError: a task has no questions, of one kind or of both.

    Source: AlphaGRPO (arXiv 2605.12495), its decompositional verifiable reward (DVReward).
    """

    def __init__(self, judge: Any, combine: Combine = "geometric", template: str = TEMPLATE):
        self.judge: Engine = judge_of(judge, "reward 'decomposed'")
        if any(f"{{{name}}}" not in template for name in ("question", "drawn")):
            raise UsageError("reward 'decomposed': the template must show {question} and {drawn}")
        self.combine, self.template = combine, template

    def __call__(self, batch: Batch) -> Reward:
        asked: list[Request] = []
        counts: list[list[int]] = []
        for task, episode in zip(batch.tasks, batch.episodes, strict=True):
            kinds = _questions(task.id, task.meta.get("questions"))
            counts.append([len(kind) for kind in kinds])
            asked += [self.request(question, split(episode.text)[1]) for kind in kinds for question in kind]
        confident = iter(self.confidences(asked))
        values = torch.zeros_like(batch.rewards)
        valid = torch.ones(len(batch), dtype=torch.bool)
        for row, own in enumerate(counts):
            found = [[next(confident) for _ in range(count)] for count in own]
            if any(p is None for kind in found for p in kind):
                valid[row] = False
            else:
                values[row] = combined(found, self.combine)  # type: ignore[arg-type]
        return Reward(values, valid=valid, terms={"decomposed": values})

    def request(self, question: str, drawn: str) -> Request:
        """Return what the judge is asked."""
        words = drawn if point(drawn) is not None else MARK
        text = filled(self.template, question=question, drawn=words)
        prompt: Prompt = text
        if words == MARK:
            images = tuple(Picture.from_url(line) for line in drawn.split())
            text = text.replace(MARK, marks(len(images)))
            prompt = ({"role": "user", "content": text, "images": images},)
        return Request(prompt, ANSWERS, Sampling(1, 1.0), seed_of(text + drawn), beam=True)

    def confidences(self, requests: Sequence[Request]) -> list[float | None]:
        """Return the confidence of each answer, ``None`` where it is neither yes nor no."""
        out: list[float | None] = []
        for beams in self.judge.generate(requests) if requests else []:
            known = all(reply.logprobs is not None or reply.stop == "error" for reply in beams)
            if known:
                said = _lower(first_tokens(self.judge, beams))
            else:
                said = _lower({beams[0].text.split()[0].strip(".,!"): 0.0}) if beams[0].text.split() else {}
            yes, no = (math.exp(said.get(word, -math.inf)) for word in ("yes", "no"))
            out.append(yes / (yes + no) if yes + no else None)
        return out


def combined(found: Sequence[Sequence[float]], how: Combine) -> float:
    """Return the reward of semantic and quality confidences; where there are none of a kind, the other's mean."""
    means = [sum(kind) / len(kind) for kind in found if kind]
    if how == "pooled":
        every = [p for kind in found for p in kind]
        return sum(every) / len(every)
    return sum(means) / len(means) if how == "mean" else math.prod(means) ** (1 / len(means))


def _lower(said: Mapping[str, float]) -> dict[str, float]:
    out: dict[str, float] = {}
    for word, value in said.items():
        before = out.get(word.lower(), -math.inf)
        out[word.lower()] = max(before, value) + math.log1p(math.exp(-abs(before - value)))
    return out


def _questions(task: str, found: Any) -> list[list[str]]:
    kinds = [list(found.get(kind, ())) for kind in ("semantic", "quality")] if isinstance(found, Mapping) else []
    if not any(kinds):
        raise RunError(
            f'task {task} has no questions to judge by: meta["questions"] = {{"semantic": [...], "quality": [...]}}'
        )
    return kinds
