"""Playing in a world by its ``step``: at random, by a plan, everywhere. It runs in the sandbox too, without assay.

``step(state, action)`` returns ``[state, reward, done]``; states are plain data. A step that raises, or returns
anything else, leads nowhere.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

Step = Callable[[Any, str], Any]


def key(state: Any) -> str:
    """Return a text that is equal for equal states."""
    return json.dumps(state, sort_keys=True)


def tried(step: Step, state: str, action: str) -> tuple[str, float, bool] | None:
    """Return where a step leads, ``None`` where it leads nowhere; states by their :func:`key`."""
    try:
        after, reward, done = step(json.loads(state), action)
        # A number that is none is none everywhere.
        if isinstance(reward, bool) or not isinstance(done, bool) or reward - reward != 0:
            return None
        return key(after), float(reward), done
    except Exception:
        return None


def explore(step: Step, starts: Sequence[Any], actions: Sequence[Sequence[str]], most: int) -> list[list[Any]]:
    """Return steps ``[start, state, action, after, reward, done]`` of every action in every state, the nearest first.

    Args:
        starts: where it begins, with the ``actions`` of each.
        most: steps from each start.
    """
    made: list[list[Any]] = []
    for number, (start, some) in enumerate(zip(starts, actions, strict=True)):
        seen = {key(start): start}
        waiting, left = deque(seen), most
        while waiting and left > 0:
            state = waiting.popleft()
            for action in some:
                led = tried(step, state, action)
                left -= 1
                if led is None:
                    continue
                if led[0] not in seen:
                    seen[led[0]] = json.loads(led[0])
                    if not led[2]:
                        waiting.append(led[0])
                made.append([number, seen[state], action, seen[led[0]], *led[1:]])
    return made


def walk(step: Step, state: Any, actions: Sequence[str], length: int, seed: int) -> list[list[Any]]:
    """Return the steps ``[state, action, after, reward, done]`` of an episode whose actions are drawn uniformly."""
    chance = random.Random(seed)
    return follow(step, state, [chance.choice(actions) for _ in range(length)])


def follow(step: Step, state: Any, actions: Sequence[str]) -> list[list[Any]]:
    """Return the steps of the episode that takes these actions, as far as it goes."""
    made: list[list[Any]] = []
    for action in actions:
        led = tried(step, key(state), action)
        if led is None:
            break
        after = json.loads(led[0])
        made.append([state, action, after, *led[1:]])
        state = after
        if led[2]:
            break
    return made


def plan(step: Step, state: Any, actions: Sequence[str], depth: int, most: int) -> list[str]:
    """Return the actions, at most ``depth``, with the largest sum of rewards; of equal ones the first of the shortest.

    States are searched breadth first. One that was reached with no more actions and no less reward is not searched
    again: whatever follows it follows the other too. At most ``most`` steps are taken; then the best so far is it.
    """
    best, way = 0.0, list[str]()
    reached = {key(state): 0.0}
    layer: list[tuple[str, float, list[str]]] = [(key(state), 0.0, [])]
    for _ in range(depth):
        further: dict[str, tuple[str, float, list[str]]] = {}
        for now, earned, said in layer:
            for action in actions:
                if most <= 0:
                    return way
                most -= 1
                led = tried(step, now, action)
                if led is None:
                    continue
                after, total = led[0], earned + led[1]
                if total > best + 1e-9:
                    best, way = total, [*said, action]
                if not led[2] and total > reached.get(after, float("-inf")) + 1e-9:
                    reached[after] = total
                    further[after] = (after, total, [*said, action])
        layer = list(further.values())
    return way


def planned(step: Step, state: Any, actions: Sequence[str], depth: int, most: int) -> list[list[Any]]:
    """Return the steps of the episode that follows the :func:`plan`."""
    return follow(step, state, plan(step, state, actions, depth, most))
