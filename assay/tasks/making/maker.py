"""Runs a pipeline: keeps models busy, remembers what they said, and counts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.asking import seed_of
from assay.engines.base import Engine, Request
from assay.errors import RunError, UsageError
from assay.tasks.making.journal import Journal, key_of
from assay.tasks.making.work import Dropped, Here, Pipeline, Reply, StepCount, Want, Whole, Work
from assay.types import Episode, Task
from assay.verify.base import Verifier
from assay.verify.guard import judge
from assay.verify.kind import KindVerifier

PATIENCE = 3
"""Calls in a row without any reply after which a model is not asked further."""


@dataclass(frozen=True, slots=True)
class Model:
    """Who answers.

    Attributes:
        name: tells it from other models, also those of the same name with other weights.
        engine: answers.
        calls: at a time, 1 for an engine that answers one call after the other.
        batch: requests in a call.
    """

    name: str
    engine: Engine
    calls: int = 1
    batch: int = 64


@dataclass(frozen=True, slots=True)
class Made:
    """The tasks, and what became of all others.

    Attributes:
        tasks: in the order of what they were made from.
        counts: by step.
        asked: requests that were put to models; ``remembered``: those that the journal answered.
        roles: that were asked.
        seconds: that it took; ``busy``: those of them in which a model was being asked.
    """

    tasks: list[Task]
    counts: dict[str, StepCount]
    asked: int
    remembered: int
    roles: frozenset[str]
    seconds: float
    busy: float


@dataclass(slots=True)
class _Job:
    """A step at work on a task, and the replies that it waits for."""

    path: tuple[int, ...]
    task: str
    stage: int
    work: Work
    round: int = -1
    replies: list[list[Reply] | None] = field(default_factory=list)
    missing: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class _Question:
    """A request that waits to be put, and where its replies go."""

    job: _Job
    slot: int
    key: str
    request: Request


_Calls = dict[Future[list[list[Episode]]], tuple[str, list[_Question]]]


class Maker:
    """Takes tasks through the steps of a pipeline, many at a time; each goes as far as it can without the others.

    What is asked for a task depends on the seed, the task and its replies so far, never on what else goes on, so that
    a pipeline that was stopped asks the same again, and the journal answers. Calls to a model are made in threads; all
    else happens in one, while models are busy.

    Args:
        pipeline: the steps.
        models: by role; ``writer`` stands in for those that are not named.
        journal: of replies.
        seed: of all draws, >= 0.
        judge: the verifier; by each task's kind unless given.
        leave_out: drop a task whose request fails, instead of ending with an error.
        tick: told how many of the first tasks are done with.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        models: Mapping[str, Model],
        journal: Journal | None = None,
        seed: int = 0,
        judge: Verifier | None = None,
        leave_out: bool = False,
        tick: Callable[[int], None] = lambda done: None,
    ):
        if len({m.name for m in models.values()}) < len({id(m.engine) for m in models.values()}):
            raise UsageError("models of a pipeline that differ need names that differ")
        self.pipeline, self.models, self.seed, self.leave_out, self.tick = pipeline, models, seed, leave_out, tick
        self.journal = Journal() if journal is None else journal
        self.verifier: Verifier = KindVerifier() if judge is None else judge
        self._by_name = {model.name: model for model in models.values()}
        self._queues: dict[str, deque[_Question]] = {name: deque() for name in self._by_name}
        self.counts = {name: StepCount() for name, _ in pipeline.steps}
        self.asked = self.remembered = self._failed = self._row = 0
        self._reason = ""
        self._roles: set[str] = set()
        self._busy, self._begun = 0.0, 0.0

    def make(self, tasks: Sequence[Task]) -> Made:
        """Return what the pipeline makes of tasks.

        Raises:
            UsageError: tasks that it cannot act on.
            RunError: requests failed; what was answered is in the journal, and the same command goes on.
        """
        self.pipeline.check(tasks)
        began = time.monotonic()
        now, start = list(tasks), 0
        steps = self.pipeline.steps
        while start < len(steps):
            name, step = steps[start]
            if isinstance(step, Whole):
                now, start = self._whole(name, step, now), start + 1
                continue
            end = next((i for i in range(start, len(steps)) if isinstance(steps[i][1], Whole)), len(steps))
            now, start = self._through(now, start, end), end
            if self._failed and (self._given_up or not self.leave_out):
                raise RunError(
                    f"{self._failed} requests failed, e.g.: {self._reason}; the others are kept: mend that and go on "
                    "with the same command, or do without them with --leave-out"
                )
        seconds = time.monotonic() - began
        return Made(now, self.counts, self.asked, self.remembered, frozenset(self._roles), seconds, self._busy)

    def _whole(self, name: str, step: Whole, tasks: Sequence[Task]) -> list[Task]:
        out, dropped = step.whole(tasks, self._here(name, ""))
        count = self.counts[name]
        count.into, count.out = len(tasks), len(out)
        count.dropped.update(dropped)
        return out

    def _here(self, step: str, task: str) -> Here:
        rng = np.random.default_rng([self.seed, seed_of(f"{step}\n{task}")])
        return Here(rng, lambda task, response: judge(self.verifier, task, response))

    def _through(self, tasks: Sequence[Task], start: int, end: int) -> list[Task]:
        """Take tasks through the steps of ``range(start, end)``, none of which waits for others."""
        self._stages, self._last = self.pipeline.steps[:end], end
        self._done: dict[tuple[int, ...], Task] = {}
        waiting = deque(enumerate(tasks))
        calls: _Calls = {}
        pool = ThreadPoolExecutor(max(1, sum(model.calls for model in self._by_name.values())))
        try:
            while True:
                while waiting and not self._given_up and self._hungry():
                    number, task = waiting.popleft()
                    self.tick(number + 1)
                    self._begin(task, (number,), start)
                self._put(calls, pool)
                if not calls:
                    break
                answered = []
                for ended in wait(calls, return_when=FIRST_COMPLETED).done:
                    answered += self._keep(*calls[ended], ended.result())
                    del calls[ended]  # what is not kept yet is left to the end below
                if not calls:
                    self._busy += time.monotonic() - self._begun
                self._put(calls, pool)  # before anything is made of the replies, so that models do not wait for that
                for question, replies in answered:
                    self._settle(question, replies)
        finally:
            pool.shutdown(cancel_futures=True)
            for ended, (name, questions) in calls.items():  # what is still answered after an interrupt is kept
                if not ended.cancelled() and ended.exception() is None:
                    self._keep(name, questions, ended.result())
        return [self._done[path] for path in sorted(self._done)]

    @property
    def _given_up(self) -> bool:
        return self._row >= PATIENCE

    def _hungry(self) -> bool:
        """Whether no model has as many questions waiting as it takes at a time, so that another task is begun."""
        taken = {name: model.calls * model.batch for name, model in self._by_name.items()}
        return all(len(queue) < taken[name] for name, queue in self._queues.items())

    def _put(self, calls: _Calls, pool: ThreadPoolExecutor) -> None:
        """Put the questions that are due."""
        for name, questions in self._due(calls):
            if not calls:
                self._begun = time.monotonic()
            requests = [q.request for q in questions]
            calls[pool.submit(self._by_name[name].engine.generate, requests)] = name, questions
            self.asked += len(requests)

    def _underway(self, calls: Mapping[Any, tuple[str, Any]]) -> dict[str, int]:
        named = [name for name, _ in calls.values()]
        return {name: named.count(name) for name in self._by_name}

    def _due(self, calls: Mapping[Any, tuple[str, Any]]) -> list[tuple[str, list[_Question]]]:
        """Take the questions of the next calls off their queues."""
        out = []
        for name, underway in self._underway(calls).items():
            queue, model = self._queues[name], self._by_name[name]
            for _ in range(model.calls - underway):
                if queue and not self._given_up:
                    out.append((name, [queue.popleft() for _ in range(min(model.batch, len(queue)))]))
        return out

    def _begin(self, task: Task, path: tuple[int, ...], stage: int) -> None:
        if stage == self._last:
            self._done[path] = task
            return
        name, step = self._stages[stage]
        self.counts[name].into += 1
        found = step(task, self._here(name, task.id))
        if isinstance(found, Generator):
            self._go_on(_Job(path, task.id, stage, found), None)
        else:
            self._come(path, stage, task.id, found)

    def _come(self, path: tuple[int, ...], stage: int, of: str, outcome: Any) -> None:
        """Take what came of a task to the next step.

        Raises:
            UsageError: the step says neither tasks nor why there are none.
        """
        name = self._stages[stage][0]
        count = self.counts[name]
        if isinstance(outcome, Dropped):
            count.dropped[outcome.reason] += 1
            return
        made = [outcome] if isinstance(outcome, Task) else outcome
        if not isinstance(made, Sequence) or not all(isinstance(task, Task) for task in made):
            raise UsageError(
                f"step {name} returns a {type(outcome).__name__} for task {of}; it has to return a task, a list of "
                "tasks, or Dropped with the reason"
            )
        for number, task in enumerate(made):
            count.out += 1
            self._begin(task, (*path, number), stage + 1)

    def _go_on(self, job: _Job, replies: list[list[Reply]] | None) -> None:
        """Send a job its replies, again and again while those to what it asks next are there already."""
        while True:
            try:
                wants = next(job.work) if replies is None else job.work.send(replies)
            except StopIteration as stop:
                self._come(job.path, job.stage, job.task, stop.value)
                return
            job.round += 1
            if not all(map(self._fits, wants)):
                job.work.close()
                self._come(job.path, job.stage, job.task, Dropped("a prompt is longer than the model's window"))
                return
            self._ask(job, wants)
            if job.missing:
                return
            replies = [said for said in job.replies if said is not None]

    def _model(self, want: Want) -> Model:
        self._roles.add(want.by)
        model = self.models.get(want.by) or self.models.get("writer")
        if model is None:
            raise UsageError(f"{self.pipeline.name} asks a {want.by}, and no model is named; name one with --model")
        return model

    def _fits(self, want: Want) -> bool:
        engine = self._model(want).engine
        window = getattr(engine, "window", None)
        return window is None or window >= 2**31 or len(engine.encode(want.prompt)) < window

    def _ask(self, job: _Job, wants: Sequence[Want]) -> None:
        name = self._stages[job.stage][0]
        job.replies, job.missing = [None] * len(wants), 0
        for slot, want in enumerate(wants):
            model = self._model(want)
            seed = seed_of(f"{self.seed}\n{name}\n{job.task}\n{job.round}\n{slot}")
            request = Request(want.prompt, want.n, want.sampling, seed)
            key = key_of(model.name, request)
            kept = self.journal.get(key)
            if kept is None:
                job.missing += 1
                self._queues[model.name].append(_Question(job, slot, key, request))
            else:
                self.remembered += 1
                self._answer(job, slot, kept)

    def _answer(self, job: _Job, slot: int, replies: list[Reply]) -> None:
        count = self.counts[self._stages[job.stage][0]]
        count.asked, count.tokens = count.asked + 1, count.tokens + sum(reply.tokens for reply in replies)
        job.replies[slot] = replies

    def _settle(self, question: _Question, replies: list[Reply]) -> None:
        """Hand replies to the job that asked, which goes on if it waits for no other."""
        job = question.job
        job.missing -= 1
        self._answer(job, question.slot, replies)
        if job.missing == 0:
            self._go_on(job, [said for said in job.replies if said is not None])

    def _keep(
        self, name: str, questions: Sequence[_Question], episodes: Sequence[Sequence[Episode]]
    ) -> list[tuple[_Question, list[Reply]]]:
        """Put the replies to a call into the journal, and return them; a request that failed is not answered."""
        answered = []
        for question, said in zip(questions, episodes, strict=True):
            if failed := [e for e in said if e.stop == "error"]:
                self._fail(question.job, str(failed[0].meta.get("error", "no reason was given")))
                continue
            replies = [Reply(e.text, len(e.tokens), e.stop) for e in said]
            self.journal.put(question.key, name, replies)
            answered.append((question, replies))
        self._row = 0 if answered else self._row + 1
        return answered

    def _fail(self, job: _Job, reason: str) -> None:
        """Leave a job without the reply that it waits for: it never goes on."""
        self._failed, self._reason = self._failed + 1, reason
        if not job.lost:
            self.counts[self._stages[job.stage][0]].dropped["could not be asked"] += 1
        job.lost = True
