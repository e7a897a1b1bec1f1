"""Answering with tools that are written on the way, kept, merged and used again: no labels, no change of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.asking import filled, judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.environments.calls import find_calls
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.tools.code import BadTool, MadeTool
from assay.inference.tools.library import Library, Use, Work, called
from assay.inference.tools.roles import (
    DEVELOPER,
    EXECUTOR,
    FAILURES,
    GROUPER,
    INTEGRATOR,
    MANAGER,
    MERGER,
    described,
    grouped,
    planned,
    written,
)
from assay.registry import part
from assay.types import Episode, Prompt, Task


@dataclass(slots=True)
class Job:
    """A task under way: the tools it may call, those written for it, what has been done, and what is still missing."""

    task: Task
    tools: dict[str, MadeTool] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    log: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    over: bool = False
    episodes: list[Episode] = field(default_factory=list)


@part("inference", "tool_evolution")
class ToolEvolution:
    """Four roles answer, and the tools they write stay: a manager, a developer, an executor, an integrator.

    The tasks are taken ``batch`` at a time, each with the library as it was before the batch. The manager names the
    tools a task takes and those that are missing; the developer writes these, each tried on an example and mended up to
    ``repairs`` times with what went wrong; the executor calls tools for up to ``turns`` turns, may ask for one that is
    missing, and has one that fails mended on the inputs it failed on; the integrator answers. Then the library takes in
    what was written (:meth:`~assay.inference.tools.library.Library.absorb`). All that is known of a tool is whether it
    ran. Tools run in the sandbox.

    ``answer.meta`` has ``egl``, tools written for each call so far, and ``tools``, how many there are.

    Under a budget of tokens each role's reply is begun only where they suffice for it; what is left of a task's work
    then is answered from. A budget of samples counts answers: one is enough.

    Args:
        library: file the library is read from, where it is there, and written to; without it, it is begun anew and
            kept for as long as this object.
        batch: tasks at a time.
        turns: of the executor.
        repairs: of a tool.
        merges: tries to merge tools that no one of them can stand for.
        sampling: of each reply.
        developer: an engine that writes tools, tells which are alike and merges them, or the specification of one; who
            answers unless given.

    Raises:
        UsageError: a number out of range, or a file that holds no library.

    Source: Yunjue Agent (arXiv 2601.18226) and its authors' code.
    """

    def __init__(
        self,
        library: str | Path | None = None,
        batch: int = 16,
        turns: int = 6,
        repairs: int = 2,
        merges: int = 3,
        sampling: Sampling | None = None,
        developer: Any = None,
    ):
        if min(batch, turns) < 1 or min(repairs, merges) < 0:
            raise UsageError(
                f"inference 'tool_evolution': batch {batch} and turns {turns} must be at least 1, repairs {repairs} "
                f"and merges {merges} at least 0"
            )
        self.path = None if library is None else Path(library)
        self.library = Library.load(self.path) if self.path is not None and self.path.exists() else Library()
        self.batch, self.turns, self.repairs, self.merges = batch, turns, repairs, merges
        self.sampling = sampling or Sampling()
        self.developer = None if developer is None else judge_of(developer, "inference 'tool_evolution'")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        out = []
        for at in range(0, len(tasks), self.batch):
            jobs = {i: Job(tasks[i]) for i in range(at, min(at + self.batch, len(tasks)))}
            self._work(jobs, meter)
            answers = self._said(jobs, meter, _integrator, last=True)
            done = [job.work for job in jobs.values()]
            self.library.absorb(done, self._merger(meter, at), self.merges, self._grouper(meter, at))
            if self.path is not None:
                self.library.save(self.path)
            told = {"egl": self.library.egl, "tools": len(self.library.tools)}
            for i, job in jobs.items():
                text = answers[i].text if i in answers else None
                out.append(meter.answer(i, text, job.episodes, written=len(job.work.tools), **told))
        return out

    def _work(self, jobs: dict[int, Job], meter: Meter) -> None:
        """Plan, write what is missing, and call tools until nobody goes on."""
        known = described([tool.tool for tool in self.library.tools.values()])
        for i, reply in self._said(jobs, meter, lambda job: _asked(MANAGER, job, tools=known)).items():
            chosen, jobs[i].missing = planned(reply.text)
            jobs[i].tools = {name: self.library.tools[name] for name in chosen if name in self.library.tools}
        for _ in range(self.turns):
            self._write(jobs, meter)
            going = {i: job for i, job in jobs.items() if not job.over}
            replies = self._said(going, meter, _executor)
            for i, job in going.items():
                if i not in replies:
                    job.over = True
                    continue
                self._act(i, job, replies[i].text, meter)

    def _act(self, i: int, job: Job, text: str, meter: Meter) -> None:
        """Make the calls of an executor's turn, and note what it asks for."""
        tools = [tool.tool for tool in job.tools.values()]
        calls = find_calls(text, tools, "tags") if "<tool_call>" in text else ()
        for call in calls:
            if call.problem or call.arguments is None:
                job.log.append(f"error: {call.reason}")
                continue
            job.work.called += 1
            tool = job.tools[call.name]
            ran = called(tool, call.arguments)
            if not ran.ok:
                mended = self._mended(i, job, tool, "", [f"{dict(call.arguments)}: {ran.error}"], meter)
                if mended is not None:
                    ran = called(mended, call.arguments)
            if ran.ok:
                job.work.uses.append(Use(call.name, dict(call.arguments), ran.value))
            job.log.append(f"{call.name}({dict(call.arguments)}) = {ran.value if ran.ok else f'error: {ran.error}'}")
        _, wanted = planned(text)
        job.missing = {name: what for name, what in wanted.items() if name not in job.tools}
        job.over = not calls and not job.missing

    def _write(self, jobs: dict[int, Job], meter: Meter) -> None:
        """Have what is missing written; a tool that cannot be made to run is not there."""
        for i, job in jobs.items():
            for name, purpose in job.missing.items():
                if name in self.library.tools:
                    job.tools[name] = self.library.tools[name]
                elif self._mended(i, job, None, purpose, [], meter, name) is None:
                    job.log.append(f"the tool {name} could not be made")
            job.missing = {}

    def _mended(
        self, i: int, job: Job, old: MadeTool | None, purpose: str, reasons: list[str], meter: Meter, name: str = ""
    ) -> MadeTool | None:
        """Have a tool written, or mended; put it into the job and return it, ``None`` if it was not made to run."""
        name = old.name if old is not None else name
        source = "" if old is None else old.source
        accepted = [use for use in (*self.library.uses, *job.work.uses) if use.tool == name]
        for _ in range(self.repairs + (old is None)):
            failures = filled(FAILURES, source=source, reasons="\n".join(reasons)) if reasons else ""
            asked = filled(DEVELOPER, name=name, purpose=purpose or "as it was", failures=failures)
            reply = self._develop(i, asked, meter)
            if reply is None:
                return None
            try:
                made, example = written(name, reply)
                source = made.source
                tried = called(made, example)
                reasons = [] if tried.ok else [f"{example}: {tried.error}"]
                again = [called(made, use.arguments) for use in accepted]
                reasons += [f"{u.arguments}: {r.error}" for u, r in zip(accepted, again, strict=True) if not r.ok]
            except BadTool as error:
                reasons = [str(error)]
                continue
            if not reasons:
                job.work.tools = [*(t for t in job.work.tools if t.name != name), made]
                job.tools[name] = made
                return made
        return None

    def _develop(self, i: int, prompt: str, meter: Meter) -> str | None:
        """Return the developer's reply, ``None`` where the budget does not suffice or the engine failed."""
        if self.developer is None:
            found = self._replies([i], [prompt], meter)
            return found[i].text if i in found else None
        [[reply]] = self.developer.generate([Request(prompt, 1, self.sampling, int(meter.rng.integers(2**63)))])
        if reply.stop == "error":
            return None
        meter.charge(i, len(reply.tokens) + len(reply.prompt))
        return reply.text

    def _grouper(self, meter: Meter, i: int) -> Callable[[Sequence[MadeTool]], dict[str, list[str]] | None]:
        def group(tools: Sequence[MadeTool]) -> dict[str, list[str]] | None:
            reply = self._develop(i, filled(GROUPER, tools=described([t.tool for t in tools])), meter)
            return None if reply is None else grouped(reply, [t.name for t in tools])

        return group

    def _merger(self, meter: Meter, i: int) -> Callable[[Sequence[MadeTool]], MadeTool | None]:
        def merge(tools: Sequence[MadeTool]) -> MadeTool | None:
            sources = "\n\n".join(f"{t.name}:\n```python\n{t.source}```" for t in tools)
            reply = self._develop(i, filled(MERGER, sources=sources), meter)
            if reply is None:
                return None
            try:
                return written(tools[0].name, f"{reply}\nEXAMPLE {{}}")[0]
            except BadTool:
                return None

        return merge

    def _said(
        self, jobs: dict[int, Job], meter: Meter, asked: Callable[[Job], Prompt], last: bool = False
    ) -> dict[int, Episode]:
        """Ask all of them in one call; return the replies of those that the budget suffices for."""
        found = self._replies(list(jobs), [asked(job) for job in jobs.values()], meter, last)
        for i, reply in found.items():
            jobs[i].episodes.append(reply)
        return found

    def _replies(
        self, rows: Sequence[int], prompts: Sequence[Prompt], meter: Meter, last: bool = False
    ) -> dict[int, Episode]:
        """Ask for one reply each; of all but the answer as much is kept back as an answer may take."""
        most, kept, requests = self.sampling.max_tokens, [], []
        for i, prompt in zip(rows, prompts, strict=True):
            sampling, left = self.sampling, meter.left(i)
            if left is not None:
                if last and not meter.spent[i]:
                    sampling = replace(sampling, max_tokens=min(most, left))
                elif left < most + len(meter.engine.encode(prompt)) + (0 if last else most):
                    continue
            kept.append(i)
            requests.append(Request(prompt, 1, sampling, int(meter.rng.integers(2**63))))
        replies = meter.generate(kept, requests)
        return {i: reply for i, [reply] in zip(kept, replies, strict=True) if reply.stop != "error"}


def _integrator(job: Job) -> Prompt:
    return _asked(INTEGRATOR, job, done=_done(job)) if job.log else job.task.prompt


def _asked(template: str, job: Job, **shown: str) -> str:
    return filled(template, question=job.task.question, **shown)


def _executor(job: Job) -> str:
    return _asked(EXECUTOR, job, tools=described([t.tool for t in job.tools.values()]), done=_done(job))


def _done(job: Job) -> str:
    return "\n".join(job.log) or "nothing yet"
