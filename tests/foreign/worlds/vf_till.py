"""A taskset with tools: take an amount from a till, in a server of its own."""

from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["Tills"]


class Till(vf.TaskData):
    amount: int


class TillState(vf.State):
    cash: int = 10


class TillTools(vf.Toolset[vf.ToolsetConfig, TillState]):
    TOOL_PREFIX = None

    @vf.tool
    async def pay(self, amount: int) -> str:
        """Pay an amount from the till."""
        if amount > self.state.cash:
            raise ValueError("not enough cash")
        self.state.cash -= amount
        return f"left {self.state.cash}"


class TillTask(vf.Task[Till, TillState]):
    @classmethod
    def toolsets(cls, config: vf.TaskConfig) -> list[vf.Toolset]:
        return [TillTools(vf.ToolsetConfig())]

    @vf.reward
    async def paid(self, trace: vf.Trace) -> float:
        return float(trace.state.cash == 10 - self.data.amount)


class Tills(vf.Taskset[TillTask, vf.TasksetConfig]):
    def load(self) -> Iterator[TillTask]:
        for amount in (3, 4, 5):
            yield TillTask(Till(prompt=f"Pay {amount}.", amount=amount), self.config.task)


if __name__ == "__main__":
    TillTools.run()
