"""The procedural data sets of reasoning-gym, by name."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError, nearest
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed
from assay.types import Task

CHUNK = 256
"""Items generated from one derived seed. Part of what defines item i: some data sets depend on their own size."""


@part("tasks", "gym")
@dataclass(frozen=True, slots=True)
class Gym:
    """A reasoning-gym data set, endless unless ``size`` is given, judged by its own scorer (kind ``gym``).

    Args:
        dataset: name of the data set, e.g. ``chain_sum``; see :func:`dataset_names`.
        size: number of tasks, ``None`` for endless; item i does not depend on it.
        seed: >= 0; different seeds share no items except by chance.
        style: ``answer`` asks for the answer between ``<answer>`` tags, ``plain`` leaves the question as it is.
        config: the data set's own options, without seed and size.

    Raises:
        UsageError: reasoning-gym is not installed, unknown data set or option, or a value the data set refuses.
    """

    dataset: str
    size: int | None = None
    seed: int = 0
    style: Literal["answer", "plain"] = "answer"
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_seed("tasks 'gym'", self.seed)
        if self.size is not None and self.size < 1:
            raise UsageError(f"tasks 'gym': size {self.size} must be at least 1, or left out for an endless source")
        check_config(self.dataset, self.config)
        self._chunk(0)

    def __getitem__(self, index: int) -> Task:
        chunk, offset = divmod(check_index(index, self.size), CHUNK)
        entry = self._chunk(chunk)[offset]
        # Where an item came from is not part of it: the same question must look the same wherever it turns up.
        metadata = {k: v for k, v in entry["metadata"].items() if k not in ("source_dataset", "source_index")}
        answer = entry.get("answer")
        tagged = self.style == "answer"
        return Task(
            id=f"{self.dataset}/{self.seed}/{index}",
            prompt=entry["question"] + ("\n\nPut the final answer between <answer> and </answer>." if tagged else ""),
            reference={"dataset": self.dataset, "config": self.config, "entry": {**entry, "metadata": metadata}},
            kind="gym",
            solution=None if answer is None else f"<answer>{answer}</answer>" if tagged else str(answer),
            meta={"source": "gym", "dataset": self.dataset, "difficulty": metadata.get("difficulty")},
        )

    def _chunk(self, number: int) -> Any:
        return _dataset(self.dataset, json.dumps(self.config, sort_keys=True), self.seed, number)


@functools.lru_cache(maxsize=32)
def _dataset(name: str, config: str, seed: int, chunk: int) -> Any:
    from reasoning_gym.factory import create_dataset

    # reasoning-gym draws item i from seed + i, so neighbouring seeds would share all items but one.
    derived = int(np.random.SeedSequence([seed, chunk]).generate_state(1)[0])
    try:
        return create_dataset(name, **{**json.loads(config), "seed": derived, "size": CHUNK})
    except Exception as error:
        raise UsageError(f"reasoning-gym data set {name!r} refuses its config {config}: {error}") from error


def dataset_names() -> list[str]:
    """Return the names of reasoning-gym's data sets; raise UsageError if it is not installed."""
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise UsageError(f"tasks 'gym' needs reasoning-gym: pip install assay[gym] ({error})") from None
    # A mixture of data sets whose weights and seeds would hide inside one; the `mixture` source does this in the open.
    return sorted(set(DATASETS) - {"composite"})


def check_config(name: str, config: Mapping[str, Any]) -> None:
    """Raise UsageError for an unknown data set, an unknown option, or options that cannot be written as JSON."""
    known = dataset_names()
    if name not in known:
        hint = "; use the tasks part 'mixture' instead" if name == "composite" else nearest(name, known)
        raise UsageError(f"reasoning-gym has no data set {name!r}{hint}")
    from reasoning_gym.factory import DATASETS

    options = {f.name for f in dataclasses.fields(DATASETS[name][1])} - {"seed", "size"}
    for key in config:
        if key in ("seed", "size"):
            raise UsageError(f"reasoning-gym data set {name!r}: give {key} beside config, not in it")
        if key not in options:
            raise UsageError(f"reasoning-gym data set {name!r} has no option {key!r}{nearest(key, options)}")
    try:
        json.dumps(config)
    except (TypeError, ValueError) as error:
        raise UsageError(f"reasoning-gym data set {name!r}: config must be plain data: {error}") from None
