"""Valued samples kept for a later update, as plain data that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.types import Episode, Task, Verdict

Record = dict[str, Any]
"""Tensors, numbers and strings of one sample: what losses read of it, and neither ``meta`` nor spans."""

WHOLE = ("prompt_group", "group", "trajectory", "valid", "rewards", "weights")
"""Fields of a batch with one value per sample."""
TOKENS = ("tokens", "mask", "turn", "logprobs", "advantages", "token_rewards")
"""Fields with one value per token."""


def records(batch: Batch, rows: Sequence[int]) -> list[Record]:
    """Return the samples at ``rows`` as records, whose tensors share no memory with the batch."""
    per_token = {
        name
        for held in (batch.signals, batch.reward_terms)
        for name, value in held.items()
        if value.ndim > 1 and value.shape[1] == batch.tokens.shape[1]
    }
    return [_record(batch.rows(torch.tensor([i])), per_token) for i in rows]


def restored(kept: Sequence[Record]) -> Batch:
    """Return the batch of one or more records of batches that had the same signals; groups are numbered anew."""
    width = max(len(r["tokens"]) for r in kept)
    columns: dict[str, Any] = {name: torch.stack([r[name] for r in kept]) for name in WHOLE}
    for name in TOKENS:
        columns[name] = None if kept[0][name] is None else torch.stack([_padded(r[name], width) for r in kept])
    columns["turn"] = torch.where(columns["mask"], columns["turn"], -1)
    for name in ("prompt_group", "group", "trajectory"):
        columns[name] = columns[name].unique(return_inverse=True)[1]
    for name in ("signals", "reward_terms"):
        columns[name] = {key: _joined([r[name][key] for r in kept], width) for key in kept[0][name]}
    return Batch(
        episodes=[_episode(r) for r in kept],
        tasks=[Task(r["id"], r["question"], kind=r["kind"]) for r in kept],
        verdicts=[Verdict(r["score"], r["passed"]) for r in kept],
        **columns,
    )


def _record(one: Batch, per_token: Collection[str]) -> Record:
    [episode], [task], [verdict] = one.episodes, one.tasks, one.verdicts
    out: Record = {name: getattr(one, name)[0].clone() for name in WHOLE}
    out |= {name: None if (found := getattr(one, name)) is None else found[0].clone() for name in TOKENS}
    for name in ("signals", "reward_terms"):
        # Beside each value, whether it is one per token and grows with the padding.
        out[name] = {key: (key in per_token, value[0].clone()) for key, value in getattr(one, name).items()}
    out |= {"id": task.id, "question": task.question, "kind": task.kind}
    out |= {"score": verdict.score, "passed": verdict.passed}
    out |= {"text": episode.text, "stop": episode.stop}
    for name in ("prompt", "sampled_prompt", "origins"):
        found = getattr(episode, name)
        out[name] = None if found is None else torch.from_numpy(np.array(found))
    return out


def _episode(r: Mapping[str, Any]) -> Episode:
    logprobs = None if r["logprobs"].isnan().all() else r["logprobs"].numpy().astype(np.float32)
    sampled, origins = (None if r[k] is None else r[k].numpy() for k in ("sampled_prompt", "origins"))
    return Episode(
        prompt=r["prompt"].numpy(),
        tokens=r["tokens"].numpy(),
        mask=r["mask"].numpy(),
        logprobs=logprobs,
        text=r["text"],
        stop=r["stop"],
        sampled_prompt=sampled,
        origins=origins,
    )


def _padded(row: Tensor, width: int) -> Tensor:
    out = row.new_zeros(width, *row.shape[1:])
    out[: len(row)] = row
    return out


def _joined(cells: Sequence[tuple[bool, Tensor]], width: int) -> Tensor:
    return torch.stack([_padded(value, width) if per_token else value for per_token, value in cells])
