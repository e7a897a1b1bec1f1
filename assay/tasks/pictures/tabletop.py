"""A drawn table with blocks, a tray and two boxes with lids: plans of skills, the next one, whether one is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture, canvas
from assay.registry import part
from assay.tasks.pictures.shapes import COLOURS
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task
from assay.verify.planning.skills import Skill, numbered

SKILLS: tuple[str, ...] = ("Open the [object].", "Close the [object].", "Put the [object] into the [location].")
OPEN, CLOSE, PUT = range(3)
BLOCKS = tuple(f"{colour} block" for colour in COLOURS)
PLACES = ("table", "tray", "drawer", "box")
LIDS = ("drawer", "box")
ANSWERS = ("yes", "no")
Kind = Literal["plan", "next", "done"]
KINDS: tuple[Kind, ...] = ("plan", "next", "done")
MARKS = {1: MARK, 2: f"{MARK} before, {MARK} after. "}
"""Where one or two pictures stand; without words between, two would be one to a model."""
FORM = "Think within <think> and </think>, then give within <answer> and </answer>"
ASKED: dict[Kind, str] = {
    "plan": f"{FORM} all the steps that it takes, as a numbered list.",
    "next": f"{FORM} the step that comes next, as a numbered list of one.",
    "done": f"{FORM} 1. yes or 1. no.",
}


class Table(NamedTuple):
    """Where each of :data:`BLOCKS` is, and which of :data:`LIDS` are open."""

    at: tuple[str, ...]
    open: tuple[bool, ...]

    def shut(self, place: str) -> bool:
        return place in LIDS and not self.open[LIDS.index(place)]

    def moved(self, block: str, place: str) -> Table:
        return self._replace(at=tuple(place if b == block else p for b, p in zip(BLOCKS, self.at, strict=True)))

    def turned(self, lid: str, open: bool) -> Table:
        return self._replace(open=tuple(open if x == lid else o for x, o in zip(LIDS, self.open, strict=True)))


Goal = tuple[tuple[str, str], ...]
"""Blocks and where each is to be, in the order in which they are moved; both lids are to be closed."""


def applied(table: Table, skill: Skill) -> Table | None:
    """Return what a skill leads to; ``None`` where it cannot be done: there is no such thing, or a lid is closed."""
    verb, what, target = skill
    if verb in (OPEN, CLOSE):
        return table.turned(what, verb == OPEN) if what in LIDS and table.shut(what) == (verb == OPEN) else None
    if what not in BLOCKS or target not in PLACES:
        return None
    source = table.at[BLOCKS.index(what)]
    return None if table.shut(source) or table.shut(target) or source == target else table.moved(what, target)


def reached(table: Table, goal: Goal) -> bool:
    return not any(table.open) and all(table.at[BLOCKS.index(block)] == place for block, place in goal)


def planned(table: Table, goal: Goal) -> list[Skill]:
    """Return the skills that reach a goal: block by block, lids opened when they are in the way, at last closed."""
    plan: list[Skill] = []

    def take(*skill: Any) -> None:
        nonlocal table
        after = applied(table, Skill(*skill))
        assert after is not None
        plan.append(Skill(*skill))
        table = after

    for block, place in goal:
        source = table.at[BLOCKS.index(block)]
        if source != place:
            for end in (source, place):
                if table.shut(end):
                    take(OPEN, end, "")
            take(PUT, block, place)
    for lid in LIDS:
        if not table.shut(lid):
            take(CLOSE, lid, "")
    return plan


def said(skill: Skill) -> str:
    """Return a skill as a sentence."""
    return SKILLS[skill.verb].replace("[object]", skill.object).replace("[location]", skill.target)


def wish(goal: Goal) -> str:
    """Return a goal in words."""
    wanted = ", ".join(f"the {block} is to be in the {place}" for block, place in goal)
    return f"In this order, {wanted}. In the end drawer and box are closed."


def told() -> str:
    """Return what skills there are, in words."""
    return f"Steps are: {' '.join(SKILLS)} Places are {', '.join(PLACES)}; drawer and box open and close."


def laid(rng: np.random.Generator, moves: int) -> tuple[Table, Goal]:
    """Draw a table, and a goal of so many blocks that is not reached yet."""
    while True:
        at = tuple(PLACES[i] for i in rng.integers(len(PLACES), size=len(BLOCKS)))
        table = Table(at, (bool(rng.integers(2)), bool(rng.integers(2))))
        chosen = rng.permutation(len(BLOCKS))[:moves]
        goal = tuple((BLOCKS[i], PLACES[1 + int(rng.integers(len(PLACES) - 1))]) for i in chosen)
        if all(at[BLOCKS.index(block)] != place for block, place in goal):
            return table, goal


@part("tasks", "tabletop")
@dataclass(frozen=True, slots=True)
class Tabletop:
    """Endless questions about a drawn table, of three kinds that share a form:

    - ``plan``: all the skills that reach a goal, of 1 to ``moves`` blocks;
    - ``next``: the skill that comes next, some way through a plan;
    - ``done``: whether a skill was done, by pictures from before and after; half of the time it was, else nothing
      has changed.

    The plan takes blocks in the order that is asked for, opens lids that are in the way and at last closes them, so
    that it depends on the picture. Blocks in what is closed are not seen.

    Args:
        seed: >= 0.
        kinds: of questions, one of which is drawn each time.
        moves: blocks that are to be moved, at most 4.
        pixels: of the picture's height; it is four times as wide.

    Raises:
        UsageError: an option out of range, or Pillow is not installed.

    Source: the three kinds are those of REVER (arXiv 2509.25852), which has them of recorded demonstrations.
    """

    seed: int = 0
    kinds: tuple[Kind, ...] = KINDS
    moves: int = 2
    pixels: int = 24

    def __post_init__(self) -> None:
        check_seed("tasks 'tabletop'", self.seed)
        if not self.kinds or not 1 <= self.moves <= len(BLOCKS) or not 16 <= self.pixels <= 256:
            raise UsageError(
                f"tasks 'tabletop': it needs kinds, moves {self.moves} of 1 to {len(BLOCKS)}, and pixels {self.pixels} "
                "of 16 to 256"
            )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        kind = self.kinds[int(rng.integers(len(self.kinds)))]
        table, goal = laid(rng, 1 + int(rng.integers(self.moves)))
        plan = planned(table, goal)
        shown, right = [table], [said(skill) for skill in plan]
        templates: tuple[str, ...] = SKILLS
        asked = f"{wish(goal)} {told()}"
        if kind != "plan":
            step = int(rng.integers(len(plan)))
            for skill in plan[:step]:
                table = applied(table, skill) or table
            shown, right = [table], [said(plan[step])]
        if kind == "done":
            done = bool(rng.integers(2))
            shown.append(applied(table, plan[step]) or table if done else table)
            asked, right, templates = f"Is this step done? {right[0]}", [ANSWERS[not done]], ANSWERS
        seen = tuple(Picture.of(draw(one, self.pixels)) for one in shown)
        message: Message = {"role": "user", "content": f"{MARKS[len(seen)]}{asked} {ASKED[kind]}", "images": seen}
        return Task(
            id=f"tabletop/{self.seed}/{index}",
            prompt=(message,),
            reference={"skills": list(templates), "plan": right},
            kind="plan_match",
            solution=f"<think></think><answer>{numbered(right)}</answer>",
            meta={"source": "tabletop", "question": kind, "difficulty": len(right)},
        )


def draw(table: Table, pixels: int) -> Any:
    """Return the picture, a ``PIL.Image`` of ``4 pixels`` by ``pixels``: a column for each place, lids above two."""
    image, pen = canvas(len(PLACES) * pixels, pixels)
    edge, side = max(1, pixels // 12), pixels // 3
    for column, place in enumerate(PLACES):
        left, right = column * pixels + edge, (column + 1) * pixels - 1 - edge
        if place != "table":
            pen.rectangle((left, pixels // 4, right, pixels - 1 - edge), (235, 235, 235), (90, 90, 90), edge)
        if place in LIDS:
            # A lid lies on what it closes, and stands beside it when it is open.
            box = (left, 0, right, pixels - 1 - edge) if table.shut(place) else (left, 0, left + edge, pixels // 4)
            pen.rectangle(box, (120, 80, 40))
        if not table.shut(place):
            for i, block in enumerate(BLOCKS):
                if table.at[i] == place:
                    x, y = left + edge + (i % 2) * side, pixels // 4 + edge + (i // 2) * side
                    pen.rectangle((x, y, x + side - 2, y + side - 2), COLOURS[block.split()[0]])
    return image
