"""Recorded responses drawn from the whole data set, each as often as it is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.curriculum.base import Stream
from assay.curriculum.pool import Pool
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rollout.recorded import recorded
from assay.types import Ask, Group, Task

if TYPE_CHECKING:
    from assay.batch import Batch

WHO = "curriculum 'drawn'"


@part("curriculum", "drawn")
@dataclass(slots=True)
class Drawn:
    """Asks for single recorded responses of the data, with the chances that the selection gives each.

    Once the selection is ``ready``, all recorded responses of all tasks are judged and valued, without generation, and
    those with a chance of 0 are dropped for good. A step then draws prompts x group of the rest, with replacement; a
    task is asked for those of its responses that were drawn, which its ``meta["responses"]`` consists of then, one as
    often as it was drawn, and has ``meta["drawn"]``. Until then tasks are asked in the order of the stream. Rollout
    ``recorded`` answers.

    Source: priority sampling in A-LoL (arXiv 2305.14718).

    Args:
        stream, prompts, group: supplied by the run.
        select: the run's selection, or the one in it that gives the chance of every response, ``chances(batch) ->
            (N,)`` at least 0, and says by ``ready`` whether it knows yet.
        pool: tasks that the data consists of, the first different ones of the stream; all of a sized source if left
            out.
        seed: of the draws.

    Raises:
        UsageError: the selection gives no chances; before a run, a task without a recorded response, or an endless
            source without ``pool``.
        RunError: no response has a chance.
    """

    stream: Stream
    prompts: int
    group: int
    select: Any
    pool: int | None = None
    seed: int = 0
    _pool: Pool = field(init=False)
    _left: list[tuple[str, int]] = field(default_factory=list, init=False)
    _chances: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        found = [one for one in (self.select, *getattr(self.select, "members", ())) if hasattr(one, "chances")]
        if not found:
            raise UsageError(
                f"{WHO} draws by the chances that a selection gives responses, and {type(self.select).__name__} gives "
                'none; take select = "S206"'
            )
        self.select = found[0]
        self._pool = Pool(self.stream, self.pool, WHO)

    def check(self, tasks: Sequence[Task]) -> None:
        self._pool.check()
        for task in tasks:
            try:
                recorded(task)
            except RunError as error:
                raise UsageError(f"{WHO}: {error}") from None

    def survey(self, step: int) -> list[Ask]:
        if self._left or not self.select.ready:
            return []
        self._pool.gather()
        return [Ask(task, len(recorded(task))) for task in self._pool.tasks.values()]

    def look(self, groups: Sequence[Group], batch: Batch) -> list[dict[str, Any]]:
        if not len(batch):
            return []
        chances = self.select.chances(batch).tolist()
        rows: list[dict[str, Any]] = [{"task": group.task.id, "chances": {}} for group in groups]
        for prompt, episode, chance in zip(batch.prompt_group.tolist(), batch.episodes, chances, strict=True):
            if chance > 0:
                rows[prompt]["chances"][str(episode.meta["record"])] = chance
        return rows

    def settle(self, step: int, rows: Sequence[dict[str, Any]]) -> str:
        found = [((r["task"], int(record)), chance) for r in rows for record, chance in r["chances"].items()]
        if not found:
            raise RunError(
                f"{WHO}: none of the responses of {len(self._pool.tasks)} tasks is worth drawing; record better ones"
            )
        self._left, self._chances = [key for key, _ in found], [chance for _, chance in found]
        whole = sum(len(recorded(task)) for task in self._pool.tasks.values())
        return f"{WHO}: {len(found)} of {whole} recorded responses are drawn from, from step {step + 1} on"

    def next(self, step: int) -> list[Ask]:
        if not self._left:
            return [Ask(task, self.group) for task in self.stream.next(self.prompts)]
        rng, size = np.random.default_rng([self.seed, 206, step]), self.prompts * self.group
        chances = np.asarray(self._chances) / np.sum(self._chances)
        drawn: dict[str, Counter[int]] = {}
        for i in rng.choice(len(self._left), size, p=chances).tolist():
            task, record = self._left[i]
            drawn.setdefault(task, Counter())[record] += 1
        return [self._asked(self._pool.tasks[task], records) for task, records in drawn.items()]

    def _asked(self, task: Task, records: Counter[int]) -> Ask:
        own = task.meta.get("responses") or [task.solution]
        wanted = [own[record] for record, count in sorted(records.items()) for _ in range(count)]
        return Ask(replace(task, meta={**task.meta, "responses": wanted, "drawn": True}), len(wanted))

    def observe(self, groups: Sequence[Group]) -> None:
        """What is drawn is settled when the data is looked at."""

    def state_dict(self) -> dict[str, Any]:
        return {**self._pool.state_dict(), "left": [list(key) for key in self._left], "chances": list(self._chances)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pool.load_state_dict(state)
        self._left, self._chances = [(task, record) for task, record in state["left"]], list(state["chances"])
        if self.pool is None and self._left:
            # The tasks may have been changed, with leave, since: what is not there any more cannot be drawn.
            self._pool.gather()
            there = {task.id: len(recorded(task)) for task in self._pool.tasks.values()}
            kept = [
                (key, chance)
                for key, chance in zip(self._left, self._chances, strict=True)
                if key[1] < there.get(key[0], 0)
            ]
            self._left, self._chances = [key for key, _ in kept], [chance for _, chance in kept]
