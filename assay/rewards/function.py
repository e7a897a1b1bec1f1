"""A plain Python function as reward, in assay's signature or TRL's."""

from __future__ import annotations

import inspect
import math
import numbers
import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.from_file import from_file
from assay.registry import part


@part("reward", "function")
class FunctionReward:
    """A user's function as reward.

    Two signatures are told apart by their parameter names:

    - ``def reward(task, response) -> float``, called once per sample;
    - TRL's ``def reward(prompts, completions, **columns) -> list[float]``, called once per batch; columns are
      ``reference``, ``task_id``, ``completion_ids`` and the keys of the tasks' ``meta``, as far as the function accepts
      them. Chat prompts come as messages and their completions as ``[{"role": "assistant", "content": ...}]``.

    ``None`` for a sample means no reward could be told: the sample leaves the update.

    A function of the second kind that raises is asked again about one row after the other, to find the one at fault.

    Args:
        function: the function, or ``"path/to/file.py:name"``. Beside the file, modules in its folder can be imported.

    Raises:
        UsageError: the file or the function does not exist, or its parameters fit neither signature.
        RunError: the function raised, or returned NaN, no number, or the wrong number of values; says for which row.
            Or it wants a column that the tasks do not have.
    """

    def __init__(self, function: Callable[..., Any] | str):
        self.function = load_function(function) if isinstance(function, str) else function
        self.name = getattr(self.function, "__name__", type(self.function).__name__)
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        self.file: str | None = getattr(code, "co_filename", None)
        self.batched, self.columns, self.wanted = self._signature()

    def _signature(self) -> tuple[bool, frozenset[str] | None, list[str]]:
        """Return whether it takes a batch, the columns it accepts (``None`` for any) and those it cannot do without."""
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            raise UsageError(f"reward function {self.name}: its parameters cannot be told; wrap it in a def") from None
        parameters = signature.parameters
        if "completions" in parameters:
            free = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
            named = {k: p for k, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
            needed = [k for k, p in named.items() if p.default is p.empty and k not in ("prompts", "completions")]
            return True, None if free else frozenset(named), needed
        try:
            signature.bind(None, "")
        except TypeError:
            raise UsageError(
                f"reward function {self.name}{signature} fits neither reward(task, response) nor "
                "reward(prompts, completions, **columns)"
            ) from None
        return False, frozenset(), []

    def __call__(self, batch: Batch) -> Reward:
        values = self._batched(batch) if self.batched else self._one_by_one(batch)
        checked = [self._number(v, i, batch) for i, v in enumerate(values)]
        valid = torch.tensor([v is not None for v in checked], dtype=torch.bool)
        rewards = torch.tensor([0.0 if v is None else v for v in checked], dtype=batch.rewards.dtype)
        return Reward(rewards, valid=valid, terms={self.name: rewards})

    def _one_by_one(self, batch: Batch) -> list[Any]:
        values = []
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            try:
                values.append(self.function(task, episode.text))
            except (Exception, SystemExit) as error:
                raise RunError(self._blame(error, i, batch)) from error
        return values

    def _batched(self, batch: Batch) -> list[Any]:
        chat = [not isinstance(t.prompt, str) for t in batch.tasks]
        completions = [
            [{"role": "assistant", "content": e.text}] if c else e.text
            for c, e in zip(chat, batch.episodes, strict=True)
        ]
        prompts = [list(t.prompt) if c else t.prompt for c, t in zip(chat, batch.tasks, strict=True)]
        columns: dict[str, list[Any]] = {
            "reference": [t.reference for t in batch.tasks],
            "task_id": [t.id for t in batch.tasks],
            "completion_ids": [e.tokens.tolist() for e in batch.episodes],
        }
        for key in dict.fromkeys(k for t in batch.tasks for k in t.meta):
            columns.setdefault(key, [t.meta.get(key) for t in batch.tasks])
        if missing := [name for name in self.wanted if name not in columns]:
            raise RunError(
                f"reward function {self.name} wants the column {missing[0]!r}, which tasks do not have; they have "
                f"{', '.join(columns)}"
            )
        columns |= {"prompts": prompts, "completions": completions}
        if self.columns is not None:
            columns = {k: v for k, v in columns.items() if k in self.columns}
        try:
            values = self.function(**columns)
        except (Exception, SystemExit) as error:
            raise RunError(self._blame_batch(error, columns, batch)) from error
        if isinstance(values, torch.Tensor):
            values = values.tolist()
        if not hasattr(values, "__len__") or isinstance(values, Mapping | Set | str) or len(values) != len(batch):
            got = f"{len(values)} values" if isinstance(values, Sequence | np.ndarray) else f"a {type(values).__name__}"
            raise RunError(
                f"reward function {self.name} returned {got} for {len(batch)} completions; return one number each"
            )
        return list(values)

    def _number(self, value: Any, row: int, batch: Batch) -> float | None:
        if value is None:
            return None
        if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
            value = value.item()
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise RunError(
                f"reward function {self.name} returned {value!r} for row {row} (task {batch.tasks[row].id}, response "
                f"{batch.episodes[row].text[:60]!r}); return a finite number, or None when none can be told"
            )
        return float(value)

    def _blame_batch(self, error: BaseException, columns: Mapping[str, list[Any]], batch: Batch) -> str:
        """Blame the first row that the function raises for when it is asked about that row alone."""
        for row in range(len(batch)):
            try:
                self.function(**{k: v[row : row + 1] for k, v in columns.items()})
            except (Exception, SystemExit) as again:
                return self._blame(again, row, batch)
        return (
            f"reward function {self.name} raised {_line(error)} for {len(batch)} completions together, for none alone"
        )

    def _blame(self, error: BaseException, row: int, batch: Batch) -> str:
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == self.file]
        where = f" at {Path(self.file).name}:{lines[-1].lineno}" if lines and self.file else ""
        return (
            f"reward function {self.name} raised {_line(error)}{where} for row {row} "
            f"(task {batch.tasks[row].id}, response {batch.episodes[row].text[:60]!r})"
        )


def load_function(reference: str) -> Callable[..., Any]:
    """Return the function that ``"path/to/file.py:name"`` names."""
    found: Callable[..., Any] = from_file(reference, "reward function")
    return found


def _line(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
