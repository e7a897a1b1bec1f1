"""Scores of the steps of a response: by the verifier, by a function, by a classifier of steps."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.rewards.function import load_function
from assay.signals.base import Models
from assay.signals.steps import Steps, decoder, step_texts
from assay.types import Task, Verdict


@runtime_checkable
class StepScorer(Protocol):
    """Scores the steps of many responses at once, in [-1, 1]: how sure it is that a step is right rather than wrong."""

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> Sequence[Sequence[float] | None]:
        """Return one score per step for each task and its response's steps; ``None`` where none can be told."""
        ...


@dataclass(frozen=True)
class StepScores:
    """Signal ``step_scores`` ``(N, T)``: the score of each step on the step's last token, zero on the others.

    NaN on all tokens of a response whose steps the scorer could not score. Scores and steps, not tokens, decide: a step
    that scores 0 is known from ``steps``.

    Args:
        scorer: who scores:

            - ``verdict``: the parts ``step 0``, ``step 1``, ... of the response's verdict, p in [0, 1] made 2 p - 1;
              no scores unless there is one for every step;
            - ``path/to/file.py:name``, or a function: ``score(task, steps) -> list of numbers`` or ``None``;
            - a folder that ``assay train-prm`` wrote, or one with a token classifier of two classes, see
              :class:`assay.rewards.step_models.classifier.ClassifierPRM`;
            - the folder of a run, see :class:`assay.rewards.process.implicit_prm.ImplicitPRM`;
            - any :class:`StepScorer`.
        steps: how responses are cut.

    Raises:
        UsageError: the file, function or folder does not exist.
        RunError: while scoring, not one finite number per step.
    """

    scorer: Any = "verdict"
    steps: Steps = field(default_factory=Steps)

    name = "step_scores"

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        decode = decoder(models)
        spans = [self.steps.of(episode, decode) for episode in batch.episodes]
        if self.scorer == "verdict":
            found: Sequence[Sequence[float] | None] = [
                of_verdict(v, len(s)) for v, s in zip(batch.verdicts, spans, strict=True)
            ]
        else:
            texts = [step_texts(e, s, decode) for e, s in zip(batch.episodes, spans, strict=True)]
            found = self._scorer.scores(list(zip(batch.tasks, texts, strict=True)))
        if len(found) != len(batch):
            raise RunError(
                f"the scorer of steps scored {len(found)} of {len(batch)} responses; return one row for each"
            )
        out = torch.zeros_like(batch.logprobs)
        for i, (row, parts) in enumerate(zip(found, spans, strict=True)):
            if row is None:
                out[i] = math.nan
                continue
            if len(row) != len(parts) or not all(math.isfinite(x) for x in row):
                raise RunError(
                    f"the scorer of steps returned {list(row)} for the {len(parts)} steps of row {i} (task "
                    f"{batch.tasks[i].id}); return one finite number each, or None"
                )
            for x, part in zip(row, parts, strict=True):
                out[i, part.end - 1] = x
        return out

    @cached_property
    def _scorer(self) -> StepScorer:
        return make_scorer(self.scorer)


def of_verdict(verdict: Verdict, count: int) -> list[float] | None:
    """Return 2 p - 1 for each of the verdict's parts ``step k``; ``None`` unless there is one for every step."""
    parts = [verdict.parts.get(f"step {k}") for k in range(count)]
    return None if None in parts else [2 * float(p) - 1 for p in parts if p is not None]


def make_scorer(spec: Any) -> StepScorer:
    """Return the scorer that a function, the name of one, or a folder with a scorer of steps or a run stands for.

    That of a run is the log-ratio of its policy to what it began with, see
    :class:`assay.rewards.process.implicit_prm.ImplicitPRM`.
    """
    if isinstance(spec, StepScorer):
        return spec
    if isinstance(spec, str) and ".py:" not in spec:
        from assay.rewards.process.implicit_prm import ImplicitPRM
        from assay.rewards.step_models.saved import is_prm, load_prm

        if (Path(spec).expanduser() / "config.toml").is_file() and not is_prm(spec):
            return ImplicitPRM.of_run(spec)
        made: StepScorer = load_prm(spec)
        return made
    function = load_function(spec) if isinstance(spec, str) else spec
    if not callable(function) or len(inspect.signature(function).parameters) < 2:
        raise UsageError(f"a scorer of steps is a function score(task, steps), not {spec!r}")
    return FunctionScorer(function)


@dataclass(frozen=True, slots=True)
class FunctionScorer:
    """A plain function ``score(task, steps)``, called once per response."""

    function: Callable[[Task, list[str]], Sequence[float] | None]

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        out: list[list[float] | None] = []
        for task, steps in responses:
            try:
                row = self.function(task, steps)
                out.append(None if row is None else [float(x) for x in row])
            except (Exception, SystemExit) as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
                raise RunError(f"the scorer of steps raised {reason} for a response to task {task.id}") from error
        return out
