"""Judges of evidence: they see what is cited and nothing else, vote, and may fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.engines.asking import filled, judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.from_file import from_file, is_reference
from assay.media import Picture
from assay.types import NOTE, Task, Verdict

MOST = 3
"""Pieces of evidence that cost nothing."""
ADMITS = re.compile(
    r"\b(fail(ed|ure)?|impossible|unable|could not|couldn't|cannot|can't|not possible)\b", re.IGNORECASE
)

TEMPLATE = """A task was given to an agent that uses a device:
{task}

The agent's final message:
{message}

The evidence it has submitted, and all that you may judge by:
{evidence}

First decide whether the evidence is valid: is it about the task, and does it allow a verdict, also a negative one?
Then whether it proves that the task was done. Evidence that is not valid proves nothing; nor does a message that
admits a failure or says that the task is impossible. What is not shown was not done. Think step by step, then
end with a line of JSON: {"valid": true or false, "success": true or false}"""


@dataclass(frozen=True, slots=True)
class Cited:
    """A turn as evidence: its index, what was done in it, and what was observed right after, with its pictures."""

    turn: int
    action: str
    observation: str
    images: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether evidence allows a verdict, and whether it proves success."""

    valid: bool
    success: bool


Judge = Callable[[Task, str, Sequence[Cited]], Opinion]
"""From a task, the agent's message and its evidence to an opinion; whatever it raises is a failure of its own."""


def admits_failure(message: str) -> bool:
    """Whether a message says that the task was not done."""
    return ADMITS.search(message) is not None


class EngineJudge:
    """A language model as judge.

    Args:
        engine: an engine, or the specification of one.
        sampling: of an opinion.
        template: with ``{task}``, ``{message}`` and ``{evidence}``; the reply ends with JSON of ``valid``, ``success``.

    Raises:
        UsageError: no engine, or a template that does not show the evidence.
    """

    def __init__(self, engine: Any, sampling: Sampling | None = None, template: str = TEMPLATE):
        if "{evidence}" not in template:
            raise UsageError("a judge of evidence: the template must show the {evidence}")
        self.engine: Engine = judge_of(engine, "a judge of evidence")
        self.sampling, self.template, self._asked = sampling or Sampling(1024, 0.7), template, 0

    def __call__(self, task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
        shown = "\n\n".join(f"[turn {c.turn}] {c.action}\n{c.observation}" for c in cited)
        prompt = filled(self.template, task=task.question, message=message, evidence=shown)
        self._asked += 1  # so that votes on the same evidence are draws of their own
        [[reply]] = self.engine.generate([Request(prompt, 1, self.sampling, self._asked)])
        if reply.stop == "error":
            raise RuntimeError(str(reply.meta.get("error", "the judge failed")))
        return read_opinion(reply.text)


def read_opinion(text: str) -> Opinion:
    """Return the opinion that a reply ends with.

    Raises:
        ValueError: there is none.
    """
    found = re.findall(r"\{[^{}]*\}", text)
    said = json.loads(found[-1]) if found else {}
    if not isinstance(said.get("valid"), bool) or not isinstance(said.get("success"), bool):
        raise ValueError(f"the judge said no valid and success: {text[-60:]!r}")
    return Opinion(said["valid"], said["success"] and said["valid"])


def judge_from(spec: Any, known: Callable[[str], Judge | None] = lambda name: None) -> Judge:
    """Return the judge that something stands for: a function, one in a file, a ``known`` name, or an engine.

    Raises:
        UsageError: none of these.
    """
    if callable(spec):
        return spec
    if isinstance(spec, str) and (found := known(spec)) is not None:
        return found
    if isinstance(spec, str) and is_reference(spec):
        judge: Judge = from_file(spec, "judge of evidence")
        return judge
    if isinstance(spec, str) and spec.startswith("openai:"):
        from assay.engines.target import endpoint

        return EngineJudge(endpoint(spec))
    return EngineJudge(spec)


@dataclass(frozen=True, slots=True)
class Votes:
    """What a judge said, asked several times: ``success`` and ``valid`` of ``told`` opinions, ``failed`` ones apart."""

    success: int
    valid: int
    told: int
    failed: int
    reason: str = ""


def voted(judge: Judge, n: int, task: Task, message: str, cited: Sequence[Cited]) -> Votes:
    """Ask a judge ``n`` times; an opinion that fails is no vote."""
    opinions, reason = [], ""
    for _ in range(n):
        try:
            opinions.append(judge(task, message, cited))
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    success, valid = sum(o.success and o.valid for o in opinions), sum(o.valid for o in opinions)
    return Votes(success, valid, len(opinions), n - len(opinions), reason)


def verdict_of(votes: Votes, cited: int, actions: int, unjudged: Literal["abstain", "fail"] = "abstain") -> Verdict:
    """Return what votes come to: it passes where more than half of those told are for success.

    ``parts``: ``submitted`` 1; ``success`` and ``valid``, shares of the votes that were told; and as notes on
    ``submitted`` how many turns were ``cited``, ``actions`` taken, and votes ``told`` and ``failed``.
    """
    if not votes.told and unjudged == "abstain":
        return Verdict.abstain(f"the judge failed {votes.failed} times: {votes.reason}", "infrastructure")
    told = max(votes.told, 1)
    parts: dict[str, float | None] = {"submitted": 1.0, "success": votes.success / told, "valid": votes.valid / told}
    notes = {"cited": cited, "actions": actions, "told": votes.told, "failed": votes.failed}
    parts |= {f"submitted{NOTE}{name}": float(value) for name, value in notes.items()}
    passed = 2 * votes.success > votes.told
    return Verdict(float(passed), passed, parts, "" if passed else f"{votes.success} of {votes.told} votes for success")
