"""A taskset of one turn: add two numbers."""

from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["Sums"]


class Sum(vf.TaskData):
    answer: str


class SumTask(vf.Task[Sum]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply.strip() == self.data.answer)

    @vf.reward(weight=0.5)
    async def short(self, trace: vf.Trace) -> float:
        return 1.0 if len(trace.last_reply) < 4 else 0.0


class SumsConfig(vf.TasksetConfig):
    most: int = 5
    breaks: bool = False


class Sums(vf.Taskset[SumTask, SumsConfig]):
    def load(self) -> Iterator[SumTask]:
        if self.config.breaks:
            raise OSError("the data are away")
        for a in range(self.config.most):
            yield SumTask(Sum(prompt=f"{a}+1=", system_prompt="Add.", answer=str(a + 1)), self.config.task)
