"""Which of two recorded answers is better, asked in both orders, with the right replies in place of sampled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.engines.asking import escaped, filled
from assay.engines.base import Engine, Sampling
from assay.errors import RunError
from assay.registry import part
from assay.rollout.recorded import recorded
from assay.types import Ask, Episode, Group, Origin, Task, Verdict
from assay.verify.pair_name import NAMES, TEMPLATE


@part("rollout", "pair_orders")
@dataclass(frozen=True, slots=True)
class PairOrders:
    """Two episodes of each preference: the better answer shown first, with the name of the first as response, and shown
    second, with that of the second. They are what a :class:`~assay.rewards.judges.pair_judge.PairJudge` is asked.

    A preference is a task with a better and a worse response on record, as tasks ``recorded`` have from ``prompt``,
    ``chosen`` and ``rejected``. How many responses are asked for does not matter.

    Args:
        sampling: supplied by the run; nothing is sampled.
        template, names, escape: of the judge.

    Raises:
        RunError: a task is no preference.
    """

    sampling: Sampling
    template: str = TEMPLATE
    names: tuple[str, str] = NAMES
    escape: bool = True

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return [Group(ask, self.episodes(ask.task, engine), (Verdict.right(), Verdict.right())) for ask in asks]

    def episodes(self, task: Task, engine: Engine) -> tuple[Episode, Episode]:
        found = recorded(task)
        if [reward for _, reward in found] != [1.0, 0.0]:
            raise RunError(f"task {task.id} is no preference: rollout 'pair_orders' needs prompt, chosen and rejected")
        better, worse = (escaped(text) if self.escape else text for text, _ in found)
        shown = ((better, worse), (worse, better))
        first, second = (
            self.episode(filled(self.template, question=task.question, first=a, second=b), name, engine)
            for (a, b), name in zip(shown, self.names, strict=True)
        )
        return first, second

    def episode(self, prompt: str, name: str, engine: Engine) -> Episode:
        tokens = np.asarray(engine.encode_response(name, end=False), dtype=np.int64)
        origins, mask = np.full(len(tokens), Origin.TEACHER, dtype=np.uint8), np.ones(len(tokens), dtype=bool)
        return Episode(np.asarray(engine.encode(prompt)), tokens, mask, None, name, "eos", origins=origins)
