"""How a family makes cases: draw an exact object, spell it in many ways, and spell others that are not it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from assay.errors import UsageError, nearest

Form = Literal["plain", "latex", "text", "whole"]
"""``latex`` needs math mode, ``plain`` may stand anywhere, ``text`` not in a box, ``whole`` is an entire response."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One way to write ``value`` as a final answer."""

    kind: str
    text: str
    form: Form
    value: Any
    said: str = ""


@dataclass(slots=True)
class Draw:
    """A question with its exact answer, and answers to it that are known to be right or wrong.

    Args:
        question: a real problem, or at least one that settles what is accepted.
        reference: the gold answer as text.
        gold: the exact object: compared with ``==``, so its type has to have exact equality.
        verifier: kind of answer.
    """

    question: str
    reference: str
    gold: Any
    verifier: str = "math"
    answers: dict[bool, list[Answer]] = field(default_factory=lambda: {True: [], False: []})

    def right(self, kind: str, *texts: str, form: Form = "plain", value: Any = None, said: str = "") -> None:
        """Add spellings of the gold object; ``value``, where it was computed on its own, must be equal to it."""
        if value is not None and value != self.gold:
            raise ValueError(f"{kind}: {texts} stands for {value}, not for {self.gold}")
        for text in texts:
            self.answers[True].append(Answer(kind, text, form, self.gold, said))

    def wrong(self, kind: str, value: Any, *texts: str, form: Form = "plain", said: str = "") -> None:
        """Add spellings of ``value``, unless it happens to be the gold object; ``None`` is no answer at all."""
        if value != self.gold:
            for text in texts:
                self.answers[False].append(Answer(kind, text, form, value, said))

    def pick(self, label: bool, rng: random.Random) -> Answer | None:
        """Choose a kind, then one of its spellings; ``None`` where there is none with this label.

        Raises:
            ValueError: one text is given both as right and as wrong, so it is ambiguous.
        """
        both = {a.text for a in self.answers[True]} & {a.text for a in self.answers[False]}
        if both:
            raise ValueError(f"{self.question!r}: both right and wrong: {sorted(both)}")
        kinds = list(dict.fromkeys(a.kind for a in self.answers[label]))
        if not kinds:
            return None
        kind = rng.choice(kinds)
        return rng.choice([a for a in self.answers[label] if a.kind == kind])


class Shell(Protocol):
    """Puts an answer into a response: ``(answer, rng) -> response``."""

    name: str

    def __call__(self, answer: Answer, rng: random.Random) -> str: ...


@dataclass(frozen=True, slots=True)
class Family:
    """A generator of cases: a name, one line on what it covers, and a function that draws a question."""

    name: str
    doc: str
    draw: Callable[[random.Random], Draw]
    shells: Sequence[Any] | None = None


FAMILIES: dict[str, Family] = {}


def family(
    name: str, doc: str, shells: Sequence[Any] | None = None
) -> Callable[[Callable[[random.Random], Draw]], Callable[[random.Random], Draw]]:
    """Register ``draw(rng) -> Draw`` as a family; ``shells`` replace the usual ways to mark a final answer."""

    def register(draw: Callable[[random.Random], Draw]) -> Callable[[random.Random], Draw]:
        known = FAMILIES.get(name)
        if known is not None and known.draw.__module__ != draw.__module__:
            raise ValueError(f"family {name!r} is in {known.draw.__module__} and in {draw.__module__}")
        FAMILIES[name] = Family(name, doc, draw, shells)
        return draw

    return register


def find(name: str) -> Family:
    """Return the family called ``name``; raise UsageError naming the nearest one."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise UsageError(f"no family of cases is called {name!r}{nearest(name, FAMILIES)}") from None
