"""The environments seam: what does an action do, and has the goal been reached?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay.errors import RunError
from assay.sandbox.workspace import Workspace
from assay.tasks.base import TaskSource
from assay.types import Message, Task, Tool, ToolCall, Verdict


class EnvironmentFailure(RunError):
    """The world itself failed (a server is away, a disk is full): the episode abstains, whatever the policy did."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the policy is shown.

    Attributes:
        messages: appended to the conversation: of the user, of tools, of the system at the beginning.
        tools: that may be called from now on; read at the beginning of an episode.
        state: key of the state, equal for states that are equivalent; ``None`` where none is told.
        admissible: the actions that can be taken, where there is a list of them.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    state: str | None = None
    admissible: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What the policy said in its turn, and the tool calls found in it.

    A call with a ``problem`` must not be made; it is answered by what is wrong with it.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """What came of an action.

    Attributes:
        observation: what is seen now; its messages are shown unless the episode is over.
        reward: of this turn alone; ``None`` where there is none.
        terminated: the episode is over; ``truncated``: a limit of the environment's own has ended it.
        valid: whether the action was one that could be taken.
        error: what was wrong with it, in a line.
        tag: what kind of turn it was.
        verdict: on this action alone, where every action is judged.
        info: anything else worth keeping; plain data.
    """

    observation: Observation
    reward: float | None = None
    terminated: bool = False
    truncated: bool = False
    valid: bool = True
    error: str = ""
    tag: str | None = None
    verdict: Verdict | None = None
    info: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Environment(Protocol):
    """A world for one episode at a time, and the tasks that are set in it.

    What a policy causes (a malformed call, a tool's refusal, a program that times out) is an observation. Any exception
    that ``reset``, ``step`` or ``verdict`` raises is the world's own failure: the episode abstains. With the same task,
    seed and actions an episode takes the same course, unless ``repeats`` is false.

    ``verdict`` judges the state the world is in, never what the policy says of it. ``close`` frees all that an episode
    holds; it may be called at any time, twice, and after a failure; ``reset`` may follow.

    Optional attribute: ``repeats = False`` where an episode cannot be played again.
    """

    def tasks(self) -> TaskSource:
        """Return the tasks that can be set."""
        ...

    def reset(self, task: Task, seed: int) -> Observation:
        """Begin an episode."""
        ...

    def step(self, action: Action) -> Step:
        """Take an action.

        Raises:
            RuntimeError: no episode is under way.
        """
        ...

    def verdict(self) -> Verdict:
        """Judge the state."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Snapshots(Protocol):
    """An environment whose state can be put away and come back to: branching, values by rollouts."""

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None: ...


@runtime_checkable
class Oracle(Protocol):
    """An environment that can judge one action in the present state, without taking it."""

    def judge(self, action: Action) -> Verdict: ...


@runtime_checkable
class Guided(Protocol):
    """An environment that knows actions which reach the goal from the present state."""

    def gold(self) -> Sequence[Action]: ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far an action agrees with an expert's: it could be read, is of the same kind, is the same in effect."""

    read: bool
    kind: bool
    exact: bool


@runtime_checkable
class Comparing(Protocol):
    """An environment that can say whether an action is what an expert does in the present state, in other words."""

    def compare(self, action: Action, expert: Action) -> Agreement: ...


@runtime_checkable
class Thoughtful(Protocol):
    """An environment that knows what a right thought says in the present state: what is seen there, what follows."""

    def thought(self) -> str: ...


@runtime_checkable
class Foldered(Protocol):
    """An environment whose state is a folder, in which a program may work by itself.

    Optional attribute: ``service``, of :class:`~assay.tasks.workspaces.service.Service`, which the work needs.
    """

    def folder(self) -> Workspace:
        """Return the folder as it is; what is done to it is done to the state."""
        ...


@runtime_checkable
class Attacked(Protocol):
    """An environment that knows ways to look done without being so; its audit tries them."""

    def attacks(self) -> Sequence[Sequence[Action]]:
        """Return what to try from the beginning of an episode, each in an episode of its own."""
        ...


@runtime_checkable
class Evidence(Protocol):
    """An environment that can tell its state as JSON has it; what a verifier of states judges."""

    def state_json(self) -> Any: ...


@runtime_checkable
class Numeric(Protocol):
    """An environment that can be played by numbers: a world of Gymnasium's interface, and its verdict.

    What ends an episode is told apart throughout: it is over (``terminated``: nothing comes after it), or a limit has
    cut it (``truncated``: what would have come is worth something still).
    """

    @property
    def world(self) -> Any:
        """The world, with its ``observation_space`` and ``action_space``."""
        ...

    def sizes(self) -> tuple[int, int]:
        """How many numbers are seen and decided, see :func:`assay.environments.foreign.vectors.sizes`."""
        ...

    def begin(self, task: Task) -> tuple[Any, Any]:
        """Begin an episode: what is seen, and ``info``."""
        ...

    def take(self, value: Any) -> tuple[Any, float, bool, bool, Any]:
        """Take an action: what is seen, the reward, ``terminated``, ``truncated``, ``info``."""
        ...


@runtime_checkable
class Scripted(Protocol):
    """A world that knows how to move somewhere; what offline data are recorded of."""

    def toward(self, target: np.ndarray | None = None) -> np.ndarray:
        """Return the action of shortest way to a place, or to the goal."""
        ...

    def somewhere(self, rng: np.random.Generator) -> np.ndarray:
        """Return a place to go to."""
        ...

    def middle(self) -> np.ndarray:
        """Return a place that ways cross at."""
        ...

    def aside(self, side: int) -> np.ndarray:
        """Return a place beside the goal, as seen from the middle: 1 on the one side, -1 on the other."""
        ...
