"""A judge that converts units badly in its head, and well with a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.environments.checking.cases import Made
from assay.environments.tools import call
from assay.rewards.judges.tool_judge import ToolJudge
from assay.types import Episode, Message, Task, Tool

_SHOWN = re.compile(r"Question: (.*)\nReference answer: (.*)\nResponse: The answer is (.*)\.\n")
_NUMBER = r"-?[\d.]+(?:e-?\d+)?"
_FACTORS = {("cm", "m"): 100.0, ("m/s", "km/h"): 1 / 3.6}


@dataclass(frozen=True, slots=True)
class Setting:
    """Answers with units and in words are judged by a verifier that plays a model; an arm says how many calls it has.

    The model calls the converter where it has one and the answer has another unit than the reference; without it, it is
    right about such answers with chance ``head``, and about words with chance ``words``.

    Args:
        items: answers with units, and as many in words.
        head, words: see above.
    """

    items: int = 60
    head: float = 0.6
    words: float = 0.95

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return accuracy on answers with ``units`` and in ``words``, and ``tokens``, the mean number of a verdict."""
        judge = ToolJudge(Reckoner(self.head, self.words, seed), **arm)
        out, tokens = {}, []
        for name, kinds in (("units", ("lengths", "speeds")), ("words", ("words",))):
            source = Made(seed, kinds)
            tasks = [source[k] for k in range(self.items)]
            shown = [_shown(task.question) for task in tasks]
            pairs = [(Task(t.id, q, gold), f"The answer is {x}.") for t, (q, gold, x) in zip(tasks, shown, strict=True)]
            said = judge.map(pairs)
            out[name] = float(np.mean([v.passed is t.meta["label"] for v, t in zip(said, tasks, strict=True)]))
            tokens += [value for v in said for key, value in v.parts.items() if key.endswith("tokens")]
        return {**out, "tokens": float(np.mean([t for t in tokens if t is not None]))}


def _shown(text: str) -> tuple[str, str, str]:
    """Return question, reference and answer."""
    found = _SHOWN.search(text)
    assert found is not None
    return found[1], found[2], found[3]


class Reckoner(Keywords):
    """The judge of :class:`Setting`, an engine that is asked by messages.

    Args:
        head, words: see there.
        seed: of its slips.
    """

    by_messages = True
    window = 1_000_000

    def __init__(self, head: float, words: float, seed: int):
        super().__init__(())
        self.head, self.words, self.seed = head, words, seed

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        return self.encode(tuple(messages))

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        return self.encode(tuple(messages))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            text = self.said(r)
            token = self.encode(text)
            out.append([Episode(self.encode(r.prompt), token, token > 0, None, text, "eos")])
        return out

    def said(self, request: Request) -> str:
        """Return what it says in a turn."""
        messages = [str(m["content"]) for m in request.prompt]  # type: ignore[index]
        whole = "\n".join(messages)
        _, reference, answer = _shown(whole)
        rng = np.random.default_rng([self.seed, request.seed])
        if " " not in reference:
            right = (reference == answer) == bool(rng.random() < self.words)
            return rf"\boxed{{{'Correct' if right else 'Incorrect'}}}"
        value, unit = reference.split()
        told = re.search(rf"^({_NUMBER}) {re.escape(unit)}$", messages[-1], re.MULTILINE)
        if told is not None:
            right = round(float(told[1]), 2) == round(float(value), 2)
        elif "unit_conversion" in whole:
            number, other = answer.split()
            return call("unit_conversion", value=float(number), source_unit=other, target_unit=unit).text
        else:
            right = _right(reference, answer) == bool(rng.random() < self.head)
        return rf"\boxed{{{'Correct' if right else 'Incorrect'}}}"


def _right(reference: str, answer: str) -> bool:
    (value, unit), (said, other) = reference.split(), answer.split()
    return abs(float(said) * _FACTORS[unit, other] - float(value)) < 0.02
