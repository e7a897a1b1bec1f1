"""How a family makes cases: draw an exact object, spell it in many ways, and spell others that are not it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.errors import UsageError, nearest

Form = Literal["plain", "latex", "text", "whole"]
"""``latex`` needs math mode, ``plain`` may stand anywhere, ``text`` not in a box, ``whole`` is an entire response."""


REFUSE, LAST = "refuse", "last"
"""What a verifier does with a response that marks no answer: it refuses it, or takes the last value there is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One way to write ``value`` as a final answer.

    ``said`` and ``holds`` are for a ``whole`` response: the answer within it, and the settings of a verifier's option
    ``unmarked`` under which the label holds. For any other answer both follow from the shell it is put into.
    """

    kind: str
    text: str
    form: Form
    value: Any
    said: str = ""
    holds: tuple[str, ...] = (REFUSE, LAST)


@dataclass(slots=True)
class Draw:
    """A question with its exact answer, and answers to it that are known to be right or wrong.

    Args:
        question: a real problem, or at least one that settles what is accepted.
        reference: the gold answer as text.
        gold: the exact object: compared with ``==``, so its type has to have exact equality.
        work: a true sentence on the way to the answer, which does not give it away.
        verifier: kind of answer.
        form: form of the answers that are added without one.
        slots: texts by name for templates of responses that ask for them, e.g. ``unit``.
    """

    question: str
    reference: str
    gold: Any
    work: str = ""
    verifier: str = "math"
    form: Form = "plain"
    slots: Mapping[str, str] = field(default_factory=dict)
    answers: dict[bool, list[Answer]] = field(default_factory=lambda: {True: [], False: []})

    def add(self, kind: str, value: Any, *texts: str, form: Form | None = None) -> None:
        """Add spellings of ``value``: right ones if it is equal to the gold object, else wrong ones."""
        for text in texts:
            self.answers[bool(value == self.gold)].append(Answer(kind, text, form or self.form, value))

    def spell(
        self, kind: str, value: Any, plain: Sequence[str] = (), latex: Sequence[str] = (), text: Sequence[str] = ()
    ) -> None:
        """Add spellings of ``value`` by form, each form as a kind of its own; right or wrong as :meth:`add` says."""
        self.add(kind, value, *plain, form="plain")
        self.add(f"{kind}, latex", value, *latex, form="latex")
        self.add(f"{kind}, text", value, *text, form="text")

    def right(self, kind: str, *texts: str, form: Form | None = None, value: Any = None) -> None:
        """Add spellings of the gold object; ``value``, where it was computed on its own, must be equal to it."""
        if value is not None and value != self.gold:
            raise ValueError(f"{kind}: {texts} stands for {value}, not for {self.gold}")
        self.add(kind, self.gold, *texts, form=form)

    def wrong(self, kind: str, value: Any, *texts: str, form: Form | None = None) -> None:
        """Add spellings of ``value``, unless it happens to be the gold object; ``None`` is no answer at all."""
        if value != self.gold:
            self.add(kind, value, *texts, form=form)

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


@dataclass(frozen=True, slots=True)
class Family:
    """A generator of cases: a name, one line on what it covers, and a function that draws a question.

    Cases of a family that is not ``counted`` are reported as a number of their own, outside of all rates.
    """

    name: str
    doc: str
    draw: Callable[[random.Random], Draw]
    counted: bool = True


FAMILIES: dict[str, Family] = {}


def family(
    name: str, doc: str, counted: bool = True
) -> Callable[[Callable[[random.Random], Draw]], Callable[[random.Random], Draw]]:
    """Register ``draw(rng) -> Draw`` as a family."""

    def register(draw: Callable[[random.Random], Draw]) -> Callable[[random.Random], Draw]:
        known = FAMILIES.get(name)
        if known is not None and known.draw.__module__ != draw.__module__:
            raise ValueError(f"family {name!r} is in {known.draw.__module__} and in {draw.__module__}")
        FAMILIES[name] = Family(name, doc, draw, counted)
        return draw

    return register


def find(name: str) -> Family:
    """Return the family called ``name``; raise UsageError naming the nearest one."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise UsageError(f"no family of cases is called {name!r}{nearest(name, FAMILIES)}") from None
