"""Responses that are on record, in place of sampled ones: learning offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import RunError
from assay.registry import part
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.types import Ask, Episode, Group, Origin, Task, Verdict


@part("rollout", "recorded")
@dataclass(frozen=True, slots=True)
class Recorded:
    """Up to ``ask.n`` of the responses in ``task.meta["responses"]``, drawn without repetition; nothing is generated.

    An entry is a text, or a table with ``text``, ``reward`` in [0, 1] and, for reward ``noted``, what is ``noted`` of
    it. Where every drawn one has a reward that is its score (it passes at 1) and no verifier is asked. A task without
    such a list has ``task.solution`` alone; one without either is a user's mistake. The tokens are of origin
    ``TEACHER``, their log-probabilities unknown.

    While ``first`` is given and not ``ready``, responses are sampled instead, with ``meta["role"] == "value"``: it is
    the signal ``prompt_value``, which fits to them the value that recorded rewards are compared with.

    Args:
        sampling: how tokens of sampled responses are drawn; records of more than its ``max_tokens`` are left out.
        first: see above; ``None`` to sample nothing.

    Raises:
        RunError: a task has neither recorded responses nor a solution, a recorded reward is outside [0, 1], or no part
            of
            the method learns ``first``.
    """

    sampling: Sampling
    first: Any = None

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        if self.first is not None and not self.first.ready:
            if getattr(self.first, "head", None) is None:
                raise RunError(
                    "rollout 'recorded' waits for a value that no part of the method learns; leave out first"
                )
            groups = SingleTurn(self.sampling).collect(asks, engine, rng)
            return [
                replace(g, episodes=tuple(replace(e, meta={**e.meta, "role": "value"}) for e in g.episodes))
                for g in groups
            ]
        return [self._group(ask, engine, rng) for ask in asks]

    def _group(self, ask: Ask, engine: Engine, rng: np.random.Generator) -> Group:
        records = recorded(ask.task)
        chosen = sorted(rng.choice(len(records), min(ask.n, len(records)), replace=False).tolist())
        prompt = engine.encode(full_prompt(ask))
        episodes, verdicts = [], []
        for i in chosen:
            text, reward = records[i]
            tokens = np.asarray(engine.encode_response(text), dtype=np.int64)
            if not 0 < len(tokens) <= self.sampling.max_tokens:
                continue
            origins = np.full(len(tokens), Origin.TEACHER, dtype=np.uint8)
            mask = np.ones(len(tokens), dtype=bool)
            meta = {"role": "record", "record": i, **_noted(ask.task, i)}
            episodes.append(Episode(prompt, tokens, mask, None, text, "eos", origins=origins, meta=meta))
            verdicts.append(None if reward is None else Verdict(reward, reward >= 1))
        known = [v for v in verdicts if v is not None]
        return Group(ask, tuple(episodes), tuple(known) if len(known) == len(episodes) else ())


def _noted(task: Task, record: int) -> dict[str, Any]:
    """What is noted of a response, for its episode's ``meta``."""
    entry = (task.meta.get("responses") or [None])[record]
    return {"noted": entry["noted"]} if isinstance(entry, Mapping) and "noted" in entry else {}


def recorded(task: Task) -> list[tuple[str, float | None]]:
    """Return the recorded responses of a task, each with its reward if that is on record.

    Raises:
        RunError: there are none, or a reward is outside [0, 1].
    """
    found = task.meta.get("responses") or ([task.solution] if task.solution is not None else [])
    if not found:
        raise RunError(f"task {task.id} has no recorded response: give it meta['responses'] or a solution")
    out: list[tuple[str, float | None]] = []
    for entry in found:
        text, reward = (entry["text"], entry.get("reward")) if isinstance(entry, Mapping) else (entry, None)
        if reward is not None and not 0 <= reward <= 1:
            raise RunError(f"task {task.id}: a recorded reward of {reward:g} is outside [0, 1]; rescale them")
        out.append((str(text), None if reward is None else float(reward)))
    return out
