"""Stories in words about numbers of things, which take two steps of arithmetic to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Ida",
    "Joe",
    "Kim",
    "Lea",
    "Max",
    "Nia",
    "Ole",
    "Pia",
    "Tom",
    "Zoe",
)
THINGS = (
    "pencils", "apples", "marbles", "stickers", "shells", "coins", "books", "eggs", "beads", "cards",
    "buttons", "stamps", "cookies", "balloons", "stones", "nuts",
)  # fmt: skip
HOLDERS = (
    ("box", "boxes"),
    ("bag", "bags"),
    ("basket", "baskets"),
    ("jar", "jars"),
    ("drawer", "drawers"),
    ("crate", "crates"),
)
LEAST_HIGH = 4

T = TypeVar("T")
Step = tuple[str, str, int]
"""A sentence, the step of arithmetic that it takes, what comes out."""


@part("tasks", "word_problems")
@dataclass(frozen=True, slots=True)
class WordProblems:
    r"""Endless stories such as "Ada has 6 boxes with 4 pencils in each. Then she finds 5 more. How many ... now?".

    Either step is a sum, a difference, a product or a quotient, drawn with who and what it is told of. Every result is
    a whole number, at least 1. A scratchpad has one step per line and the bare answer on the last:
    ``6*4=24\n24+5=29\n29``.

    Args:
        seed: >= 0.
        high: largest number in a story's steps that multiply or divide, at least 4; numbers that are added or taken
            away go up to its fivefold.
        scratchpad: share of the solutions that show their steps; the others only state the answer. Where it is above 0
            the question asks for them.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    high: int = 9
    scratchpad: float = 1.0

    def __post_init__(self) -> None:
        check_seed("tasks 'word_problems'", self.seed)
        if self.high < LEAST_HIGH:
            raise UsageError(f"tasks 'word_problems': high {self.high} must be at least {LEAST_HIGH}")
        if not 0 <= self.scratchpad <= 1:
            raise UsageError(f"tasks 'word_problems': scratchpad {self.scratchpad} must be in [0, 1]")

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        who, friend = (NAMES[i] for i in rng.permutation(len(NAMES))[:2].tolist())
        things = THINGS[int(rng.integers(len(THINGS)))]
        holder, holders = HOLDERS[int(rng.integers(len(HOLDERS)))]
        story = Story(rng, self.high, who, friend, things, holder, holders)
        opening, first, value = story.begun()
        ending, second, answer = story.ended(value)
        # Drawn last, so that the problem does not depend on how its solution is written.
        shown = [first, second] if rng.random() < self.scratchpad else []
        how = "Work step by step and put only the final number on the last line."
        return Task(
            id=f"word_problems/{self.seed}/{index}",
            prompt=f"{opening} {ending} {how if self.scratchpad else 'Reply with the number only.'}",
            reference=str(answer),
            kind="number",
            solution="\n".join([*shown, str(answer)]),
            meta={"source": "word_problems", "steps": [first, second], "difficulty": 2},
        )


@dataclass(frozen=True, slots=True)
class Story:
    """What a story is about, and how its two steps are told."""

    rng: np.random.Generator
    high: int
    who: str
    friend: str
    things: str
    holder: str
    holders: str

    def begun(self) -> Step:
        """Return a first step, after which ``who`` has some of the things."""
        return self._one_of(self._boxes, self._found, self._given, self._bags)()

    def ended(self, value: int) -> Step:
        """Return a second step from so many things, and the question."""
        divisors = [n for n in range(2, self.high + 1) if value % n == 0 and value > n]
        tellings: list[Callable[[int], Step]] = [self._gets, self._times, self._prices]
        if value > 2:
            tellings.append(self._loses)
        if divisors:
            tellings.append(lambda value: self._shares(value, self._one_of(*divisors)))
        return self._one_of(*tellings)(value)

    def _boxes(self) -> Step:
        a, b = self._drawn(2, self.high), self._drawn(2, self.high)
        return f"{self.who} has {a} {self.holders} with {b} {self.things} in each.", f"{a}*{b}={a * b}", a * b

    def _found(self) -> Step:
        a, b = self._drawn(2, 5 * self.high), self._drawn(2, 5 * self.high)
        return f"{self.who} has {a} {self.things} and finds {b} more.", f"{a}+{b}={a + b}", a + b

    def _given(self) -> Step:
        a = self._drawn(3, 5 * self.high)
        b = self._drawn(2, a - 1)
        return f"{self.who} has {a} {self.things} and gives {b} of them to {self.friend}.", f"{a}-{b}={a - b}", a - b

    def _bags(self) -> Step:
        a, b = self._drawn(2, self.high), self._drawn(2, self.high)
        told = (
            f"{a * b} {self.things} are put into {a} {self.holders}, as many each; {self.who} gets one {self.holder}."
        )
        return told, f"{a * b}/{a}={b}", b

    def _gets(self, value: int) -> Step:
        by = self._drawn(2, 5 * self.high)
        told = f"Then {self.friend} brings {by} more. How many {self.things} does {self.who} have now?"
        return told, f"{value}+{by}={value + by}", value + by

    def _loses(self, value: int) -> Step:
        by = self._drawn(2, value - 1)
        told = f"Then {by} of the {self.things} get lost. How many {self.things} does {self.who} have now?"
        return told, f"{value}-{by}={value - by}", value - by

    def _times(self, value: int) -> Step:
        by = self._drawn(2, self.high)
        told = f"{self.friend} has {by} times as many {self.things} as {self.who} has now. How many is that?"
        return told, f"{value}*{by}={value * by}", value * by

    def _prices(self, value: int) -> Step:
        by = self._drawn(2, self.high)
        told = f"Then {self.who} sells all of them, for {by} dollars each. How many dollars is that?"
        return told, f"{value}*{by}={value * by}", value * by

    def _shares(self, value: int, among: int) -> Step:
        told = (
            f"Then {self.who} shares them out among {among} children, as many for each. How many does each child get?"
        )
        return told, f"{value}/{among}={value // among}", value // among

    def _drawn(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def _one_of(self, *choices: T) -> T:
        return choices[int(self.rng.integers(len(choices)))]
