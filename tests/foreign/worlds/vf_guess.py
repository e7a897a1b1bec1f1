"""A taskset with a user who answers by a script: guess the number he thinks of."""

from __future__ import annotations

import re
from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["Guess", "Guesses"]


class Hidden(vf.TaskData):
    number: int


class GuessTask(vf.Task[Hidden]):
    pass


class GuessConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class Guess(vf.Env[GuessConfig]):
    async def run(self, task: GuessTask, agents: vf.Agents) -> None:
        score = 0.0
        async with agents.player.interaction(task) as talk:
            said = await talk.turn()
            for left in (2, 1, 0):
                if said.terminated:
                    break
                numbers = re.findall(r"\d+", said.last_reply)
                guess = int(numbers[-1]) if numbers else 0
                if guess == 13:
                    raise OSError("the wire is cut")
                if guess == task.data.number:
                    score = (left + 1) / 3
                    break
                if left:
                    said = await talk.turn("higher" if guess < task.data.number else "lower")
        talk.trace.record_reward("guessed", score)


class Guesses(vf.Taskset[GuessTask, vf.TasksetConfig]):
    def load(self) -> Iterator[GuessTask]:
        for number in (2, 5, 7):
            yield GuessTask(Hidden(prompt="1-8?", number=number), self.config.task)
