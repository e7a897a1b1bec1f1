"""Rounds of learning from what a fixed policy has answered, each from the weights that the first began with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from assay.curriculum.base import Stream
from assay.curriculum.pool import Pool
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.tasks.seeded import permutation
from assay.types import Ask, Group

if TYPE_CHECKING:
    from assay.batch import Batch

WHO = "curriculum 'rounds'"


@part("curriculum", "rounds")
@dataclass(slots=True)
class Rounds:
    """A round samples responses to all of the data once, and learns from these from the first weights on.

    Before its first step every task is asked ``tries`` times of the policy as it is: in the first round the one that
    RL, or the stage, begins with, in the next the one that the round before has trained. Of responses that came to an
    end and were judged, verdict and reward are noted. Then the weights go back to those that RL began with, with a
    fresh optimiser, and for ``steps`` steps, in the last round to the end, the tasks with a right and a wrong response
    are asked in turn, each lap in another order: a task for all of its responses, as ``meta["responses"]``, with which
    rollout ``recorded`` answers; reward ``noted`` is what was noted. The learning rate's schedule is that of the run.

    Args:
        stream, prompts, group: supplied by the run.
        rounds: at least 1.
        steps: of a round.
        tries: responses to each task in a round.
        answers: the rollout that they come from.
        pool: tasks that the data consists of, the first different ones of the stream; all of a sized source if left
            out.
        seed: of the order.

    Raises:
        UsageError: an option below 1; before a run, one whose steps end before the last round begins, or an endless
            source without ``pool``.
        RunError: no task has a right and a wrong response, or what was noted is lost.
    """

    stream: Stream
    prompts: int
    group: int
    rounds: int = 2
    steps: int = 100
    tries: int = 30
    answers: Any = "single_turn"
    pool: int | None = None
    seed: int = 0
    _pool: Pool = field(init=False)
    _found: dict[str, list[dict[str, Any]]] = field(default_factory=dict, init=False)
    _round: int = field(default=0, init=False)
    _begun: int = field(default=0, init=False)
    _turn: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if min(self.rounds, self.steps, self.tries, 1 if self.pool is None else self.pool) < 1:
            raise UsageError(f"{WHO}: rounds, steps, tries and pool must be at least 1")
        self._pool = Pool(self.stream, self.pool, WHO)

    def check(self, tasks: Sequence[Any]) -> None:
        self._pool.check()

    def planned(self, steps: int) -> None:
        """Be told how many steps there are."""
        if 0 < steps <= (before := (self.rounds - 1) * self.steps):
            raise UsageError(
                f"{WHO}: round {self.rounds} begins after {before} steps, and there are {steps}; set train.steps above "
                "that, or fewer rounds or steps of a round"
            )

    def survey(self, step: int) -> list[Ask]:
        if self._round and (self._round == self.rounds or step < self._begun + self.steps):
            return []
        self._pool.gather()
        return [Ask(task, self.tries) for task in self._pool.tasks.values()]

    def look(self, groups: Sequence[Group], batch: Batch) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{"task": group.task.id, "responses": []} for group in groups]
        for i, (prompt, episode, verdict) in enumerate(
            zip(batch.prompt_group.tolist(), batch.episodes, batch.verdicts, strict=True)
        ):
            # On record, a response that was cut off would end where it did not.
            if verdict.passed is not None and episode.stop in ("eos", "stop"):
                noted = float(batch.rewards[i]) if bool(batch.valid[i]) else None
                entry = {"text": episode.text, "reward": float(verdict.passed), "noted": noted}
                rows[prompt]["responses"].append(entry)
        return rows

    def settle(self, step: int, rows: Sequence[dict[str, Any]]) -> str:
        self._round, self._begun, self._turn = self._round + 1, step, 0
        self.recall(rows)
        if not self._found:
            raise RunError(
                f"{WHO}: of {len(rows)} tasks none has a right and a wrong response of the policy; raise tries, "
                "rollout.max_tokens or the temperature, or take other tasks"
            )
        return (
            f"{WHO}: round {self._round} of {self.rounds} learns from the responses to {len(self._found)} of "
            f"{len(rows)} tasks, from step {step + 1} on"
        )

    def again(self) -> bool:
        """Whether the weights go back to those that RL began with, now that a round is settled."""
        return self._round > 1

    @property
    def wanting(self) -> int | None:
        """The step before which the responses of this round were noted, where they have to be recalled."""
        return self._begun if self._round and not self._found else None

    def recall(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take what was noted in this round; the checkpoint does not hold it."""
        here = set(self._pool.gather())
        self._found = {
            row["task"]: row["responses"]
            for row in rows
            if row["task"] in here and len({entry["reward"] for entry in row["responses"]}) == 2
        }

    def next(self, step: int) -> list[Ask]:
        if not self._found:
            raise RunError(f"{WHO} is asked for tasks before its round has begun; take rollout 'recorded'")
        left, asks = list(self._found), []
        for _ in range(self.prompts):
            lap, place = divmod(self._turn, len(left))
            name = left[permutation(len(left), self.seed, lap)[place]]
            task, records = self._pool.tasks[name], self._found[name]
            asks.append(Ask(replace(task, meta={**task.meta, "responses": records}), len(records)))
            self._turn += 1
        return asks

    def observe(self, groups: Sequence[Group]) -> None:
        """What is learned from is settled when a round begins."""

    def state_dict(self) -> dict[str, Any]:
        return {**self._pool.state_dict(), "round": self._round, "begun": self._begun, "turn": self._turn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pool.load_state_dict(state)
        self._found = {}
        self._round, self._begun, self._turn = state["round"], state["begun"], state["turn"]
