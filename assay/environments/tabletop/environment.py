"""Plans carried out on a table by a hand that may fail: the policy plans, and says of each step whether it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.environments.base import Action
from assay.environments.stated import State, Stated
from assay.errors import UsageError
from assay.media import Picture
from assay.registry import part
from assay.tasks.pictures.tabletop import (
    ANSWERS,
    ASKED,
    BLOCKS,
    CLOSE,
    LIDS,
    MARKS,
    OPEN,
    PLACES,
    PUT,
    SKILLS,
    Goal,
    Table,
    applied,
    draw,
    laid,
    planned,
    reached,
    said,
    told,
    wish,
)
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict
from assay.verify.answer.extract import extract
from assay.verify.planning.skills import Skill, numbered, read_plan

Monitor = Literal["policy", "true", "none"]
# Places in a state.
PHASE, TABLE, BEFORE, PLAN, STEP, TRIES, PLANS, DONE = range(8)
NOTHING = "done"


@dataclass(frozen=True, slots=True)
class TabletopTasks:
    """Endless tables and goals, drawn from their number."""

    seed: int
    moves: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        table, goal = laid(rng, 1 + int(rng.integers(self.moves)))
        meta = {"table": [list(table.at), list(table.open)], "goal": [list(pair) for pair in goal]}
        return Task(f"tabletop/{self.seed}/{index}", f"{wish(goal)} {told()}", kind="none", meta=meta)


@part("environment", "tabletop")
class TabletopWorld(Stated):
    """A goal on a table, reached by plans whose steps may fail, open loop or closed.

    The policy gives a plan, as in tasks ``tabletop``. Its steps are carried out one by one; each does nothing with
    probability ``failure``, or where it cannot be done. With the policy as ``monitor`` it is then shown the table
    before and after and asked whether the step is done. Where it says yes, the next step comes; where it says no, the
    same one again, up to ``retries`` times, after which it plans anew from what the table is like, told which steps
    are done, up to ``plans`` plans in all. The ``true`` monitor answers by the table itself, wrong in a share
    ``mistaken`` of the answers; with ``none`` each step is carried out once. An episode ends with the last step, or
    without a plan left, and is judged by the table.

    Args:
        monitor: who says whether a step is done.
        failure: of a step, in [0, 1).
        retries: of a step, >= 0.
        plans: >= 1.
        mistaken: see above, in [0, 1].
        moves: blocks that are to be moved, at most 4.
        pixels: of a picture's height.
        turns: of an episode, at most.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range; pictures without Pillow.

    Source: the closed loop of REVER (arXiv 2509.25852).
    """

    def __init__(
        self,
        monitor: Monitor = "policy",
        failure: float = 0.3,
        retries: int = 2,
        plans: int = 3,
        mistaken: float = 0.0,
        moves: int = 2,
        pixels: int = 24,
        turns: int = 40,
        seed: int = 0,
    ):
        check_seed("environment 'tabletop'", seed)
        if not (0 <= failure < 1 and 0 <= mistaken <= 1) or retries < 0 or min(plans, turns) < 1:
            raise UsageError(
                f"environment 'tabletop': failure {failure:g} must be in [0, 1), mistaken {mistaken:g} in [0, 1], "
                f"retries {retries} >= 0, plans {plans} and turns {turns} >= 1"
            )
        if not 1 <= moves <= 4 or not 16 <= pixels <= 256:
            raise UsageError(
                f"environment 'tabletop': moves {moves} must be 1 to 4, and pixels {pixels} must be 16 to 256"
            )
        super().__init__("text", turns)
        self.monitor, self.failure, self.retries, self.plans = monitor, failure, retries, plans
        self.mistaken, self.pixels = mistaken, pixels
        self._tasks = TabletopTasks(seed, moves)

    def tasks(self) -> TabletopTasks:
        return self._tasks

    def beginning(self, task: Task) -> State:
        table, goal = task.meta.get("table"), task.meta.get("goal")
        if table is None or goal is None:
            raise UsageError(f"environment 'tabletop': task {task.id} has no table; take them from it")
        self.goal: Goal = tuple((block, place) for block, place in goal)
        start = (tuple(table[0]), tuple(table[1]))
        return "plan", start, start, (), 0, 0, 1, ()

    def show(self, state: State) -> str:
        if state[PHASE] == "check":
            return f"{MARKS[2]}Is this step done? {said(Skill(*state[PLAN][state[STEP]]))} {ASKED['done']}"
        if state[PHASE] == "end":
            return "It is over."
        done = f"Done so far:\n{numbered(state[DONE])}\n" if state[DONE] else ""
        return f"{MARKS[1]}{done}{ASKED['plan']} Where nothing is left to do, say {NOTHING}."

    def pictures(self, state: State) -> Sequence[Picture]:
        shown = {"plan": (TABLE,), "check": (BEFORE, TABLE), "end": ()}[state[PHASE]]
        return tuple(Picture.of(draw(Table(*state[place]), self.pixels)) for place in shown)

    def actions(self, state: State) -> Sequence[str]:
        """Return the answers, or the plans of one step that can be taken."""
        if state[PHASE] == "plan":
            table = Table(*state[TABLE])
            return [f"1. {said(skill)}" for skill in everything() if applied(table, skill)] + [NOTHING]
        return list(ANSWERS) if state[PHASE] == "check" else []

    def _read(self, action: Action) -> tuple[str, str]:
        """Return what stands in the answer's tags, or the whole turn without them, and what is wrong with it."""
        text = (extract(action.text, ("answer_tag",), "whole") or "").strip()
        if self.state[PHASE] == "check":
            text = text.lower().removeprefix("1.").strip()
        return text, self.problem(self.state, text) if text else "no answer was given"

    def problem(self, state: State, action: str) -> str:
        if state[PHASE] == "check":
            return "" if action in ANSWERS else "say yes or no"
        lines = read_plan(action, SKILLS)
        return (
            ""
            if action.lower() == NOTHING or (lines and all(line.skill for line in lines))
            else "that is no plan of the steps there are"
        )

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        if state[PHASE] == "check":
            return self._carried(self._told(state, action == "yes"), chance), ""
        if action.lower() == NOTHING:
            return ("end", *state[TABLE:]), ""
        plan = tuple(tuple(line.skill) for line in read_plan(action, SKILLS) if line.skill)
        return self._carried(("step", *state[TABLE:PLAN], plan, 0, 0, *state[PLANS:]), chance), ""

    def _carried(self, state: State, chance: np.random.Generator) -> State:
        """Return the state after the next step was tried, and further ones until the policy is asked something."""
        while state[PHASE] == "step":
            table, skill = Table(*state[TABLE]), Skill(*state[PLAN][state[STEP]])
            moved = applied(table, skill) if chance.random() >= self.failure else None
            state = ("check", tuple(moved or table), tuple(table), *state[PLAN:])
            if self.monitor != "policy":
                wrong = self.monitor == "true" and chance.random() < self.mistaken
                state = self._told(state, self.monitor == "none" or (moved is not None) != wrong)
        return state

    def _told(self, state: State, done: bool) -> State:
        """Return the state after the monitor's word: the next step, the same again, another plan, or the end."""
        _, table, before, plan, step, tries, plans, steps = state
        if done:
            steps = (*steps, said(Skill(*plan[step])))
            return "step" if step + 1 < len(plan) else "end", table, before, plan, step + 1, 0, plans, steps
        if tries < self.retries:
            return "step", table, before, plan, step, tries + 1, plans, steps
        if plans < self.plans:
            return "plan", table, table, (), 0, 0, plans + 1, steps
        return ("end", *state[TABLE:])

    def over(self, state: State) -> bool:
        return bool(state[PHASE] == "end")

    def judged(self, state: State) -> Verdict:
        """Return right where all blocks are where they are to be, and lids closed; ``parts`` has each."""
        table = Table(*state[TABLE])
        at = dict(zip(BLOCKS, table.at, strict=True))
        met = {f"{block} in {place}": float(at[block] == place) for block, place in self.goal}
        parts: dict[str, float | None] = {**met, **{f"{lid} closed": float(table.shut(lid)) for lid in LIDS}}
        done = reached(table, self.goal)
        return Verdict(float(done), done, parts, "" if done else f"not done: {wish(self.goal)}")

    def plan(self, state: State) -> Sequence[str]:
        """Return turns that reach the goal, knowing which steps will fail; the last may leave it unreached."""
        out: list[str] = []
        while not self.over(state) and len(out) < self.moves:
            table = Table(*state[TABLE])
            if state[PHASE] == "plan":
                line = numbered([said(skill) for skill in planned(table, self.goal)]) or NOTHING
            else:
                line = ANSWERS[state[TABLE] == state[BEFORE]]
            state, _ = self.after(state, line, self.chance(len(out)))
            out.append(line)
        return out


def everything() -> list[Skill]:
    """Return all skills that name things of the table."""
    return [Skill(verb, lid, "") for verb in (OPEN, CLOSE) for lid in LIDS] + [
        Skill(PUT, block, place) for block in BLOCKS for place in PLACES
    ]
