"""A world model, given as text: what each step leads to, and how it is played in, whoever wrote it."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from assay.sandbox import Limits, Program, sandbox
from assay.sandbox.inside.codec import CodecError
from assay.sandbox.types import MIB
from assay.verify.behaviour import drive
from assay.verify.code.results import Abstain, ending
from assay.verify.code.values import same_value
from assay.verify.planning.model import Domain, PddlError
from assay.verify.planning.parse import read_domain, read_problem
from assay.verify.planning.validate import State, Step, TooMuch, World
from assay.verify.text.exact import shorten

Language = Literal["python", "pddl"]
LIMITS = Limits(cpu_seconds=4, wall_seconds=10, memory=256 * MIB)
LOST = 2
"""Times a program may end before its answer; what is asked after that is not answered."""
TOLERANCE = 1e-9
TOLD = 2000
"""Characters of a state that are told."""
UNREADABLE = (ValueError, IndexError, KeyError, TypeError, AttributeError)
"""What reading a text that is no PDDL may raise: who wrote it is not to be trusted with its shape."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a step leads to; or the ``problem``, where it leads nowhere."""

    after: Any = None
    reward: float = 0.0
    done: bool = False
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        return f"[{brief(json.dumps(self.after))}, {self.reward:g}, {json.dumps(self.done)}]"


def brief(text: str) -> str:
    """Return a text as it is told: what a program returns may be long."""
    return text if len(text) <= TOLD else f"{text[:TOLD]}..."


@dataclass(frozen=True, slots=True)
class Case:
    """A step and what it truly leads to.

    Attributes:
        start: the number of the start that it was reached from.
        kind: what a test of it is a test of, see :func:`~assay.verify.behaviour.truth.kinds`.
    """

    start: int
    state: Any
    action: str
    right: Reply
    kind: str = ""


def agrees(got: Reply, right: Reply) -> tuple[bool, bool, bool]:
    """Return whether state, reward and end are those of the truth."""
    if got.problem or right.problem:
        return False, False, False
    try:
        same = same_value(got.after, right.after, "approximate", TOLERANCE, TOLERANCE)
    except RecursionError:  # what is nested that deep is no state of a world
        same = False
    return same, math.isclose(got.reward, right.reward, rel_tol=TOLERANCE, abs_tol=TOLERANCE), got.done == right.done


