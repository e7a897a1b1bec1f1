"""What is kept of a step's samples: the columns of the rollout store."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from assay.batch import Batch
from assay.types import Episode


def rollout_columns(step: int, batch: Batch) -> dict[str, list[Any]]:
    """Return one list of N values per column; every term of the reward is ``reward/<its name>``.

    ``reward`` and its terms are ``None`` where none could be told; ``advantage`` is the mean over learnable tokens.
    ``group`` says which prompt of the step a row is of; ``parts`` is the verdict's, a JSON object, where verdicts have
    any; ``parent`` is the task that a row's task was derived from, where some were; ``instruction`` is the
    one it was asked under, where curricula choose one. Episodes of several turns add their
    ``trajectory`` and their ``turns``, a JSON list of what is known of each.
    """
    n = len(batch)
    columns: dict[str, list[Any]] = {
        "step": [step] * n,
        "group": batch.prompt_group.tolist(),
        "task_id": [storable(t.id) for t in batch.tasks],
        "prompt": [storable(t.question) for t in batch.tasks],
        "response": [storable(e.text) for e in batch.episodes],
        "score": [v.score for v in batch.verdicts],
        "passed": [v.passed for v in batch.verdicts],
        "feedback": [storable(v.feedback) for v in batch.verdicts],
        "reward": [r if ok else None for r, ok in zip(batch.rewards.tolist(), batch.valid.tolist(), strict=True)],
        "advantage": (batch.advantages.sum(-1) / batch.lengths.clamp(min=1)).tolist(),
        "length": batch.lengths.tolist(),
        "stop": [e.stop for e in batch.episodes],
    }
    if any(v.parts for v in batch.verdicts):
        columns["parts"] = [json.dumps(dict(v.parts)) for v in batch.verdicts]
    if any(t.parent is not None for t in batch.tasks):
        columns["parent"] = [None if t.parent is None else storable(t.parent) for t in batch.tasks]
    if any("instruction_text" in t.meta for t in batch.tasks):
        columns["instruction"] = [storable(str(t.meta.get("instruction_text", ""))) for t in batch.tasks]
    if any(e.turns for e in batch.episodes):
        columns["trajectory"] = [e.trajectory for e in batch.episodes]
        columns["turns"] = [_turns(e, row) for e, row in zip(batch.episodes, batch.advantages.tolist(), strict=True)]
    for name, values in batch.reward_terms.items():
        told = zip(values.tolist(), batch.valid.tolist(), strict=True)
        columns[f"reward/{name}"] = [x if ok and not math.isnan(x) else None for x, ok in told]
    return columns


def _turns(episode: Episode, advantages: list[float]) -> str:
    """Return an episode's turns as JSON; the ``advantage`` of one is the mean over its own tokens."""
    rows = []
    for turn in episode.turns:
        own = advantages[turn.start : turn.end]
        rows.append({**asdict(turn), "advantage": sum(own) / len(own) if own else 0.0})
    # What an environment notes need not be what JSON has.
    return json.dumps(rows, default=str)


def storable(text: str) -> str:
    """Parquet strings are UTF-8; half a surrogate pair from a decoder is not."""
    return text.encode("utf-8", "replace").decode("utf-8")
