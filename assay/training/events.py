"""Who is told of what happens in a run: callbacks, and loggers beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.batch import Batch
from assay.config import RunConfig
from assay.errors import AssayError, RunError, UsageError, nearest
from assay.loggers.background import Background
from assay.loggers.base import About
from assay.records.evaluation import Evaluation
from assay.records.rollout_table import rollout_columns
from assay.registry import build
from assay.training.callbacks import Callback, Running

EVENTS = [name for name in vars(Callback) if name.startswith("on_")]
LONGEST = 10_000
"""Characters of a text in a table of rollouts."""


class Events:
    """Tells callbacks, in their order, and loggers. Without either it does nothing.

    Args:
        callbacks: see :class:`assay.training.callbacks.Callback`.
        loggers: by name.
        say: prints a line.
    """

    def __init__(
        self,
        callbacks: Sequence[Any] = (),
        loggers: Mapping[str, Any] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ):
        self.callbacks, self.say = list(callbacks), say
        self.named = dict(loggers or {})
        self.loggers: list[Background] = []
        self.run: Running | None = None
        self._last: Path | None = None

    def taken(self) -> bool:
        """Whether a callback asked for the end of the stage, which is forgotten by that."""
        if self.run is None or self.run.stopped is None:
            return False
        self.run.stopped = None
        return True

    def start(self, run: Running, id_: str) -> None:
        """The run begins, or goes on."""
        if not (self.callbacks or self.named):
            return
        self.run, self._last = run, None
        about = About(id_, run.folder, run.config.model_dump(mode="json"))
        for name, logger in self.named.items():
            self.loggers.append(Background(name, logger, self.say))
            self.loggers[-1].start(about)
        self._call("on_start")

    def step(self, metrics: Mapping[str, float]) -> None:
        """A step is done and has these metrics."""
        if self.run is None:
            return
        for logger in self.loggers:
            logger.metrics(self.run.stage, self.run.step, metrics)
        self._call("on_step", metrics)

    def rollouts(self, batch: Batch) -> None:
        """An RL step has learned from ``batch``."""
        if self.run is None or not len(batch):
            return
        rows = max((logger.logger.rows for logger in self.loggers), default=0)
        if rows:
            table = list(sampled(self.run.step, batch, rows))
            for logger in self.loggers:
                if logger.logger.rows:
                    logger.table("rollouts", self.run.step, table[: logger.logger.rows])
        self._call("on_rollouts", batch)

    def evaluated(self, evaluation: Evaluation) -> None:
        if self.run is None:
            return
        for logger in self.loggers:
            logger.metrics("eval", evaluation.step, evaluation.metrics())
        self._call("on_evaluation", evaluation)

    def saved(self, folder: Path) -> None:
        """A checkpoint is in ``folder``, perhaps for longer."""
        if self.run is not None and folder != self._last:
            self._last = folder
            self._call("on_checkpoint", folder)

    def end(self) -> None:
        """The run ends, one way or another."""
        try:
            self._call("on_end")
        finally:
            for logger in self.loggers:
                logger.close()
            self.loggers = []

    def _call(self, event: str, *arguments: Any) -> None:
        if self.run is None:
            return
        for callback in self.callbacks:
            before = self.run.stopped
            with _named(callback, event):
                getattr(callback, event, lambda *_: None)(self.run, *arguments)
            if before is None and self.run.stopped is not None:
                self.say(f"{self.run.stage} ends at step {self.run.step}: {self.run.stopped}")


@contextmanager
def _named(callback: Any, event: str) -> Iterator[None]:
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise RunError(f"callback {type(callback).__name__}.{event} raised {type(error).__name__}: {said}") from error


def sampled(step: int, batch: Batch, most: int) -> Iterator[dict[str, Any]]:
    """Yield at most ``most`` rows of a batch, of as many prompts as can be: what was asked, said, judged and earned."""
    columns = rollout_columns(step, batch)
    kept = ["step", "group", "prompt", "response", "reward", "advantage", "passed", "feedback", "length", "stop"]
    kept += [name for name in columns if name.startswith("reward/") and len(batch.reward_terms) > 1]
    seen: dict[int, int] = {}
    order = []
    for row, group in enumerate(columns["group"]):
        order.append((seen.get(group, 0), row))
        seen[group] = seen.get(group, 0) + 1
    rows = sorted(row for _, row in sorted(order)[:most])
    for row in rows:
        found = {name: columns[name][row] for name in kept}
        yield {k: v[:LONGEST] if isinstance(v, str) else v for k, v in found.items()}


def make_events(
    config: RunConfig,
    callbacks: Iterable[Any],
    loggers: Iterable[Any],
    say: Callable[[str], None],
) -> Events:
    """Make what a configuration names, with what came as Python objects after it.

    Raises:
        UsageError: an unknown part or option, a library that is not installed, or an object that is none.
    """
    made = [build("callback", spec) for spec in config.run.callbacks] + list(callbacks)
    for callback in made:
        if not any(callable(getattr(callback, event, None)) for event in EVENTS):
            raise UsageError(f"callback {type(callback).__name__} has none of {', '.join(EVENTS)}")
        for name in dir(callback):
            if name.startswith("on_") and name not in EVENTS and callable(getattr(callback, name)):
                raise UsageError(f"callback {type(callback).__name__}: nothing calls {name}{nearest(name, EVENTS)}")
        getattr(callback, "check", lambda _: None)(config)
    named: dict[str, Any] = {}
    for spec in [*config.run.loggers, *loggers]:
        logger = build("logger", spec)
        if missing := [m for m in ("start", "metrics", "table", "close") if not callable(getattr(logger, m, None))]:
            raise UsageError(f"logger {type(logger).__name__} has no {', '.join(missing)}; see docs/loggers.md")
        rows = getattr(logger, "rows", None)
        if not isinstance(rows, int) or rows < 0:
            raise UsageError(
                f"logger {type(logger).__name__}: rows = {rows!r}: how many responses a table has, 0 or more"
            )
        name = _name(spec, logger)
        named[name if name not in named else f"{name} {len(named) + 1}"] = logger
    return Events(made, named, say)


def _name(spec: Any, logger: Any) -> str:
    found = spec if isinstance(spec, str) else spec.get("name") if isinstance(spec, Mapping) else type(logger).__name__
    return str(found).rpartition(":")[2]
