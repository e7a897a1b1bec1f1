"""Environments whose state is a value and whose actions are lines of text: played by text or by a tool."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.environments.base import Action, Agreement, Observation, Step
from assay.environments.lines import ACT, Interface, answered, plain, taken
from assay.environments.tools import call, say
from assay.media import Picture
from assay.tasks.seeded import generator
from assay.types import Message, Task, Tool, Verdict

State = tuple[Any, ...]


class Stated:
    """What is left to write is a state's beginning, its actions, what they lead to, its end and its verdict.

    A state is plain data: tuples of texts, numbers, truth values and tuples, so that a snapshot is JSON. An action
    is a line of text, one a turn; one that is not among the state's ``actions`` changes nothing, is answered by what
    is wrong with it, and makes the turn invalid. Chance is drawn for the k-th action from the episode's seed and k.

    Args:
        interface: ``text``: a turn's last line, or its ``<action>``, is the action; ``tool``: tool ``act`` takes it.
        moves: turns of an episode, at most, invalid ones with them; the last one truncates it.
    """

    def __init__(self, interface: Interface, moves: int):
        self.interface, self.moves = interface, moves
        self._under_way = False

    # What a subclass has

    def beginning(self, task: Task) -> State:
        """Return the state that a task begins in; :meth:`chance` is that of no action."""
        raise NotImplementedError

    def show(self, state: State) -> str:
        """Return what the policy sees of a state."""
        raise NotImplementedError

    def actions(self, state: State) -> Sequence[str]:
        """Return the actions that can be taken."""
        raise NotImplementedError

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        """Return what an action leads to, and what is said of it."""
        raise NotImplementedError

    def over(self, state: State) -> bool:
        """Whether the episode has ended there."""
        raise NotImplementedError

    def judged(self, state: State) -> Verdict:
        """Return the verdict on a state."""
        raise NotImplementedError

    def plan(self, state: State) -> Sequence[str]:
        """Return actions that reach the goal."""
        raise NotImplementedError

    def pictures(self, state: State) -> Sequence[Picture]:
        """Return the pictures of which :meth:`show` has a mark each; here none."""
        return ()

    def written(self, line: str) -> str:
        """Return a line that was given as an action as actions are written; here case and blanks do not matter."""
        return plain(line)

    def problem(self, state: State, action: str) -> str:
        """Return why an action cannot be taken, empty where it can; here those of ``actions`` can."""
        return "" if action in self.actions(state) else f"{action[:60]!r} cannot be done"

    def key(self, state: State) -> str:
        """Return a key of the state, equal for equivalent ones."""
        return json.dumps(state, separators=(",", ":"))

    # What follows from it

    def chance(self, ahead: int = 0) -> np.random.Generator:
        """Return the chance of the next action, or of one further ``ahead``."""
        return generator(self.seed, self.taken + ahead)

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.seed, self.taken, self.left = task, seed, 0, self.moves
        self.state = self.beginning(task)
        self._under_way = True
        tools = (ACT,) if self.interface == "tool" else ()
        shown = self._pictured(Message(role="user", content=self.show(self.state)))
        if isinstance(task.prompt, str):
            return self._seen(({**shown, "content": f"{task.prompt}\n\n{shown['content']}"},), tools)
        return self._seen((*task.prompt, shown), tools)

    def _pictured(self, message: Message) -> Message:
        """Return a message that shows the state with its pictures."""
        found = tuple(self.pictures(self.state))
        return {**message, "images": found} if found else message

    def step(self, action: Action) -> Step:
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        self.left -= 1
        line, error = self._read(action)
        reply, self.said = error, ""
        if not error:
            self.state, self.said = self.after(self.state, line, self.chance())
            self.taken += 1
            reply = f"{self.said}\n{self.show(self.state)}" if self.said else self.show(self.state)
        over = self.over(self.state)
        self._under_way = not over and self.left > 0
        shows = not error
        messages, error = answered(action, reply, error)
        if shows and messages:
            messages = (self._pictured(messages[0]), *messages[1:])
        return Step(
            self._seen(messages), terminated=over, truncated=not over and not self.left, valid=not error, error=error
        )

    def _read(self, action: Action) -> tuple[str, str]:
        """Return the action as a line, and what is wrong with it."""
        line, error = taken(action, self.interface)
        if error:
            return "", error
        line = self.written(line)
        return line, self.problem(self.state, line) if line else "no action was given"

    def _seen(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Observation:
        return Observation(messages, tools, self.key(self.state), tuple(self.actions(self.state)))

    def verdict(self) -> Verdict:
        return self.judged(self.state)

    def close(self) -> None:
        self._under_way = False

    def gold(self) -> Sequence[Action]:
        write = say if self.interface == "text" else lambda line: call(ACT.name, action=line)
        return [write(line) for line in self.plan(self.state)]

    def compare(self, action: Action, expert: Action) -> Agreement:
        """Return how far an action agrees with an expert's: kinds are first words, and here equal lines do the same."""
        line, error = self._read(action)
        wanted, _ = self._read(expert)
        return Agreement(not error, not error and line.split()[0] == wanted.split()[0], not error and line == wanted)

    def state_json(self) -> Any:
        return json.loads(json.dumps(self.state))

    def snapshot(self) -> bytes:
        """Return the episode as it stands; another object of this task comes back to it."""
        return json.dumps([self.task.id, self.seed, self.taken, self.left, self._under_way, self.state]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Come back to a snapshot of an episode of the task that was last begun.

        Raises:
            RuntimeError: it is of another task.
        """
        id, *kept = json.loads(snapshot)
        if id != self.task.id:
            raise RuntimeError(f"the snapshot is of another task, {id}")
        self.seed, self.taken, self.left, self._under_way, state = kept
        self.state = _tuples(state)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
