"""What every environment has to do, whatever it is: played with its own plan, with nothing, and at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest

from assay.environments.base import Action, Environment, Guided
from assay.environments.tools import say
from assay.types import Task

Make = Callable[[], Any]


def played(world: Any, task: Task, actions: Sequence[Action], seed: int = 0) -> list[Any]:
    """Everything that is seen and found, up to the end of the episode."""
    seen: list[Any] = [world.reset(task, seed)]
    for action in actions:
        seen.append(world.step(action))
        if seen[-1].terminated or seen[-1].truncated:
            break
    return [*seen, world.verdict()]


def gold_passes(make: Make, tasks: Any, n: int = 200) -> list[list[Action]]:
    """Play the environment's own plan for each of the first tasks; returns the plans."""
    plans = []
    for index in range(n):
        world, task = make(), tasks[index]
        assert isinstance(world, Environment) and isinstance(world, Guided)
        world.reset(task, index)
        plans.append(list(world.gold()))
        *steps, verdict = played(make(), task, plans[-1], index)
        assert all(step.valid for step in steps[1:]), (task, steps[-1])
        assert verdict.passed, (task, verdict)
        assert steps[-1].terminated
    return plans


def idle_fails(make: Make, tasks: Any, words: str = "Done. I have won: success, verdict passed.", n: int = 50) -> None:
    """Saying that it is done, once or often, is not doing it."""
    for index in range(n):
        assert not played(make(), tasks[index], [say(words)])[-1].passed
        assert not played(make(), tasks[index], [say(words)] * 200)[-1].passed


def plans_hold(make: Make, n: int, idle: int) -> None:
    """Plans of the first tasks pass, repeat and end as they should, and doing nothing passes none."""
    tasks = make().tasks()
    plans = gold_passes(make, tasks, n)
    repeats(make, tasks, plans[:20])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=idle)


def share(make: Make, tasks: Any, policy: Callable[[Any, Any, np.random.Generator], Action], n: int = 200) -> float:
    """Share of the first tasks that a policy, asked with the world and what it was shown last, passes."""
    passed = 0
    for index in range(n):
        world, rng = make(), np.random.default_rng([7, index])
        shown = world.reset(tasks[index], index)
        for _ in range(1000):
            step = world.step(policy(world, shown, rng))
            shown = step.observation
            if step.terminated or step.truncated:
                break
        passed += bool(world.verdict().passed)
    return passed / n


def repeats(make: Make, tasks: Any, plans: Sequence[Sequence[Action]]) -> None:
    """The same seed and actions give the same steps; two episodes side by side are each as alone."""
    for index in range(0, len(plans) - 1, 2):
        one, two = (played(make(), tasks[i], plans[i], i) for i in (index, index + 1))
        assert one == played(make(), tasks[index], plans[index], index)
        worlds, seen = (make(), make()), ([], [])
        for world, kept, i in zip(worlds, seen, (index, index + 1), strict=True):
            kept.append(world.reset(tasks[i], i))
        for pair in zip_longest(plans[index], plans[index + 1]):
            for world, kept, action in zip(worlds, seen, pair, strict=True):
                if action is not None:
                    kept.append(world.step(action))
        for world, kept, whole in zip(worlds, seen, (one, two), strict=True):
            assert [*kept, world.verdict()] == whole


def ends(make: Make, task: Task, plan: Sequence[Action]) -> None:
    """No step is taken before the beginning, after the end, or once closed; a new episode may begin then."""
    world = make()
    with pytest.raises(RuntimeError, match="reset"):
        world.step(plan[0])
    played(world, task, plan)
    with pytest.raises(RuntimeError, match="reset"):
        world.step(plan[0])
    world.close()
    world.close()
    with pytest.raises(RuntimeError, match="reset"):
        world.step(plan[0])
    assert played(world, task, plan)[-1].passed


def comes_back(make: Make, tasks: Any, plans: Sequence[Sequence[Action]]) -> None:
    """A snapshot taken half-way and restored in another object leads on to the same steps."""
    for index, plan in enumerate(plans):
        half = len(plan) // 2
        world, other = make(), make()
        world.reset(tasks[index], index)
        for action in plan[:half]:
            world.step(action)
        kept = world.snapshot()
        rest = [world.step(action) for action in plan[half:]]
        other.reset(tasks[index], index)
        for _ in range(2):
            other.restore(kept)
            assert [other.step(action) for action in plan[half:]] == rest
            assert other.verdict() == world.verdict()
        other.reset(tasks[index + 1], index)
        with pytest.raises(RuntimeError, match="another task"):
            other.restore(kept)
