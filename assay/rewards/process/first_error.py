"""A model that says where a solution first goes wrong, from the problem alone or beside a solution of its own."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.engines.asking import judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.rewards.process.error_step import NO_ERROR, index_of, question, steps_of
from assay.types import Task, Verdict

ALONE = """Below are a problem and a solution whose steps are numbered from 0.

Problem:
{problem}

Solution:
{steps}

Go through the solution step by step. Give the number of the earliest step that contains an error, or -1 if no step \
does. Reason first, then put the number, and nothing else, in \\boxed{}."""

BESIDE = """Below are a problem, a solution that you wrote yourself, which may be wrong, and another solution whose \
steps are numbered from 0.

Problem:
{problem}

Your own solution:
{reference}

Solution to check:
{steps}

Go through the solution to check step by step. Give the number of its earliest step that contains an error, or -1 if \
no step does. Reason first, then put the number, and nothing else, in \\boxed{}."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a judge says of one solution.

    Attributes:
        index: of the first wrong step, -1 if none is wrong, ``None`` if the reply names neither.
        failed: the engine gave no reply at all: nothing is known of the judge, either.
        reply: its words.
    """

    index: int | None
    failed: bool = False
    reply: str = ""


@dataclass(frozen=True, slots=True)
class FirstError:
    """A generative process reward model: reads the numbered steps and writes the number of the first wrong one, or -1.

    As a step scorer it gives 1 to the steps before the first error, and -1 to that one and those after it; nothing
    where the reply names no step. As a verifier (call it) it passes a solution without an error, with the parts
    ``step 0``, ``step 1``, ...; it knows no reference answer, so its verdict is the model's opinion.

    Source: "Is PRM Necessary?" (arXiv 2505.11227), judge and Self-REF, in words of ours; ProcessBench (arXiv
    2412.06559) is the form of the question.

    Args:
        engine: who judges, or the specification of one.
        own: the judge first solves the problem and sees its solution beside the one to check (Self-REF).
        template: with ``{problem}`` and ``{steps}``, and ``{reference}`` for the judge's own solution.
        sampling: of solutions and judgements; greedy if left out.

    Raises:
        UsageError: no engine, or a template without the steps or, with ``own``, without the solution.
    """

    engine: Any
    own: bool = False
    template: str | None = None
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=4096, temperature=0.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", judge_of(self.engine, "first_error"))
        wanted = ["{problem}", "{steps}", *(["{reference}"] if self.own else [])]
        if missing := [name for name in wanted if name not in self.words]:
            raise UsageError(f"first_error: the template lacks {', '.join(missing)}")

    @property
    def words(self) -> str:
        return self.template or (BESIDE if self.own else ALONE)

    def find(self, solutions: Sequence[tuple[str, Sequence[str]]]) -> list[Found]:
        """Judge (problem, steps) pairs; with ``own`` each problem is solved once."""
        problems = list(dict.fromkeys(p for p, _ in solutions)) if self.own else []
        solved = dict(zip(problems, self._ask(problems), strict=True))
        prompts, asked = [], []
        for i, (problem, steps) in enumerate(solutions):
            mine = solved.get(problem, ("", False))
            if steps and not mine[1]:
                prompts.append(question(problem, mine[0], steps, self.words))
                asked.append(i)
        out = [Found(None, bool(steps)) for _, steps in solutions]
        for i, (reply, failed) in zip(asked, self._ask(prompts), strict=True):
            said, count = index_of(reply), len(solutions[i][1])
            inside = said is not None and NO_ERROR <= said < count
            out[i] = Found(None, True) if failed else Found(said if inside else None, False, reply)
        return out

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        """See :class:`assay.rewards.process.step_scores.StepScorer`."""
        found = self.find([(task.question, steps) for task, steps in responses])
        return [marks(f.index, len(steps)) for f, (_, steps) in zip(found, responses, strict=True)]

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Any) -> list[Verdict]:
        """Judge many responses, whose steps are their paragraphs, together."""
        pairs = list(pairs)
        steps = [steps_of(response) for _, response in pairs]
        found = self.find([(task.question, s) for (task, _), s in zip(pairs, steps, strict=True)])
        return [self._verdict(f, len(s)) for f, s in zip(found, steps, strict=True)]

    def _verdict(self, found: Found, count: int) -> Verdict:
        row = marks(found.index, count)
        if row is None or found.index is None:
            return Verdict.abstain("the judge of steps came to no verdict")
        parts = {f"step {k}": (1 + mark) / 2 for k, mark in enumerate(row)}
        passed = found.index == NO_ERROR
        return Verdict(float(passed), passed, parts, "" if passed else f"step {found.index} is said to be wrong")

    def _ask(self, prompts: Sequence[str]) -> list[tuple[str, bool]]:
        """Return the reply to each prompt and whether the engine failed; equal prompts are asked once."""
        once = list(dict.fromkeys(prompts))
        engine: Engine = self.engine
        asked = [Request(p, 1, self.sampling, zlib.crc32(p.encode("utf-8", "replace"))) for p in once]
        replies = engine.generate(asked) if asked else []
        said = {p: (e.text, e.stop == "error") for p, [e] in zip(once, replies, strict=True)}
        return [said[p] for p in prompts]


def marks(index: int | None, count: int) -> list[float] | None:
    """Return 1 for each of ``count`` steps before the first wrong one and -1 from it on; ``None`` for no index."""
    if index is None:
        return None
    return [1.0 if index == NO_ERROR or k < index else -1.0 for k in range(count)]
