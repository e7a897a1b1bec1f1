"""The procedural data sets of reasoning-gym, by name."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.errors import RunError, UsageError, nearest
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

CHUNK = 256
"""Items generated from one derived seed. Part of what defines item i: some data sets depend on their own size."""

UNSTABLE = frozenset(
    {
        "codeio",
        "intermediate_integration",
        "isomorphic_strings",
        "knight_swap",
        "list_functions",
        "polynomial_multiplication",
        "ransom_note",
        "word_ladder",
    }
)
"""Data sets whose items also depend on string hashes or on global generators; found by comparing processes."""

UNSTABLE_CHUNK = 64

PLAIN_SUM = re.compile(r"\d+( [+-] \d+)*")


def running_totals(metadata: Mapping[str, Any]) -> list[str]:
    """Return the totals from left to right: ``4-11=-7``, ``-7+23=16`` of ``4 - 11 + 23``.

    Raises:
        UsageError: there is more in the expression than whole numbers, + and -.
    """
    expression = metadata["expression"]
    if not PLAIN_SUM.fullmatch(expression):
        raise UsageError(
            f"how {expression!r} is worked is not known; have sums alone, config = {{operators = ['+', '-'], "
            "allow_parentheses = false, allow_negation = false}"
        )
    first, *rest = expression.split()
    total, steps = int(first), []
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        after = total + int(term) if sign == "+" else total - int(term)
        steps.append(f"{total}{sign}{term}={after}")
        total = after
    return steps


WORK: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "basic_arithmetic": running_totals,
    "chain_sum": running_totals,
}
"""The steps without the answer, from an entry's metadata, of data sets whose solutions can show them."""


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
        scratchpad: share of the solutions that show their steps, one per line before the answer, of the data sets in
            :data:`WORK`. With ``plain`` the verifier has to read the last line alone,
            ``{name = "gym", fallback = "line"}``.

    Raises:
        UsageError: reasoning-gym is not installed, unknown data set or option, or a value the data set refuses; steps
            are asked for that are not known.
    """

    dataset: str
    size: int | None = None
    seed: int = 0
    style: Literal["answer", "plain"] = "answer"
    config: dict[str, Any] = field(default_factory=dict)
    scratchpad: float = 0.0

    def __post_init__(self) -> None:
        check_seed("tasks 'gym'", self.seed)
        if self.size is not None and self.size < 1:
            raise UsageError(f"tasks 'gym': size {self.size} must be at least 1, or left out for an endless source")
        check_config(self.dataset, self.config)
        if not 0 <= self.scratchpad <= 1:
            raise UsageError(f"tasks 'gym': scratchpad {self.scratchpad} must be in [0, 1]")
        if self.scratchpad and self.dataset not in WORK:
            raise UsageError(f"tasks 'gym': how {self.dataset!r} is worked is known of {', '.join(WORK)} alone")
        _create(self.dataset, self._options(0))

    def __getitem__(self, index: int) -> Task:
        chunk, offset = divmod(check_index(index, self.size), self._chunk_size)
        entry = self._entry(chunk, offset)
        # Where an item came from is not part of it: the same question must look the same wherever it turns up.
        metadata = {k: v for k, v in entry["metadata"].items() if k not in ("source_dataset", "source_index")}
        answer = entry.get("answer")
        tagged = self.style == "answer"
        shown = self.scratchpad and generator(self.seed, index).random() < self.scratchpad
        steps = [f"{step}\n" for step in WORK[self.dataset](metadata)] if shown else []
        return Task(
            id=f"{self.dataset}/{self.seed}/{index}",
            prompt=entry["question"] + ("\n\nPut the final answer between <answer> and </answer>." if tagged else ""),
            reference={"dataset": self.dataset, "config": self.config, "entry": {**entry, "metadata": metadata}},
            kind="gym",
            solution=None
            if answer is None
            else "".join([*steps, f"<answer>{answer}</answer>" if tagged else str(answer)]),
            meta={"source": "gym", "dataset": self.dataset, "difficulty": metadata.get("difficulty")},
        )

    def _entry(self, chunk: int, offset: int) -> dict[str, Any]:
        items = _items(self.dataset, self._options(chunk))
        try:
            return items[offset]
        except Exception as error:
            # Not every data set checks its options; some fail only when they draw.
            raise UsageError(
                f"reasoning-gym data set {self.dataset!r} cannot generate with the config {self.config}: {error}"
            ) from error

    @property
    def _chunk_size(self) -> int:
        return UNSTABLE_CHUNK if self.dataset in UNSTABLE else CHUNK

    def _options(self, chunk: int) -> str:
        # reasoning-gym draws item i from seed + i, so neighbouring seeds would share all items but one.
        derived = int(np.random.SeedSequence([self.seed, chunk]).generate_state(1)[0])
        return json.dumps({**self.config, "seed": derived, "size": self._chunk_size}, sort_keys=True)


def _create(name: str, options: str) -> Any:
    from reasoning_gym.factory import create_dataset

    try:
        return create_dataset(name, **json.loads(options))
    except Exception as error:
        raise UsageError(f"reasoning-gym data set {name!r} refuses the options {options}: {error}") from error


@functools.lru_cache(maxsize=32)
def _items(name: str, options: str) -> Sequence[dict[str, Any]]:
    return _generate_apart(name, json.loads(options)) if name in UNSTABLE else _create(name, options)


_GENERATE = """
import pickle, random, sys
import numpy
from reasoning_gym.factory import create_dataset
name, options = pickle.load(sys.stdin.buffer)
out, sys.stdout = sys.stdout.buffer, sys.stderr
random.seed(options["seed"])
numpy.random.seed(options["seed"])
dataset = create_dataset(name, **options)
out.write(pickle.dumps([dataset[i] for i in range(options["size"])]))
"""


def _generate_apart(name: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Generate a chunk from first to last in a process whose hidden randomness is fixed."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", _GENERATE],
        input=pickle.dumps((name, options)),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise RunError(f"reasoning-gym data set {name!r} failed to generate with {options}: {reason}")
    return pickle.loads(done.stdout)


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
