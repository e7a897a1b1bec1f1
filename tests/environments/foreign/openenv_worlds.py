"""Environments as OpenEnv has them: pydantic actions and observations, a reward and whether it is done."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Seen(BaseModel):
    model_config = ConfigDict(extra="allow")

    done: bool = False
    reward: float | None = None
    metadata: dict[str, Any] = {}


class Words(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str
    metadata: dict[str, Any] = {}


class Echo:
    """Say the word, which is the seed's last digits."""

    def reset(self, seed: int | None = None) -> Seen:
        self.word, self.left = str((seed or 0) % 1000), 2
        return Seen(echoed=f"say {self.word}")

    def step(self, action: Words) -> Seen:
        if action.message == "break":
            raise OSError("the disk is full")
        self.left -= 1
        right = action.message == self.word
        return Seen(echoed=action.message, done=right or not self.left, reward=float(right))

    def close(self) -> None: ...


class Move(BaseModel):
    model_config = ConfigDict(extra="forbid")

    x: int
    y: Literal[-1, 0, 1]


class Walk:
    """Walk to (2, 1); every step earns what it comes nearer."""

    def reset(self, seed: int | None = None, far: int = 2) -> Seen:
        self.at, self.goal = [0, 0], [far, 1]
        return Seen(at=self.at, goal=self.goal)

    def step(self, action: Move) -> Seen:
        before = self._far()
        self.at = [self.at[0] + max(-1, min(1, action.x)), self.at[1] + action.y]
        return Seen(at=self.at, goal=self.goal, reward=(before - self._far()) / 3, done=not self._far())

    def _far(self) -> int:
        return sum(abs(a - b) for a, b in zip(self.at, self.goal, strict=True))

    def num_tasks(self, split: str) -> int:
        return {"train": 5}[split]

    def close(self) -> None: ...


class Called(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["call_tool", "list_tools"] = "call_tool"
    tool_name: str = ""
    arguments: dict[str, Any] = {}


class Sums:
    """Add up to ten with a tool."""

    def reset(self, seed: int | None = None) -> Seen:
        self.total = 0
        return Seen(result="reach 10")

    def step(self, action: Called) -> Seen:
        if action.type == "list_tools":
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            return Seen(tools=[{"name": "add", "description": "Add a number.", "input_schema": schema}])
        if action.arguments["n"] < 0:
            error = {"error_type": "execution_error", "message": "not below 0"}
            return Seen(tool_name="add", result=None, error=error)
        self.total += action.arguments["n"]
        result = {"content": [{"type": "text", "text": f"now {self.total}"}], "is_error": False}
        return Seen(tool_name="add", result=result, done=self.total >= 10, reward=float(self.total == 10))

    def close(self) -> None: ...
