"""A Gymnasium environment of a user's own: texts in, texts out, and a flag for success."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.spaces import Dict, Discrete, Text

LETTERS = "abcdefghij"


class Echo(gymnasium.Env):
    """Say the word backwards; three tries."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, length: int = 3, breaks: bool = False):
        self.length, self.breaks = length, breaks
        self.observation_space = Dict({"word": Text(length, charset=LETTERS), "left": Discrete(4)})
        self.action_space = Text(8, charset=LETTERS)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.word = "".join(self.np_random.choice(list(LETTERS), self.length))
        self.left = 3
        return {"word": self.word, "left": self.left}, {}

    def step(self, action: str) -> Any:
        if self.breaks:
            raise OSError("the wire is cut")
        self.left -= 1
        done = action == self.word[::-1]
        info = {"is_success": True} if done else {}
        return {"word": self.word, "left": self.left}, -1.0, done, not done and not self.left, info


def told(observation: Any, info: Any) -> str:
    return f"word {observation['word']}"
