"""Whether responses fulfil principles that are chosen when the reward is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import filled, first_tokens, judge_of, likeliest, seed_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.answer.spans import boxes
from assay.verify.critique import said
from assay.verify.principle import NO, REASONS, WORD, YES

Item = tuple[str, str, str]
"""Question, response, principle."""


class PrincipleScorer:
    """How far a response fulfils a principle.

        word     log P(Yes) - log P(No), of the next token, one pass
        reasons  the same in the box at the end of a written opinion, a mean over ``samples`` of those that can be read

    Of a next token the ``n`` likeliest are known; where Yes or No is not among them it counts as the last of them. With
    ``read = "share"`` opinions are counted instead: the score is the share that ends with Yes.

    Args:
        judge: an engine, or the specification of one, that reports log-probabilities.
        form: see above.
        samples, max_tokens: opinions, greedy if it is one, and their length.
        n: see above.
        read: see above; ``share`` does with an engine that reports no log-probabilities.

    Raises:
        UsageError: no engine, or an option out of range.

    Source: RLBFF (arXiv 2509.21319), its scalar and its generative reward model.
    """

    def __init__(
        self,
        judge: Any,
        form: Literal["word", "reasons"] = "word",
        samples: int = 1,
        max_tokens: int = 2048,
        n: int = 20,
        read: Literal["odds", "share"] = "odds",
    ):
        if samples < 1 or n < 2:
            raise UsageError(f"the judge of principles: samples {samples} must be 1 or more, and n {n} 2 or more")
        self.judge = judge_of(judge, "the judge of principles")
        self.form, self.samples, self.max_tokens, self.n = form, samples, max_tokens, n
        self.share = form == "reasons" and read == "share"
        self.even = 0.5 if self.share else 0.0
        """The score above which a principle is rather fulfilled than not."""

    def scores(self, items: Sequence[Item]) -> list[float | None]:
        """Return the score of each item; ``None`` where nothing can be read."""
        template = WORD if self.form == "word" else REASONS
        prompts = [filled(template, question=q, response=y, principle=p) for q, y, p in items]
        if self.form == "reasons":
            return self._reasoned(prompts)
        return [*map(self._odds, likeliest(self.judge, prompts, self.n))]

    def _odds(self, found: dict[str, float]) -> float | None:
        if YES not in found and NO not in found:
            return None
        least = min(found.values())
        return found.get(YES, least) - found.get(NO, least)

    def _reasoned(self, prompts: Sequence[str]) -> list[float | None]:
        once = list(dict.fromkeys(prompts))
        sampling = Sampling(self.max_tokens, 0.0 if self.samples == 1 else 1.0)
        replies = self.judge.generate([Request(p, self.samples, sampling, seed_of(p)) for p in once]) if once else []
        texts = [(p, r.text) for p, some in zip(once, replies, strict=True) for r in some if r.stop != "error"]
        told = [(p, text, x) for p, text in texts if (x := said(text)) is not None and (self.share or boxes(text))]
        values = [float(x) for _, _, x in told] if self.share else self._boxed([(p, text) for p, text, _ in told])
        found: dict[str, list[float]] = {p: [] for p in once}
        for (p, _, _), value in zip(told, values, strict=True):
            if value is not None:
                found[p].append(value)
        return [sum(found[p]) / len(found[p]) if found[p] else None for p in prompts]

    def _boxed(self, told: Sequence[tuple[str, str]]) -> list[float | None]:
        """The log-odds of what stands in the box at the end of each reply to a prompt."""
        begun = [text[: boxes(text)[-1].start] for _, text in told]
        prefixes = [tuple(map(int, self.judge.encode_response(text, end=False))) for text in begun]
        asked = [
            Request(p, self.n, Sampling(1, 1.0), seed_of(p), prefix=prefix, beam=True)
            for (p, _), prefix in zip(told, prefixes, strict=True)
        ]
        beams = self.judge.generate(asked) if asked else []
        return [self._odds(first_tokens(self.judge, some)) for some in beams]


@part("reward", "principles")
class PrincipleReward:
    """R_i = mean over principles of how far response i fulfils each, see :class:`PrincipleScorer`.

    Principles are those of the reward, or where there are none the task's ``meta["principles"]``. A response of which
    one cannot be read has no reward, nor has one whose verifier failed; take verifier ``none`` where nothing else
    judges. Terms: ``score``, R; ``met``, the share of principles that are rather fulfilled than not.

    Args:
        judge: a :class:`PrincipleScorer`, a table of its options (``judge`` among them), or the specification of an
            engine.
        principles: of every task.

    Raises:
        UsageError: before a run, a task without principles.
    """

    def __init__(self, judge: Any, principles: Sequence[str] = ()):
        if isinstance(judge, dict) and "judge" in judge:
            judge = PrincipleScorer(**judge)
        self.judge: PrincipleScorer = judge if isinstance(judge, PrincipleScorer) else PrincipleScorer(judge)
        self.principles = tuple(principles)

    def of(self, task: Task) -> tuple[str, ...]:
        """Return the principles of a task; raise UsageError where it has none."""
        found = self.principles or tuple(map(str, task.meta.get("principles", ())))
        if not found:
            raise UsageError(f"reward 'principles': task {task.id} has no principles; name them, or give it some")
        return found

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.of(task)

    def __call__(self, batch: Batch) -> Reward:
        valid = judged(batch)
        rows = valid.nonzero()[:, 0].tolist()
        asked = [(i, p) for i in rows for p in self.of(batch.tasks[i])]
        said = self.judge.scores([(batch.tasks[i].question, batch.episodes[i].text, p) for i, p in asked])
        values = torch.zeros_like(batch.rewards)
        terms = {"score": values, "met": torch.zeros_like(values)}
        for i in rows:
            mine = [x for (k, _), x in zip(asked, said, strict=True) if k == i]
            read = [x for x in mine if x is not None]
            valid[i] = len(read) == len(mine)
            if valid[i]:
                values[i] = sum(read) / len(read)
                terms["met"][i] = sum(x > self.judge.even for x in read) / len(read)
        return Reward(values, valid=valid, terms=terms)
