"""All that can be said in a small environment, as a tree: then expectations over episodes are sums."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.tabular_turns import TabularTurns, Words, opened
from assay.environments.base import Action, Environment
from assay.environments.calls import find_calls
from assay.errors import UsageError
from assay.policies.tabular import Leaf, TabularPolicy, Tree
from assay.types import Ask, Episode, Group, Task


def enumerated(
    world: Environment, tasks: Sequence[Task], words: Words, turns: int, seed: int = 0, most: int = 100_000
) -> tuple[Tree, dict[str, tuple[int, ...]]]:
    """Return the tree of all episodes of ``tasks``, and where each task begins in it, by its opening's text.

    Every turn says one of each of ``words``. The root's children are the tasks; a task's leaves are where its
    environment ends the episode, or ``turns`` are spent. A leaf's reward is the verdict's score, its label the task's
    id. What chance brings is that of one seed.

    Raises:
        UsageError: two tasks open alike, which nobody could tell apart, or there are more episodes than ``most``.
    """
    openings: dict[str, tuple[int, ...]] = {}
    roots = []
    count = 0

    def after(task: Task, said: list[str]) -> Any:
        nonlocal count
        over = False
        tools = world.reset(task, seed).tools
        for text in said:
            step = world.step(Action(text, find_calls(text, tools) if tools else ()))
            over = step.terminated or step.truncated
        ended = over or len(said) == turns
        leaf = Leaf(world.verdict().score, task.id) if ended else None
        world.close()
        if leaf is None:
            return _nested([after(task, [*said, "\n".join(t)]) for t in product(*words)], [len(w) for w in words])
        count += 1
        if count > most:
            raise UsageError(f"more than {most} episodes; take fewer words, turns or tasks")
        return leaf

    for k, task in enumerate(tasks):
        opening = opened(world.reset(task, seed).messages)
        if opening in openings:
            raise UsageError(f"tasks {task.id} and {tasks[openings[opening][0]].id} open alike")
        openings[opening] = (k,)
        roots.append(after(task, []))
    return Tree.of(roots), openings


def _nested(flat: list[Any], sizes: Sequence[int]) -> Any:
    """Return what comes of each turn as a tree of its words."""
    for size in reversed(sizes[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat


def every_episode(engine: TabularTurns, tasks: Sequence[Task], rollout: Any) -> list[Group]:
    """Return each leaf's episode, in a group of its own, as rollout ``multi_turn`` plays it with a policy led there."""
    out = []
    for path in engine.policy.tree.paths:
        led = _Led(engine.policy, engine.words, engine.openings)
        led.path = path
        out += rollout.play([Ask(tasks[path[0]], 1)], [0], led)
    return out


class _Led(TabularTurns):
    """Says what a path says."""

    path: tuple[int, ...] = ()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            start = np.concatenate([self.encode(request.prompt), np.asarray(request.prefix, dtype=np.int64)])
            said = np.array(self.path[len(start) : len(start) + len(self.words)])
            [made] = self.policy.episodes(torch.from_numpy(said)[None], torch.tensor([len(said)]), 1.0, [start])
            out.append([self.worded(made)])
        return out


def player(world: Environment, tasks: Sequence[Task], words: Words, turns: int, seed: int = 0) -> TabularTurns:
    """Return an engine whose policy, uniform at first, plays ``tasks``; arguments as for :func:`enumerated`."""
    tree, openings = enumerated(world, tasks, words, turns, seed)
    return TabularTurns(TabularPolicy(tree), words, openings)
