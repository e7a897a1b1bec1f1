"""The verifier of PDDL plans."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.answer.extract import Rule
from assay.verify.planning.model import Domain, Problem
from assay.verify.planning.parse import read_domain, read_problem
from assay.verify.planning.validate import State, Step, TooMuch, World
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.text.exact import shorten

_PREFIX = re.compile(
    r"\s*(?:(?:step\s{0,2})?[0-9]{1,9}(?:\.[0-9]{1,9})?\s{0,2}[.:)]\s{0,4}|[-*]\s+)?[`*]{0,3}", re.IGNORECASE
)
_STEPS = re.compile(r"\(\s*([^\s()]+(?:\s+[^\s()]+)*)\s*\)")
_BETWEEN = re.compile(r"(?:[\s,;.`*]|\[[0-9.\s]*\]|->|→|[0-9]+(?:\.[0-9]+)?:)*")
_CALL = re.compile(r"([A-Za-z][\w-]*)\s?\(([^()]*)\)[\s,;.`*]*")
_WORD = re.compile(r"[A-Za-z][\w-]*")


@dataclass(frozen=True, slots=True)
class Limits:
    world: World
    steps: float
    cost: float
    given: tuple[Step | None, ...] | None
    permuted: tuple[Step, ...] | None


@part("verify", "pddl_plan")
@dataclass(frozen=True, slots=True)
class PddlPlan(Puzzle):
    """Right iff the plan in the answer can be executed from the initial state and ends where the goal holds.

    ``task.reference`` is ``{"domain": PDDL, "problem": PDDL}``; ``"max_steps"`` and ``"max_cost"`` (of the problem's
    metric, else of the number of steps) also bound the plan. With ``"given": [step or null, ...]`` the plan has those
    steps in those places and as many in all; with ``"permuted": [step, ...]`` it has just those steps, each as often,
    in whatever order. See :mod:`assay.verify.planning.parse` for the PDDL that
    is read. The plan is a list of ``(action object ...)``, ``action(object, ...)`` or, one to a line, ``action object
    ...``, numbered or not; lines that hold none are passed over. The feedback names the first step that fails and the
    precondition that is false.

    ``parts``: ``executable``, the share of steps before the first that fails; ``goal``, the share of goal conjuncts
    that hold in the last state reached; ``bound`` and ``given``, where asked. Where ``partial``, a wrong answer scores
    the share of those goal conjuncts reached that were open at the start.
    """

    rules: tuple[Rule, ...] = ("answer_tag",)
    max_steps: int = 10_000
    shape: ClassVar[str] = "{'domain': PDDL, 'problem': PDDL}"

    def read(self, reference: Mapping[str, Any]) -> Limits:
        steps, cost = reference.get("max_steps"), reference.get("max_cost")
        world = World(*_pddl(reference["domain"], reference["problem"]))
        given, permuted = reference.get("given"), reference.get("permuted")
        return Limits(
            world,
            math.inf if steps is None else int(steps),
            math.inf if cost is None else float(cost),
            None if given is None else tuple(None if step is None else _step(step) for step in given),
            None if permuted is None else tuple(map(_step, permuted)),
        )

    def check(self, puzzle: Limits, answer: str) -> Verdict:
        world = puzzle.world
        plan = steps_of(answer, world.domain.actions)
        if len(plan) > self.max_steps:
            raise BadAnswer(f"the plan has {len(plan)} steps, at most {self.max_steps} are executed")
        if unlike := _unlike(puzzle, plan):
            return self.verdict(unlike, 0.0, {"given": 0.0})
        try:
            return self._execute(puzzle, plan)
        except TooMuch as error:
            return Verdict.abstain(f"the plan is too long to check: {error}")

    def _execute(self, puzzle: Limits, plan: list[Step]) -> Verdict:
        world, state, complaint, done = puzzle.world, puzzle.world.initial, "", 0
        goals = list(world.conjuncts(world.problem.goal, {}))
        open_goals = [goal for goal in goals if not world.holds(goal[0], state, goal[1])]
        for step in plan:
            after, why = world.apply(state, step)
            if after is None:
                complaint = f"step {done + 1} {shorten(str(step), 80)} fails: {shorten(why, 120)}"
                break
            state, done = after, done + 1
        reached = sum(world.holds(goal, state, binding) for goal, binding in goals)
        if not complaint and reached < len(goals):
            complaint = f"the goal {shorten(world.first_false(world.problem.goal, state, {}) or '', 120)} does not hold"
        parts: dict[str, float | None] = {
            "executable": done / len(plan) if plan else 1.0,
            "goal": reached / len(goals) if goals else 1.0,
        }
        if math.isfinite(puzzle.steps) or math.isfinite(puzzle.cost):
            cost = _cost(world, state, done)
            within = done <= puzzle.steps and cost <= puzzle.cost
            parts["bound"] = float(within) if not complaint else None
            if not complaint and not within:
                many = f"has {done} steps, at most {puzzle.steps:g}" if done > puzzle.steps else ""
                complaint = f"the plan {many or f'costs {cost:g}, at most {puzzle.cost:g}'} are allowed"
        if puzzle.given is not None or puzzle.permuted is not None:
            parts["given"] = 1.0
        progress = sum(world.holds(goal, state, binding) for goal, binding in open_goals)
        return self.verdict(complaint, progress / len(open_goals) if open_goals else 0.0, parts)


def _step(written: str) -> Step:
    name, *objects = written.lower().strip("() ").split()
    return Step(name, tuple(objects))


def _unlike(puzzle: Limits, plan: list[Step]) -> str:
    """Say where a plan has not the steps that it has to have; empty where it has."""
    if puzzle.given is not None:
        if len(plan) != len(puzzle.given):
            return f"the plan has {len(plan)} steps, not {len(puzzle.given)}"
        for i, (step, given) in enumerate(zip(plan, puzzle.given, strict=True), 1):
            if given is not None and step != given:
                return f"step {i} is {shorten(str(step), 80)}, and {shorten(str(given), 80)} is given there"
    if puzzle.permuted is not None:
        lacking, more = Counter(puzzle.permuted), Counter(plan)
        if lacking != more:
            first = next(iter((lacking - more) or (more - lacking)))
            return f"the plan has {shorten(str(first), 80)} {more[first]} times, and {lacking[first]} were given"
    return ""


def _cost(world: World, state: State, steps: int) -> float:
    metric = world.problem.metric
    if metric is None or metric[1] in ("total-time", ["total-time"]):
        return float(steps)
    try:
        value = world.value(metric[1], state, {})
    except (KeyError, ZeroDivisionError, OverflowError):
        return math.inf
    return value if metric[0] == "minimize" else -value


@lru_cache(maxsize=256)
def _pddl(domain: str, problem: str) -> tuple[Domain, Problem]:
    read = read_domain(domain)
    return read, read_problem(problem, read)


def steps_of(answer: str, actions: Mapping[str, Any]) -> list[Step]:
    """Return the steps that ``answer`` lists; ``actions`` are the names that count without parentheses.

    Raises:
        BadAnswer: it lists none.
    """
    steps: list[Step] = []
    empty = False
    for written in answer.lower().splitlines():
        line = written.partition(";")[0]
        rest = line[_PREFIX.match(line).end() :]  # type: ignore[union-attr]
        if rest.lstrip().startswith("("):
            steps += _parenthesised(rest)
            empty = True  # "()" is the plan without steps
        elif (call := _CALL.fullmatch(rest)) and (call[1] in actions or "," in call[2] or " " not in call[2].strip()):
            steps.append(Step(call[1], tuple(call[2].replace(",", " ").split())))
        elif (words := rest.strip(" \t.,`*").split()) and words[0] in actions and all(map(_WORD.match, words)):
            steps.append(Step(words[0], tuple(words[1:])))
    if not steps and not empty and answer.strip("[]{}() \t\r\n"):
        raise BadAnswer("no steps such as (action object) in the answer")
    return steps


def _parenthesised(line: str) -> list[Step]:
    steps, position = [], 0
    for match in _STEPS.finditer(line):
        if not _BETWEEN.fullmatch(line, position, match.start()):
            break
        name, *objects = match[1].split()
        steps.append(Step(name, tuple(objects)))
        position = match.end()
    return steps
