"""An environment of OpenEnv's own classes: pay from a till; and its server."""

from __future__ import annotations

import sys
from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Pay(Action):
    amount: int
    note: str = ""


class Seen(Observation):
    cash: int
    owed: int


class Till(Environment[Pay, Seen, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Seen:
        self.cash, self.owed, self.steps = 10, 1 + (seed or 0) % 9, 0
        return Seen(cash=self.cash, owed=self.owed)

    def step(self, action: Pay, timeout_s: float | None = None, **_: Any) -> Seen:
        if action.amount == 13:
            raise OSError("the till is jammed")
        self.steps += 1
        self.cash -= action.amount
        self.owed -= action.amount
        done = self.owed <= 0 or self.steps == 3
        return Seen(cash=self.cash, owed=self.owed, done=done, reward=float(self.owed == 0) if done else None)

    @property
    def state(self) -> State:
        return State(step_count=self.steps)


if __name__ == "__main__":
    import uvicorn

    app = create_fastapi_app(Till, Pay, Seen, max_concurrent_envs=64)
    # A socket that listens already: who asks early waits.
    uvicorn.run(app, fd=int(sys.argv[1]), log_level="warning", ws="websockets-sansio")
