"""A language model that marks the criteria of a task's rubric: a verifier, and a reward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import ask, judge_of
from assay.engines.base import Sampling
from assay.engines.marking import MARKS, TEMPLATE, YES_NO, Question
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task, Verdict
from assay.verify.rubric.aggregate import aggregate_of, clipped, signed
from assay.verify.rubric.criteria import Rubric, unmet

Unread = Literal["abstain", "leave_out"]
Marks = list[float | None]


class RubricJudge:
    """Asks a judge for the marks of a task's rubric, ``meta["rubric"]``; as a verifier, right from ``threshold`` on.

    A verdict's score is the aggregate of the marks (of signed sums, which have no bounds, what ``clip`` makes of
    them); its parts are the marks by criterion, ``None`` where unread; its feedback has a line for each that
    is not met. It abstains where unread marks leave the aggregate open. Greedy; a run names it as ``verify = {name =
    "assay.rewards.judges.rubric_judge:RubricJudge", judge = ...}``.

    Args:
        judge: an engine, or the specification of one.
        aggregate: see :func:`assay.verify.rubric.aggregate.aggregate_of`.
        block, form, labels, template: see :class:`assay.engines.marking.Question`.
        also: criteria asked of every task beside its own, see :meth:`assay.verify.rubric.criteria.Rubric.read`; where
            one has a weight, a task without a rubric has these alone.
        unread: a mark that could not be read leaves the aggregate open, or its criterion is left out.
        threshold: see above.
        max_tokens: of a reply.

    Raises:
        UsageError: no engine, an option that does not fit; while judging, a task without a rubric.
    """

    def __init__(
        self,
        judge: Any,
        aggregate: Any = "mean",
        block: int = 0,
        form: str = "json",
        labels: Mapping[str, float] | None = None,
        also: Sequence[Any] = (),
        unread: Unread = "abstain",
        threshold: float = 0.5,
        max_tokens: int = 4096,
        template: str = TEMPLATE,
    ):
        if unread not in ("abstain", "leave_out") or not 0 <= threshold <= 1:
            raise UsageError(
                f"the judge of rubrics: unread {unread!r} is abstain or leave_out, threshold {threshold} in [0, 1]"
            )
        self.judge = judge_of(judge, "the judge of rubrics")
        self.aggregate = aggregate_of(aggregate)
        self.question = Question(block, form, YES_NO if labels is None else labels, template)
        self.also = Rubric.read(also, "the criteria of every task").criteria if also else ()
        self.unread, self.threshold, self.sampling = unread, threshold, Sampling(max_tokens, 0.0)

    def rubric(self, task: Task) -> Rubric:
        """Return what responses to a task are marked by."""
        alone = "rubric" not in task.meta and any(c.weight for c in self.also)
        return (Rubric(()) if alone else Rubric.of(task)).joined(self.also)

    def marks(self, pairs: Sequence[tuple[Task, str]]) -> list[Marks]:
        """Return the mark of each criterion of each response; all requests are one call of the judge."""
        rubrics = [self.rubric(task) for task, _ in pairs]
        prompts = [self.question.prompts(t.question, x, r) for (t, x), r in zip(pairs, rubrics, strict=True)]
        replies = iter(ask(self.judge, [p for some in prompts for p in some], self.sampling))
        out = []
        for rubric, some in zip(rubrics, prompts, strict=True):
            said = [next(replies) for _ in some]
            out.append(self.question.read(rubric, [None if e.stop == "error" else e.text for e in said]))
        return out

    def value(self, rubric: Rubric, marks: Marks) -> float | None:
        """Return the aggregate of a response's marks; ``None`` where it is open."""
        return self._of(self.aggregate, rubric, marks)

    def _of(self, aggregate: Any, rubric: Rubric, marks: Marks) -> float | None:
        if self.unread == "leave_out":
            read = [mark is not None for mark in marks]
            rubric, marks = rubric.kept(read), [mark for mark in marks if mark is not None]
            if not marks:
                return None
        found: float | None = aggregate(rubric, marks)
        return found

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Return verdicts on many responses."""
        listed = list(pairs)
        return [self.verdict(self.rubric(t), m) for (t, _), m in zip(listed, self.marks(listed), strict=True)]

    def verdict(self, rubric: Rubric, marks: Marks) -> Verdict:
        """Return the verdict that marks give."""
        parts = dict(zip((c.id for c in rubric.criteria), marks, strict=True))
        score = self._of(clipped if self.aggregate is signed else self.aggregate, rubric, marks)
        if score is None:
            unread = ", ".join(name for name, mark in parts.items() if mark is None)
            return Verdict(0.0, None, parts, f"the judge gave no mark that can be read of: {unread}")
        pairs = zip(rubric.criteria, marks, strict=True)
        texts = [(c.weight, " ".join(c.text.split())) for c, mark in pairs if unmet(c, mark)]
        short = [text if weight >= 0 else f"it should not be so: {text}" for weight, text in texts]
        return Verdict(score, score >= self.threshold, parts, "\n".join(short))


@part("reward", "rubric")
class RubricReward:
    """R_i = the aggregate of the marks that a judge gives response i by its task's rubric.

    A response that its rollout has had marked is not marked again. No reward where the aggregate is open, or the
    verifier failed; take verifier ``none`` for tasks judged by nothing else. Terms: ``marks``, the mean of those that
    were read, and ``unread``, the share of those that were not.

    Args:
        judge: a :class:`RubricJudge`, a table of its options (``judge`` among them), or the specification of an engine.

    Raises:
        UsageError: as :class:`RubricJudge`.
    """

    def __init__(self, judge: Any):
        if isinstance(judge, Mapping) and "judge" in judge:
            judge = RubricJudge(**judge)
        self.judge: RubricJudge = judge if isinstance(judge, RubricJudge) else RubricJudge(judge)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task without a rubric, or with one whose marks cannot be put together."""
        for task in tasks:
            rubric = self.judge.rubric(task)
            self.judge.value(rubric, [1.0] * len(rubric.criteria))

    def __call__(self, batch: Batch) -> Reward:
        rows = judged(batch).nonzero()[:, 0].tolist()
        known = [batch.episodes[i].meta.get(MARKS) for i in rows]
        pairs = [(batch.tasks[i], batch.episodes[i].text) for i, m in zip(rows, known, strict=True) if m is None]
        asked = iter(self.judge.marks(pairs))
        values, valid = torch.zeros_like(batch.rewards), torch.zeros(len(batch), dtype=torch.bool)
        terms = {"marks": values.clone(), "unread": values.clone()}
        for i, before in zip(rows, known, strict=True):
            marks = next(asked) if before is None else before
            read = [mark for mark in marks if mark is not None]
            found = self.judge.value(self.judge.rubric(batch.tasks[i]), marks)
            values[i], valid[i] = found or 0.0, found is not None
            terms["marks"][i] = sum(read) / max(len(read), 1)
            terms["unread"][i] = 1 - len(read) / len(marks)
        return Reward(values, valid=valid, terms=terms)
