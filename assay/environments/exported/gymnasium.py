"""An environment as a ``gymnasium.Env``: observations and actions are texts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from assay.environments.base import EnvironmentFailure, Observation
from assay.environments.exported.episode import Episodes, text_of
from assay.errors import UsageError

LONGEST = 1 << 20
"""Characters of an observation, or of an action."""


def as_gymnasium(environment: str | Mapping[str, Any], turns: int = 64, workers: int = 0) -> Any:
    """Return an environment as Gymnasium has them.

    An observation is what is said to the policy; an action is what it says, its tool calls written as a model writes
    them. ``reset`` takes ``options={"index": i}`` for a task, which is drawn from the seed otherwise. The reward is 0
    until the end, and the verdict's score then; a turn's own reward, the tools, the admissible actions and the verdict
    are in ``info``. A world that fails raises: that is no reward of 0.

    Args:
        environment: its name, ``file.py:Class``, or a table with ``name`` and options.
        turns: of an episode, at most; the last truncates it.
        workers: processes that environments live in; 0 for this one.

    Raises:
        UsageError: there is no such environment, or Gymnasium is not installed.
    """
    return _kind()(environment, turns, workers)


@functools.cache
def _kind() -> type:
    try:
        import gymnasium
    except ImportError:
        raise UsageError("an environment as Gymnasium has them needs it: pip install 'assay[gymnasium]'") from None

    class Words(gymnasium.spaces.Text):
        """Texts of any characters."""

        def __init__(self) -> None:
            super().__init__(LONGEST, min_length=0)

        def contains(self, x: Any) -> bool:
            return isinstance(x, str) and len(x) <= LONGEST

        def sample(self, *given: Any, **named: Any) -> str:
            count = int(self.np_random.integers(0, 40))
            return "".join(map(chr, self.np_random.integers(32, 127, count).tolist()))

    class Exported(gymnasium.Env):
        """Made by :func:`as_gymnasium`."""

        metadata = {"render_modes": []}  # noqa: RUF012

        def __init__(self, environment: str | Mapping[str, Any], turns: int, workers: int):
            if turns < 1:
                raise UsageError(f"turns {turns} must be at least 1")
            self.episodes, self.turns, self.taken = Episodes(environment, workers), turns, 0
            self.observation_space, self.action_space = Words(), Words()

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[str, dict[str, Any]]:
            super().reset(seed=seed)
            size = self.episodes.source.size
            drawn = int(self.np_random.integers(size or 2**31))
            index = int((options or {}).get("index", drawn))
            shown = self.episodes.begin(index, int(self.np_random.integers(2**62)))
            self.taken = 0
            return text_of(shown), self._info(shown, index=index)

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            step = self.episodes.act(action)
            self.taken += 1
            truncated = not step.terminated and (step.truncated or self.taken >= self.turns)
            more: dict[str, Any] = {"turn_reward": step.reward, "valid": step.valid, "error": step.error}
            score = 0.0
            if step.terminated or truncated:
                self.episodes.over = True
                verdict = self.episodes.verdict()
                if verdict.passed is None:
                    raise EnvironmentFailure(verdict.feedback)
                score = float(verdict.score)
                more["verdict"] = {"score": score, "passed": verdict.passed, "feedback": verdict.feedback}
            return text_of(step.observation), score, step.terminated, truncated, self._info(step.observation, **more)

        def close(self) -> None:
            self.episodes.close()
            self.episodes.worlds.close()

        def _info(self, shown: Observation, **more: Any) -> dict[str, Any]:
            tools = [
                {"name": t.name, "description": t.description, "parameters": t.parameters} for t in self.episodes.tools
            ]
            return {"tools": tools, "admissible": list(shown.admissible or ()), "state": shown.state, **more}

    return Exported
