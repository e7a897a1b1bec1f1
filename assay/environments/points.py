"""Cards whose numbers are to make a target: a formula written sign by sign, shown as a picture or in words."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Literal

import numpy as np

from assay.environments.lines import Interface, how
from assay.environments.stated import State, Stated
from assay.errors import UsageError
from assay.media import MARK, Picture, canvas
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict
from assay.verify.puzzles.expression import ExpressionError, evaluate

SIGNS = ("+", "-", "*", "/")
RULES = """Write a formula that makes {target} of all the cards, each used once, one sign a turn: a number, \
+, -, *, /, (, ) or, at the end, =. Play by {how}."""
LINE = 12
"""Pixels of a line of the picture."""


@dataclass(frozen=True, slots=True)
class PointsTasks:
    """Endless hands of cards that can make the target."""

    seed: int
    cards: int
    target: int
    highest: int
    interface: Interface

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        hand: tuple[int, ...] = ()
        while not hand or not formulas(tuple(sorted(hand)), self.target):
            hand = tuple(int(card) for card in rng.integers(1, self.highest + 1, self.cards))
        told = RULES.format(target=self.target, how=how(self.interface))
        return Task(f"points/{self.seed}/{index}", told, {"cards": list(hand)}, "none", meta={"cards": list(hand)})


@part("environment", "points")
class Points(Stated):
    """The game of 24 and its like: a formula of all the cards that makes the target, one sign of it a turn.

    An action is the next sign; one that cannot stand there is invalid and changes nothing. ``=`` ends the formula and
    the episode; right is one that makes the target. :meth:`thought` says what there is to be seen and done next.

    Args:
        cards: in a hand, 2 to 4.
        target: to be made.
        highest: number on a card.
        frames: how cards and formula are shown: as a ``picture``, for policies that see, or as ``text``.
        moves: turns of an episode, at most.
        interface: ``text`` or ``tool``.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range; pictures without Pillow.

    Source: Points24 of RL4VLM's gym_cards, as GTR (arXiv 2503.08525) plays it.
    """

    def __init__(
        self,
        cards: int = 4,
        target: int = 24,
        highest: int = 10,
        frames: Literal["picture", "text"] = "picture",
        moves: int = 20,
        interface: Interface = "text",
        seed: int = 0,
    ):
        check_seed("environment 'points'", seed)
        if not 2 <= cards <= 4 or not 2 <= highest <= 13 or not 1 <= target <= highest**cards or moves < 1:
            raise UsageError(
                f"environment 'points': cards {cards} must be 2 to 4, highest {highest} 2 to 13, target {target} 1 to "
                f"{max(highest, 1) ** max(cards, 1)} and moves {moves} at least 1"
            )
        super().__init__(interface, moves)
        self.target, self.frames = target, frames
        self._tasks = PointsTasks(seed, cards, target, highest, interface)

    def tasks(self) -> PointsTasks:
        return self._tasks

    def beginning(self, task: Task) -> State:
        cards = task.meta.get("cards")
        if not cards:
            raise UsageError(f"environment 'points': task {task.id} has no cards; take them from it")
        return tuple(cards), ()

    def show(self, state: State) -> str:
        return MARK if self.frames == "picture" else self.described(state)

    def described(self, state: State) -> str:
        """Return cards and formula in words."""
        cards, formula = state
        return f"cards {' '.join(map(str, cards))}, formula {''.join(formula) or 'empty'}"

    def pictures(self, state: State) -> Sequence[Picture]:
        if self.frames == "text":
            return ()
        cards, formula = state
        image, pen = canvas(LINE * max(8, 2 * len(cards), len("".join(formula))), 3 * LINE)
        for i, card in enumerate(cards):
            left = 2 * LINE * i
            pen.rectangle((left, 0, left + 2 * LINE - 2, 2 * LINE - 2), (250, 245, 220), (60, 60, 60))
            pen.text((left + 4, LINE // 2), str(card), fill=(0, 0, 0))
        pen.text((1, 2 * LINE), "".join(formula), fill=(0, 0, 0))
        return (Picture.of(image),)

    def actions(self, state: State) -> Sequence[str]:
        cards, formula = state
        if self.over(state):
            return []
        left = list(cards)
        for sign in formula:
            if sign.isdigit():
                left.remove(int(sign))
        opened = formula.count("(") - formula.count(")")
        if formula and (formula[-1].isdigit() or formula[-1] == ")"):
            return [*SIGNS, *([")"] if opened else ["="])]
        return [*(str(card) for card in dict.fromkeys(left)), "("]

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        cards, formula = state
        return (cards, (*formula, action)), ""

    def over(self, state: State) -> bool:
        return state[1][-1:] == ("=",)

    def judged(self, state: State) -> Verdict:
        """Return right for a formula of all cards that makes the target."""
        cards, formula = state
        if not self.over(state):
            return Verdict.wrong("the formula is not ended by =")
        try:
            value, used = evaluate("".join(formula[:-1]))
        except ExpressionError as error:
            return Verdict.wrong(str(error))
        if sorted(used) != sorted(cards):
            return Verdict.wrong(f"of cards {list(cards)} it uses {used}")
        return Verdict.right() if value == self.target else Verdict.wrong(f"it makes {value}, not {self.target}")

    def plan(self, state: State) -> Sequence[str]:
        cards, formula = state
        if self.over(state):
            return []
        whole = formulas(tuple(sorted(cards)), self.target)
        going = (signs for signs in whole if signs[: len(formula)] == formula)
        return next(((*signs[len(formula) :], "=") for signs in going), ())

    def thought(self) -> str:
        """Return cards and formula, and the next sign where one leads to the target."""
        plan = self.plan(self.state)
        return f"{self.described(self.state)}, {f'next {plan[0]}' if plan else 'no way'}"


@functools.lru_cache(4096)
def formulas(cards: tuple[int, ...], target: int) -> tuple[tuple[str, ...], ...]:
    """Return all formulas of these cards that make the target, as signs, with no more parentheses than it takes."""
    found = {signs: None for value, signs, _ in _trees(cards) if value == target}
    return tuple(sorted(found, key=lambda signs: (len(signs), signs)))


Tree = tuple[Fraction, tuple[str, ...], int]
"""Value, signs, and how strongly they bind: 1 for a sum, 2 for a product, 3 for a number."""


@functools.lru_cache(4096)
def _trees(cards: tuple[int, ...]) -> tuple[Tree, ...]:
    if len(cards) == 1:
        return ((Fraction(cards[0]), (str(cards[0]),), 3),)
    out: dict[Tree, None] = {}
    for chosen in product((True, False), repeat=len(cards)):
        left = tuple(card for card, here in zip(cards, chosen, strict=True) if here)
        right = tuple(card for card, here in zip(cards, chosen, strict=True) if not here)
        if left and right:
            for a, b in product(_trees(left), _trees(right)):
                out.update(dict.fromkeys(_joined(a, b)))
    return tuple(out)


def _joined(a: Tree, b: Tree) -> Iterator[Tree]:
    def within(tree: Tree, least: int) -> tuple[str, ...]:
        return tree[1] if tree[2] >= least else ("(", *tree[1], ")")

    yield a[0] + b[0], (*a[1], "+", *b[1]), 1
    yield a[0] - b[0], (*a[1], "-", *within(b, 2)), 1
    yield a[0] * b[0], (*within(a, 2), "*", *within(b, 2)), 2
    if b[0]:
        yield a[0] / b[0], (*within(a, 2), "/", *within(b, 3)), 2
