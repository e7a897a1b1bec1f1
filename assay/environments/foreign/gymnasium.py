"""Gymnasium's environments, played by text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.environments.base import Action, Observation, Step
from assay.environments.foreign import spaces
from assay.environments.foreign.vectors import sizes
from assay.environments.lines import ACT, Interface, answered, how, taken
from assay.errors import UsageError
from assay.from_file import from_file, is_reference
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task, Tool, Verdict

_MARKED = re.compile(r"\x1b\[[0-9;]*m(.*?)\x1b\[0m", re.DOTALL)
MOST = 64
"""Actions that are listed as admissible, at most."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Endless tasks, each a seed of the environment, in ``meta["seed"]``."""

    id: str
    prompt: str
    seed: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        seed = int(generator(self.seed, check_index(index, None)).integers(2**31))
        return Task(
            id=f"gymnasium/{self.id}/{self.seed}/{index}",
            prompt=self.prompt,
            # Where all begin alike, the seed tells tasks apart.
            reference={"seed": seed, "index": index},
            kind="none",
            meta={"seed": seed},
        )


@part("environment", "gymnasium")
class Gymnasium:
    """Any environment that is registered with Gymnasium, unchanged.

    Observations are shown as JSON (a ``Text`` as it is), or as the environment's own drawing in characters, or by a
    function of your own. A turn's action is its last line, or its ``<action>``: a number, a name, a text or JSON, as
    its space has it. What is no action of the space is answered by what would be one, is not taken, and makes the turn
    invalid. The task is the seed of ``reset``: every episode of it begins alike and meets the same chance.

    The verdict is on an episode that the environment has ended: it passes if the return, undiscounted, reaches
    ``passes``, or if ``info[success]`` was true in its last step. One that it has not ended is wrong.

    Args:
        id: as in ``gymnasium.make``, with the module that registers it before a colon if need be; or
            ``file.py:Class``.
        options: of the environment.
        passes: a return that passes; by default the one that is registered as solving it (``reward_threshold``).
        success: a key of ``info`` that says so instead.
        returns: a return that scores 0 and one that scores 1; by default what passes scores 1 and all else 0.
        show: ``observation``, ``render`` (the environment's ``ansi`` mode; what is coloured stands in brackets), or
            ``file.py:function``, given the observation and ``info``.
        actions: names of the actions, in their order, of an environment with so many.
        rules: what the policy is told before it plays.
        digits: of a number that is shown.
        interface: ``text``, or ``tool``: the tool ``act`` takes the line.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: Gymnasium is not installed, there is no such environment, its spaces have no text, or nothing says
            what passes.
    """

    def __init__(
        self,
        id: str,
        options: dict[str, Any] | None = None,
        passes: float | None = None,
        success: str | None = None,
        returns: tuple[float, float] | None = None,
        show: str = "observation",
        actions: Sequence[str] = (),
        rules: str = "",
        digits: int = 4,
        interface: Interface = "text",
        seed: int = 0,
    ):
        check_seed("environment 'gymnasium'", seed)
        self.id, self.options, self.show, self.names = id, dict(options or {}), show, tuple(actions)
        self.success, self.returns, self.digits, self.interface = success, returns, digits, interface
        self.where = f"environment 'gymnasium': {id}"
        if show == "render":
            self.options["render_mode"] = "ansi"
        self.teller: Callable[[Any, Any], str] | None = from_file(show, "function") if is_reference(show) else None
        if show not in ("observation", "render") and self.teller is None:
            raise UsageError(f"{self.where}: show {show!r}; it is observation, render or file.py:function")
        self.world: Any = self._made()
        self._under_way = False
        threshold = getattr(getattr(self.world, "spec", None), "reward_threshold", None)
        self.passes = threshold if passes is None else passes
        if self.passes is None and success is None:
            raise UsageError(f"{self.where} does not say which return solves it; give passes = 1.0, or success = 'key'")
        if returns is not None and not returns[0] < returns[1]:
            raise UsageError(f"{self.where}: returns {list(returns)}; give a lower one and a higher one")
        self._check()
        asked = f"{rules or id}. Each turn take one action, {spaces.described(self.world.action_space, self.names)}."
        self._tasks = Seeds(id, f"{asked} Give it by {how(interface)}.", seed)

    def tasks(self) -> Seeds:
        return self._tasks

    def sizes(self) -> tuple[int, int]:
        """How many numbers a policy of numbers sees and decides on."""
        return sizes(self.world)

    def begin(self, task: Task) -> tuple[Any, Any]:
        """Begin an episode; return what is seen, as the world has it, and ``info``.

        Raises:
            UsageError: the task is another environment's.
        """
        if "seed" not in task.meta:
            raise UsageError(f"{self.where}: task {task.id} has no meta['seed']; take its own tasks")
        if self.world is None:
            self.world = self._made()
        self.total, self.ended, self.reached, self._under_way = 0.0, False, False, True
        seen, info = self.world.reset(seed=int(task.meta["seed"]))
        return seen, info

    def take(self, value: Any) -> tuple[Any, float, bool, bool, Any]:
        """Take an action, a value of the action space; return what Gymnasium's ``step`` does.

        Raises:
            RuntimeError: no episode is under way.
        """
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        seen, paid, over, cut, info = self.world.step(value)
        self.total += float(paid)
        self.ended = bool(over or cut)
        self.reached = self.success is not None and bool(info.get(self.success, False))
        self._under_way = not self.ended
        return seen, float(paid), bool(over), bool(cut), info

    def reset(self, task: Task, seed: int) -> Observation:
        self._look(*self.begin(task))
        before = (Message(role="user", content=task.prompt),) if isinstance(task.prompt, str) else task.prompt
        last: Any = before[-1]
        first = Message(role=last["role"], content=f"{last['content']}\n\n{self.seen}")
        return self._observed((*before[:-1], first), (ACT,) if self.interface == "tool" else ())

    def step(self, action: Action) -> Step:
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        line, error = taken(action, self.interface)
        value, reward, over, cut = None, None, False, False
        if not error:
            try:
                value = spaces.read(self.world.action_space, line, self.names)
            except spaces.Unread as unread:
                error = str(unread)
        reply = error
        if not error:
            seen, reward, over, cut, info = self.take(value)
            self._look(seen, info)
            reply = self.seen
        messages, error = answered(action, reply, error)
        return Step(self._observed(messages), reward, over, cut and not over, valid=not error, error=error)

    def verdict(self) -> Verdict:
        notes = {"return | sum of rewards": self.total}
        if not self.ended:
            return Verdict(0.0, False, notes, "the environment has not ended the episode")
        passed = self.reached if self.success is not None else self.total >= float(self.passes or 0.0)
        score = float(passed)
        if self.returns is not None:
            low, high = self.returns
            score = float(np.clip((self.total - low) / (high - low), 0.0, 1.0))
        return Verdict(score, passed, notes, f"return {self.total:.6g}")

    def close(self) -> None:
        world, self.world, self._under_way = self.world, None, False
        if world is not None:
            world.close()

    def _made(self) -> Any:
        try:
            import gymnasium
        except ImportError:
            raise UsageError(f"{self.where} needs Gymnasium: pip install 'assay[gymnasium]'") from None
        try:
            if is_reference(self.id):
                return from_file(self.id, "Gymnasium environment")(**self.options)
            return gymnasium.make(self.id, disable_env_checker=True, **self.options)
        except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
            raise UsageError(f"{self.where}: {' '.join(str(error).split())}") from None

    def _check(self) -> None:
        """Raise UsageError where a policy that speaks cannot play."""
        try:
            spaces.size(self.world.action_space)
            if self.show == "observation" and (n := spaces.size(self.world.observation_space)) > spaces.LARGEST:
                raise UsageError(f"its observation has {n} numbers; give show = 'render' or 'file.py:function'")
        except UsageError as error:
            raise UsageError(f"{self.where}: {error}") from None
        if self.show == "render" and "ansi" not in self.world.metadata.get("render_modes", []):
            raise UsageError(f"{self.where} cannot draw itself in characters; leave show out")
        if self.names and len(self.names) != getattr(self.world.action_space, "n", 0):
            raise UsageError(f"{self.where} has other actions than the {len(self.names)} in actions")

    def _look(self, seen: Any, info: Any) -> None:
        """Note what is seen, its key, and the actions that ``info`` says change anything."""
        space = self.world.observation_space
        if self.teller is not None:
            self.seen = str(self.teller(seen, info))
        elif self.show == "render":
            self.seen = _MARKED.sub(r"[\1]", str(self.world.render())).strip()
        else:
            self.seen = spaces.shown(space, seen, self.digits)
        self.key = (
            self.seen if len(self.seen) <= 120 else hashlib.blake2b(self.seen.encode(), digest_size=16).hexdigest()
        )
        count = int(getattr(self.world.action_space, "n", 0)) if hasattr(self.world.action_space, "start") else 0
        mask = info.get("action_mask", np.ones(count))
        can = [i for i in range(count) if mask[i]] if count <= MOST and len(mask) == count else []
        first = int(self.world.action_space.start) if can else 0
        self.admissible = tuple(self.names[i] if self.names else str(first + i) for i in can)

    def _observed(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Observation:
        return Observation(messages, tools, self.key, self.admissible or None)