class Model(Protocol):
    """A world by its text. Raises :class:`~assay.verify.code.results.Abstain` where the sandbox fails."""

    def steps(self, asked: Sequence[tuple[Any, str]]) -> list[Reply]:
        """Return what each action in each state leads to."""
        ...

    def drive(self, name: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Return what a function of :mod:`~assay.verify.behaviour.drive` makes of the model, by each of some arguments;
        ``None`` where it ends before that."""
        ...


class PythonModel:
    """A Python program that defines ``step(state, action)``; it runs in the sandbox and nowhere else.

    Args:
        source: the program.
    """

    def __init__(self, source: str):
        self.source = source

    def steps(self, asked: Sequence[tuple[Any, str]]) -> list[Reply]:
        out: list[Reply] = []
        lost = 0
        while len(out) < len(asked):
            try:
                done = sandbox().call(Program(self.source), "step", [(one, {}) for one in asked[len(out) :]], LIMITS)
            except CodecError as error:
                return [*out, *[Reply(problem=f"that is no state: {error}")] * (len(asked) - len(out))]
            if done.outcome.failed_here:
                raise Abstain(f"the sandbox failed: {done.outcome.reason}", "infrastructure")
            out += [_reply(c.value) if c.returned else Reply(problem=f"raised {c.exception}") for c in done.calls]
            if len(out) < len(asked):
                lost += 1
                problem = ending(done.outcome) if done.outcome.status != "ok" else "the program ended"
                out += [Reply(problem=problem)] * (1 if lost < LOST else len(asked) - len(out))
        return out

    def drive(self, name: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        # A program that tampers with what plays in it plays worse in the true world, where it is looked at.
        tail = f"\n\nimport assay_drive\n\ndef assay_driven(*a):\n    return assay_drive.{name}(step, *a)\n"
        program = Program(self.source + tail, files={"assay_drive.py": _text()})
        done = sandbox().call(program, "assay_driven", [(one, {}) for one in calls], LIMITS)
        if done.outcome.failed_here:
            raise Abstain(f"the sandbox failed: {done.outcome.reason}", "infrastructure")
        made = [call.value if call.returned else None for call in done.calls]
        return made + [None] * (len(calls) - len(made))


@functools.cache
def _text() -> str:
    return Path(drive.__file__).read_text(encoding="utf-8")


def _reply(value: Any) -> Reply:
    """Read what a program returned."""
    if not isinstance(value, list | tuple) or len(value) != 3:
        return Reply(problem="step must return [state, reward, done]")
    after, reward, done = value
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        return Reply(problem="the reward must be a number")
    if not isinstance(done, bool):
        return Reply(problem="done must be true or false")
    try:
        return Reply(json.loads(json.dumps(after)), float(reward), done)
    except (TypeError, ValueError, RecursionError):
        return Reply(problem="the state must be plain data, as JSON has it")


class PddlModel:
    """A PDDL domain, played in problems that are written for the true one.

    A state is ``{"problem": its number, "facts": [[predicate, object, ...], ...]}``, sorted; an action is a ground one,
    ``(move a b)``. One that cannot be applied changes nothing. The reward is 1, and the episode done, where an action
    leads to the goal. What all steps in a problem may take together is bounded.

    Args:
        source: the domain.
        problems: of the true domain.
        trusted: what steps take is not bounded.
    """

    def __init__(self, source: str, problems: Sequence[str], trusted: bool = False):
        self.trusted = trusted
        self.worlds = [_world(source, problem) for problem in problems]

    def start(self, number: int) -> Mapping[str, Any]:
        """Return the state that a problem begins in.

        Raises:
            PddlError: the problem is none.
        """
        world = self.worlds[number]
        if isinstance(world, str):
            raise PddlError(world)
        return _state(number, world.initial.facts)

    def step(self, state: Any, action: str) -> list[Any]:
        """Return ``[state, reward, done]``.

        Raises:
            PddlError: the problem cannot be read with this domain, takes too long, or this is no state or action of it.
        """
        try:
            number, words = state["problem"], action.strip("()").split()
            world = self.worlds[number]
            if isinstance(world, str):
                raise PddlError(world)
            before = State(frozenset(map(tuple, state["facts"])), dict(world.problem.values))
            world.work = 0 if self.trusted else world.work
            after, _ = world.apply(before, Step(words[0], tuple(words[1:])))
            done = after is not None and world.holds(world.problem.goal, after, {})
            return [_state(number, (after or before).facts), float(done), done]
        except TooMuch as error:
            raise PddlError(f"its actions take too long: {error}") from None
        except PddlError:
            raise
        except UNREADABLE as error:
            raise PddlError(f"the action cannot be taken in this state: {error}") from None

    def steps(self, asked: Sequence[tuple[Any, str]]) -> list[Reply]:
        out = []
        for state, action in asked:
            try:
                out.append(_reply(self.step(state, action)))
            except PddlError as error:
                out.append(Reply(problem=str(error)))
        return out

    def drive(self, name: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        return [getattr(drive, name)(self.step, *one) for one in calls]


def domain_of(source: str) -> Domain:
    """Return the domain that a text defines.

    Raises:
        PddlError: it defines none.
    """
    try:
        return read_domain(source)
    except UNREADABLE as error:
        raise PddlError(f"it is no PDDL domain: {shorten(str(error), 200)}") from None


def _world(source: str, problem: str) -> World | str:
    """Return a problem's world, or why there is none."""
    try:
        domain = domain_of(source)
        return World(domain, read_problem(problem, domain))
    except UNREADABLE as error:
        return f"a problem cannot be read with this domain: {shorten(str(error), 200)}"


def _state(number: int, facts: Any) -> dict[str, Any]:
    return {"problem": number, "facts": sorted(map(list, facts))}
