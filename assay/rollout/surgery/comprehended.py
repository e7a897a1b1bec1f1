"""A group that failed gets others' right responses, those from which the policy best sees the answer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.engines.asking import judge_of, seed_of, shared
from assay.engines.base import Engine, Request, Sampling
from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.surgery.base import Surgeon, plain_prompt
from assay.signals.likelihood import text_of_reference
from assay.types import Episode, Group, Origin, Task, Verdict


@dataclass(frozen=True, slots=True)
class Trace:
    """A right response of another author: of which of the groups, its tokens, and how well it is comprehended."""

    group: int
    text: str
    tokens: np.ndarray
    score: float = 0.0


@part("rollout", "comprehended")
@dataclass(slots=True)
class Comprehended(Surgeon):
    """Of a group that is to be changed, k wrong responses, drawn at random, give way to k right ones of other authors,
    k = min(most, traces there are, wrong responses).

    Traces are the texts in the task's ``meta[traces]`` and what the ``teachers`` write that the run's verifier passes,
    one response of each, remembered. Those longer than a response may be are left out. How well a trace is
    comprehended: with the true answer in the place where the trace has its answer, the policy's chances of the answer's
    tokens a_j after the trace's reasoning,

        c = mean_j pi(a_j | x, reasoning, a_<j),   score = (1 - form) c + form [the trace has an answer where it is
        read]

    The k of the highest score are taken, of equals the shorter. They are of origin ``TEACHER``, their log-probabilities
    unknown, their verdict is that they are right.

    Args:
        most: traces in a group.
        traces: the name in a task's ``meta``.
        teachers: engines, or what specifies them.
        choose: by ``comprehension``, or for comparison the ``shortest``, or at ``random``.
        mean: of the chances, or ``geometric``: the exponential of the mean of their logarithms.
        form: share of the form in the score, in [0, 1].
        temperature: of the teachers.
        remembered: tasks whose teachers' traces are kept.

    Raises:
        UsageError: a number out of range, or a teacher that is no engine.
    """

    most: int = 2
    traces: str = "traces"
    teachers: Sequence[Any] = ()
    choose: Literal["comprehension", "shortest", "random"] = "comprehension"
    mean: Literal["arithmetic", "geometric"] = "arithmetic"
    form: float = 0.1
    temperature: float = 1.0
    remembered: int = 100_000
    _known: OrderedDict[tuple[int, str], list[str]] = field(default_factory=OrderedDict, init=False, repr=False)

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        if min(self.most, self.remembered) < 1 or not 0 <= self.form <= 1:
            raise UsageError(
                f"rollout 'comprehended': most {self.most} and remembered {self.remembered} must be at least 1, form "
                f"{self.form:g} in [0, 1]"
            )
        self.teachers = [judge_of(teacher, "rollout 'comprehended'") for teacher in self.teachers]

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        if tasks and not self.teachers and not any(task.meta.get(self.traces) for task in tasks):
            raise UsageError(
                f"rollout 'comprehended' brings in others' right responses, and task {tasks[0].id} has none in "
                f"meta[{self.traces!r}]; give its tasks some, or name teachers"
            )

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        if self.teachers:
            self._teach([groups[i] for i in cases], engine)
        found = [trace for i in cases for trace in self._pool(i, groups[i].task, engine)]
        if self.choose == "comprehension":
            found = self._scored(found, groups, engine, rng)
        order = rng.permutation(len(found)).tolist() if self.choose == "random" else range(len(found))
        ranked = sorted((found[i] for i in order), key=self._rank)
        for i in cases:
            wrong = [k for k, v in enumerate(groups[i].verdicts) if v.passed is False]
            best = [trace for trace in ranked if trace.group == i][: min(self.most, len(wrong))]
            if not best:
                continue
            self._seen["surgery/mended"] += 1
            self._seen["surgery/traces"] += len(best)
            places = rng.choice(wrong, size=len(best), replace=False).tolist()
            episodes, verdicts = list(groups[i].episodes), list(groups[i].verdicts)
            for place, trace in zip(places, best, strict=True):
                episodes[place], verdicts[place] = self._episode(groups[i], trace, engine), Verdict.right()
            groups[i] = replace(groups[i], episodes=tuple(episodes), verdicts=tuple(verdicts))

    def _rank(self, trace: Trace) -> tuple[float, int]:
        return (-trace.score, len(trace.tokens)) if self.choose != "random" else (0.0, 0)

    def _pool(self, index: int, task: Task, engine: Engine) -> list[Trace]:
        """The traces for a task that are not too long, each once."""
        key = key_of(task)
        taught = [text for number in range(len(self.teachers)) for text in self._known.get((number, key), ())]
        texts = [*map(str, task.meta.get(self.traces, ())), *taught]
        made = [Trace(index, t, np.asarray(engine.encode_response(t), dtype=np.int64)) for t in dict.fromkeys(texts)]
        return [trace for trace in made if 0 < len(trace.tokens) <= self.sampling.max_tokens]

    def _scored(
        self, traces: Sequence[Trace], groups: Sequence[Group], engine: Engine, rng: np.random.Generator
    ) -> list[Trace]:
        """Return the traces with their scores; without an answer that is a text or a number, c is 0."""
        requests: list[Request] = []
        asked: list[int] = []
        formed = []
        seeds = rng.integers(2**63, size=len(traces)).tolist()
        for k, (trace, seed) in enumerate(zip(traces, seeds, strict=True)):
            task = groups[trace.group].task
            place = self.answer(task, trace.text)
            formed.append(place is not None)
            gold = text_of_reference(task)
            if not gold:
                continue
            reasoning = trace.text if place is None else trace.text[: place.start]
            tokens = np.asarray(engine.encode_response(gold, end=False), dtype=np.int64)
            before = engine.encode_response(reasoning, end=False) if reasoning else ()
            asked.append(k)
            requests.append(
                Request(
                    plain_prompt(groups[trace.group]),
                    1,
                    Sampling(len(tokens), self.sampling.temperature),
                    seed,
                    tuple(np.asarray(before, dtype=np.int64).tolist()),
                    within=Trie([tokens]),
                )
            )
        read = [e for [e] in engine.generate(requests)] if requests else []
        chances = dict(zip(asked, (comprehension(e.logprobs, self.mean) for e in read), strict=True))
        return [
            replace(trace, score=(1 - self.form) * chances.get(k, 0.0) + self.form * formed[k])
            for k, trace in enumerate(traces)
        ]

    def _episode(self, group: Group, trace: Trace, engine: Engine) -> Episode:
        return Episode(
            prompt=engine.encode(plain_prompt(group)),
            tokens=trace.tokens,
            mask=np.ones(len(trace.tokens), dtype=bool),
            logprobs=None,
            text=trace.text,
            stop="eos",
            origins=np.full(len(trace.tokens), Origin.TEACHER, dtype=np.uint8),
            meta={"comprehension": trace.score},
        )

    def _teach(self, groups: Sequence[Group], engine: Engine) -> None:
        """Ask every teacher once about the tasks that are not known, and keep what is right.

        Seeds are the tasks' own, so that a resumed run, which has forgotten, is told the same and draws nothing more.
        A teacher that failed is asked again.
        """
        sampling = replace(self.sampling, temperature=self.temperature)
        for number, teacher in enumerate(self.teachers):
            new = {key: g for g in groups if (number, key := key_of(g.task)) not in self._known}
            requests = [Request(plain_prompt(g), 1, sampling, seed_of(f"{number} {key}")) for key, g in new.items()]
            written = shared(engine, requests, teacher.generate) if requests else []
            asked = zip(new.values(), written, strict=True)
            judged = self.judge([Group(replace(g.ask, n=1), tuple(e)) for g, e in asked])
            for key, group in zip(new, judged, strict=True):
                self.spend(group.episodes)
                if not any(e.stop == "error" for e in group.episodes):
                    rows = zip(group.episodes, group.verdicts, strict=True)
                    self._known[number, key] = [e.text for e, v in rows if v.passed]
        while len(self._known) > self.remembered * len(self.teachers):
            self._known.popitem(last=False)


def comprehension(logprobs: np.ndarray | None, mean: Literal["arithmetic", "geometric"]) -> float:
    """Return the mean of the chances, or their geometric mean; 0 where they are not known."""
    if logprobs is None or not len(logprobs):
        return 0.0
    values = np.asarray(logprobs, dtype=np.float64)
    return float(np.exp(values).mean() if mean == "arithmetic" else np.exp(values.mean()))


def key_of(task: Task) -> str:
    return f"{task.id}\n{task.prompt}"
