"""A population of system instructions that evolves with the policy: drawn, credited, halved, refilled by reflection."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.curriculum.base import Stream
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.types import Ask, Group, Task

INSTRUCTION, TEXT, CANDIDATE = "instruction", "instruction_text", "candidate"
"""Of ``task.meta``: number and text of the instruction that a group is asked under; whether it is only being tried."""

TEMPLATE = """Improve the system instruction that a model is given.

The instruction:
{instruction}

Attempts under it that went badly:
{failures}

Say what in the instruction let these go wrong, then write a better one in <instruction>...</instruction>. It has to
hold for other questions of the kind, so it must not speak of these."""

SHOWN = 2000
"""Characters of an attempt that a reflection sees, the last ones."""


@dataclass(slots=True)
class Member:
    """An instruction, its number, what it is worth, and how often it was sampled."""

    number: int
    text: str
    worth: float
    asked: int = 0


@dataclass(order=True, slots=True)
class Failure:
    """An attempt that scored low: kept with the instruction it was made under."""

    key: tuple[float, int]
    number: int = field(compare=False)
    question: str = field(compare=False)
    response: str = field(compare=False)
    feedback: str = field(compare=False)


def chances(worth: Sequence[float], temperature: float) -> np.ndarray:
    """Return softmax(worth / temperature), the chance of each instruction to be asked under."""
    z = np.asarray(worth, dtype=np.float64) / temperature
    p = np.exp(z - z.max())
    return np.asarray(p / p.sum())


@part("curriculum", "instructions")
@dataclass(slots=True)
class Instructions:
    """The next ``prompts`` tasks of the stream, each with an instruction that all its responses are asked under.

    Instruction j is drawn with probability softmax(w / temperature)_j for each task; ``meta["instruction"]`` is its
    number. After a group with mean score s under it

        w_j <- (1 - rate) w_j + rate s

    Every ``period`` steps, with an ``author``, the ceil(keep N) of greatest w stay; the author is shown one of them,
    drawn as above, with attempts under it (or, lacking any, under others) that scored low, and writes an instruction,
    ``proposals`` times. The next step only tries them, on the next ``questions`` tasks of the stream, the same for all
    (``meta["candidate"]``; select ``unprobed`` learns nothing from these, which have ``meta["probe"]`` too). The best
    join, with their mean score as w, until there are N again.

    Source: INSPO (arXiv 2512.01945). The update of w, the constants and the words are choices.

    Args:
        stream, prompts, group: supplied by the run.
        first: the instructions to begin with, all worth ``worth``; N of them.
        temperature: of the draws, positive.
        rate: of the moving average, in (0, 1].
        worth: at the start.
        period: steps between reflections; 0 for none.
        keep: share that stays, in (0, 1).
        author: an engine that writes instructions, or the specification of one; none leaves the population as it is.
        proposals, questions: see above.
        failures: attempts that a reflection is shown.
        buffer: low attempts that are kept, those with the lowest score, the latest first.
        longest: tokens of a reflection; and characters of an instruction, of which longer ones are dropped.
        seed: of the draws.

    Raises:
        UsageError: an option out of range, or no instruction.
    """

    stream: Stream
    prompts: int
    group: int
    first: tuple[str, ...]
    temperature: float = 0.1
    rate: float = 0.1
    worth: float = 0.5
    period: int = 25
    keep: float = 0.5
    author: Any = None
    proposals: int = 4
    questions: int = 32
    failures: int = 3
    buffer: int = 64
    longest: int = 2048
    seed: int = 0
    members: list[Member] = field(init=False)
    _engine: Any = field(default=None, init=False, repr=False)
    _rng: np.random.Generator = field(init=False, repr=False)
    _steps: int = field(default=0, init=False)
    _made: int = field(default=0, init=False)
    _low: list[Failure] = field(default_factory=list, init=False)
    _seen: int = field(default=0, init=False)
    _candidates: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self.first or self.temperature <= 0 or not 0 < self.rate <= 1 or not 0 < self.keep < 1:
            raise UsageError(
                "curriculum 'instructions' needs an instruction to begin with (first), temperature above 0, rate in "
                f"(0, 1] and keep in (0, 1), not {self.temperature:g}, {self.rate:g} and {self.keep:g}"
            )
        if min(self.proposals, self.questions, self.failures, self.buffer) < 1:
            raise UsageError("curriculum 'instructions': proposals, questions, failures and buffer must be at least 1")
        if self.author is not None:
            self._engine = judge_of(self.author, "curriculum 'instructions'")
        self.members = [Member(i, text, self.worth) for i, text in enumerate(self.first)]
        self._made = len(self.members)
        self._rng = np.random.default_rng([self.seed, 80])

    @property
    def best(self) -> Member:
        """The instruction worth most; of equal ones the oldest."""
        return max(self.members, key=lambda member: member.worth)

    def next(self, step: int) -> list[Ask]:
        if self._candidates:
            tasks = self.stream.next(self.questions)
            return [
                Ask(self._labelled(task, self._made + i, text, probe=True, **{CANDIDATE: True}), 1, None, text)
                for i, text in enumerate(self._candidates)
                for task in tasks
            ]
        p = chances([member.worth for member in self.members], self.temperature)
        drawn = self._rng.choice(len(self.members), self.prompts, p=p)
        return [
            Ask(self._labelled(task, found.number, found.text), self.group, None, found.text)
            for task, found in zip(self.stream.next(self.prompts), [self.members[j] for j in drawn], strict=True)
        ]

    @staticmethod
    def _labelled(task: Task, number: int, text: str, **more: Any) -> Task:
        return replace(task, meta={**task.meta, INSTRUCTION: number, TEXT: text, **more})

    def observe(self, groups: Sequence[Group]) -> None:
        """Credit instructions, keep low attempts; when it is time, halve the population and have it refilled."""
        tried: dict[int, list[float]] = {}
        looked = late = False
        known = {member.number: member for member in self.members}
        for group in groups:
            number, scores = group.task.meta.get(INSTRUCTION), [v.score for v in group.verdicts if v.passed is not None]
            trial = bool(group.task.meta.get(CANDIDATE))
            # Where a run asks ahead, what it asked under candidates that were settled since comes late.
            current = trial and number is not None and number >= self._made
            looked, late = looked or current, late or (trial and not current)
            if number is None or not scores or (trial and number < self._made):
                continue
            if trial:
                tried.setdefault(number, []).extend(scores)
            elif number in known:
                member = known[number]
                member.worth = (1 - self.rate) * member.worth + self.rate * float(np.mean(scores))
                member.asked += 1
                self._remember(group, number)
        if looked:
            self._join(tried)
        elif not self._candidates and not late:
            self._steps += 1
            if self._engine is not None and self.period and self._steps % self.period == 0:
                self._prune()
                self._candidates = self._reflect()

    def _remember(self, group: Group, number: int) -> None:
        for episode, verdict in zip(group.episodes, group.verdicts, strict=True):
            if verdict.passed is None or verdict.score >= 1:
                continue
            self._seen += 1
            # The smallest of the heap goes first, so the key turns low scores and late ones into large numbers.
            low = Failure(
                (-verdict.score, self._seen), number, group.task.question, episode.text[-SHOWN:], verdict.feedback
            )
            (heapq.heappushpop if len(self._low) >= self.buffer else heapq.heappush)(self._low, low)

    def _prune(self) -> None:
        """Keep those worth most, in their order."""
        count = math.ceil(round(self.keep * len(self.members), 9))
        kept = sorted(self.members, key=lambda member: -member.worth)[:count]
        self.members = [member for member in self.members if member in kept]

    def _reflect(self) -> list[str]:
        """Ask the author for instructions; return those that can be read, without repetitions."""
        p = chances([member.worth for member in self.members], self.temperature)
        prompts = []
        for _ in range(self.proposals):
            parent = self.members[int(self._rng.choice(len(self.members), p=p))]
            low = sorted(self._low, reverse=True)
            low = [f for f in low if f.number == parent.number] or low
            chosen = sorted(self._rng.permutation(min(len(low), 2 * self.failures))[: self.failures].tolist())
            shown = "\n\n".join(
                f"Question: {f.question}\nAttempt: {f.response}\nWhat was wrong: {f.feedback or 'it failed'}"
                for f in (low[i] for i in chosen)
            )
            prompts.append(filled(TEMPLATE, instruction=parent.text, failures=shown or "(none)"))
        replies = ask(self._engine, prompts, Sampling(self.longest))
        found = [said.strip() for reply in replies for said in _read(reply.text)]
        there = {member.text for member in self.members}
        return [text for text in dict.fromkeys(found) if text and text not in there and len(text) <= self.longest]

    def _join(self, tried: Mapping[int, Sequence[float]]) -> None:
        """Let the best candidates in, until there are as many as at the start; none that was not judged."""
        scores = {number: float(np.mean(found)) for number, found in tried.items()}
        places = len(self.first) - len(self.members)
        for number in sorted(scores, key=lambda n: (-scores[n], n))[: max(0, places)]:
            self.members.append(Member(number, self._candidates[number - self._made], scores[number]))
        self._made += len(self._candidates)
        self._candidates = []

    def state_dict(self) -> dict[str, Any]:
        return {
            "instructions": [[m.number, m.text, m.worth, m.asked] for m in self.members],
            "rng": self._rng.bit_generator.state,
            "counts": [self._steps, self._made, self._seen],
            "low": [[list(f.key), f.number, f.question, f.response, f.feedback] for f in self._low],
            "candidates": list(self._candidates),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.members = [Member(*row) for row in state["instructions"]]
        self._rng.bit_generator.state = state["rng"]
        self._steps, self._made, self._seen = state["counts"]
        self._low = [Failure((key[0], key[1]), *rest) for key, *rest in state["low"]]
        self._candidates = list(state["candidates"])


def _read(reply: str) -> list[str]:
    """The last instruction that a reply marks, if there is one."""
    return re.findall(r"<instruction>(.*?)</instruction>", reply, re.DOTALL)[-1:]
