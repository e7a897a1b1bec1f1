"""The same models, tasks and budget under different harnesses: what each of the two brings, and both together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine
from assay.errors import RunError, UsageError
from assay.evaluate.failure_class import failure_class
from assay.evaluate.process_judge import UNASKED, ProcessJudge, combined
from assay.rollout.turns.harness.rollout import Harness
from assay.statistics.intervals import Interval, mean_interval
from assay.statistics.two_way import Effects, effects_over_tasks
from assay.types import Ask, Task

SCHEMA = "assay/harnesses/1"
Measure = Literal["combined", "outcome", "process", "passed"]


@dataclass(frozen=True, slots=True)
class Run:
    """One task done once by a model under a harness.

    Attributes:
        model, harness, task: by name.
        completed: it came to an end that could be judged; else nothing of it but what it took counts.
        passed: all checks pass.
        outcome: sum of the weights of the checks that pass, in [0, 1].
        process: how it was done, in [0, 1]; 1 where nobody judged that.
        judged: whether a judge did.
        combined: outcome * process.
        requests: made of the model; ``refused`` ones among them.
        read, written: tokens.
        seconds: of the program.
        failure: of :data:`~assay.evaluate.failure_class.CLASSES`; empty for none.
        feedback: what the checks found, or why it was not judged.
    """

    model: str
    harness: str
    task: str
    completed: bool
    passed: bool
    outcome: float
    process: float
    judged: bool
    combined: float
    requests: int
    refused: int
    read: int
    written: int
    seconds: float
    failure: str = ""
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class HarnessComparison:
    """Every model under every harness.

    Attributes:
        models, harnesses: in the order asked.
        runs: of them all.
    """

    models: tuple[str, ...]
    harnesses: tuple[str, ...]
    runs: tuple[Run, ...]

    def cell(self, model: str, harness: str) -> list[Run]:
        return [r for r in self.runs if (r.model, r.harness) == (model, harness)]

    def rows(self) -> list[dict[str, Any]]:
        """Return what each model under each harness came to.

        ``completion``: share of runs that could be judged; ``outcome``, ``process``, ``combined``, ``passed``: means of
        those, with 95 % intervals over tasks; ``judged``: share of them whose process a judge scored; means of what a
        run took: ``requests``, ``read``, ``written``, ``seconds``; ``failures``: runs of each class.
        """
        out = []
        for model in self.models:
            for harness in self.harnesses:
                runs = self.cell(model, harness)
                done = [r for r in runs if r.completed]
                means = {m: _interval(_by_task(done, m)) for m in ("outcome", "process", "combined", "passed")}
                took = {k: float(np.mean([getattr(r, k) for r in runs])) for k in ("requests", "refused", "read")}
                took |= {k: float(np.mean([getattr(r, k) for r in runs])) for k in ("written", "seconds")}
                out.append(
                    {
                        "model": model,
                        "harness": harness,
                        "runs": len(runs),
                        "completion": len(done) / len(runs),
                        **{name: None if found is None else asdict(found) for name, found in means.items()},
                        "judged": sum(r.judged for r in done) / len(done) if done else None,
                        **took,
                        "failures": dict(Counter(r.failure for r in done if r.failure).most_common()),
                    }
                )
        return out

    def effects(self, measure: Measure = "combined") -> Effects | None:
        """Take the table of models and harnesses apart, over the tasks that every one of them has a judged run of.

        ``None`` where there are fewer than two such tasks.
        """
        cells = [
            [_by_task([r for r in self.cell(m, h) if r.completed], measure) for h in self.harnesses]
            for m in self.models
        ]
        shared = set.intersection(*(set(cell) for row in cells for cell in row))
        tasks = [t for t in dict.fromkeys(r.task for r in self.runs) if t in shared]
        if len(tasks) < 2:
            return None
        return effects_over_tasks([[[cell[t] for t in tasks] for cell in row] for row in cells])

    def document(self) -> dict[str, Any]:
        """Return all of it in numbers: rows, effects, and every run."""
        found = {m: self.effects(m) for m in ("combined", "outcome")}
        return {
            "schema": SCHEMA,
            "models": list(self.models),
            "harnesses": list(self.harnesses),
            "rows": self.rows(),
            "effects": {m: None if e is None else _plain(e) for m, e in found.items()},
            "runs": [asdict(r) for r in self.runs],
        }

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> HarnessComparison:
        """Return the comparison that :meth:`document` is of; raise RunError for anything else."""
        try:
            if data["schema"] != SCHEMA:
                raise KeyError(data["schema"])
            return cls(tuple(data["models"]), tuple(data["harnesses"]), tuple(Run(**r) for r in data["runs"]))
        except (KeyError, TypeError) as error:
            raise RunError(f"this is no comparison of harnesses ({SCHEMA}): {error}") from None


Kept = Callable[[str, str, Callable[[], list[Run]]], list[Run]]
"""Given a model, a harness and what makes their runs, return these: perhaps those that are stored already."""


def compare_harnesses(
    tasks: Sequence[Task],
    models: Mapping[str, Callable[[], Engine]],
    harnesses: Mapping[str, Harness],
    *,
    judge: ProcessJudge | None = None,
    samples: int = 1,
    seed: int = 0,
    chunk: int = 16,
    progress: Callable[[int, int], None] | None = None,
    kept: Kept = lambda model, harness, make: make(),
) -> HarnessComparison:
    """Have every model do every task under every harness, with the same seeds.

    Args:
        tasks: with distinct ids. One whose ``meta["by_reply"]`` is true is judged by its reply
            (:func:`~assay.evaluate.process_judge.combined`).
        models: by name, each with what opens its engine, when its turn comes.
        harnesses: by name; made with ``trace = True`` where there is a judge.
        judge: scores how work was done; without one that counts as 1.
        samples: runs of each task.
        seed: of all draws.
        chunk: tasks at a time.
        progress: called as ``progress(done, in all)``.
        kept: see :data:`Kept`.

    Raises:
        UsageError: nothing to compare, or two tasks of the same id.
    """
    if not tasks or not models or not harnesses or min(samples, chunk) < 1:
        raise UsageError("a comparison of harnesses needs at least one task, one model, one harness and one sample")
    if len({t.id for t in tasks}) < len(tasks):
        raise UsageError("two tasks have the same id; ids must be distinct")
    seeds = np.random.default_rng([seed, 171]).integers(2**63, size=len(tasks)).tolist()
    runs: list[Run] = []
    cells = 0

    def made(model: str, harness: str, engine: Engine) -> list[Run]:
        out = []
        for start in range(0, len(tasks), chunk):
            asks = [Ask(task, samples) for task in tasks[start : start + chunk]]
            out += _runs(model, harness, asks, seeds[start : start + chunk], harnesses[harness], engine, judge)
            if progress is not None:
                here = min(start + chunk, len(tasks))
                progress(cells * len(tasks) + here, len(models) * len(harnesses) * len(tasks))
        return out

    for model, opened in models.items():
        with _Lazy(opened) as engine:
            for harness in harnesses:
                runs += kept(model, harness, lambda m=model, h=harness, e=engine: made(m, h, e.get()))  # type: ignore[misc]
                cells += 1
    return HarnessComparison(tuple(models), tuple(harnesses), tuple(runs))


class _Lazy:
    """An engine that is opened when it is first wanted, and closed in the end if it was."""

    def __init__(self, opened: Callable[[], Engine]):
        self.opened = opened
        self.engine: Engine | None = None

    def get(self) -> Engine:
        self.engine = self.opened() if self.engine is None else self.engine
        return self.engine

    def __enter__(self) -> _Lazy:
        return self

    def __exit__(self, *_: Any) -> None:
        if callable(close := getattr(self.engine, "close", None)):
            close()


def _runs(
    model: str,
    harness: str,
    asks: Sequence[Ask],
    seeds: Sequence[int],
    rollout: Harness,
    engine: Engine,
    judge: ProcessJudge | None,
) -> list[Run]:
    groups = rollout.play(asks, seeds, engine)
    played = [(g.task, e, v) for g in groups for e, v in zip(g.episodes, g.verdicts, strict=True)]
    traces = [e.meta.get("trace", ()) for _, e, _ in played]
    found = [UNASKED] * len(played)
    if judge is not None:
        found = judge([(task.question, trace) for (task, *_), trace in zip(played, traces, strict=True)])
    out = []
    for (task, e, verdict), trace, process in zip(played, traces, found, strict=True):
        outcome, how, both = combined(verdict.score, process, bool(task.meta.get("by_reply")))
        out.append(
            Run(
                model=model,
                harness=harness,
                task=task.id,
                completed=verdict.passed is not None,
                passed=verdict.passed is True,
                outcome=outcome,
                process=how,
                judged=process.scores is not None,
                combined=both,
                **{name: int(e.meta[name]) for name in ("requests", "refused", "read", "written")},
                seconds=float(e.meta["seconds"]),
                failure=failure_class(verdict, e.stop, e.text, trace, e.meta),
                feedback="; ".join(filter(None, [verdict.feedback, process.reason if judge is not None else ""])),
            )
        )
    return out


def _by_task(runs: Sequence[Run], measure: str) -> dict[str, float]:
    """Return the mean of each task."""
    values: dict[str, list[float]] = {}
    for run in runs:
        values.setdefault(run.task, []).append(float(getattr(run, measure)))
    return {task: float(np.mean(found)) for task, found in values.items()}


def _interval(values: Mapping[str, float]) -> Interval | None:
    return mean_interval(list(values.values()), bounds=(0, 1)) if values else None


def _plain(effects: Effects) -> dict[str, Any]:
    found = effects.found
    return {
        "tasks": effects.tasks,
        "grand": found.grand,
        "models": [asdict(i) for i in effects.rows],
        "harnesses": [asdict(i) for i in effects.columns],
        "interaction": [[asdict(i) for i in row] for row in effects.interaction],
        "spread": [asdict(i) for i in effects.spread],
        "squares": {
            "models": found.squares["rows"],
            "harnesses": found.squares["columns"],
            "interaction": found.squares["interaction"],
            "total": found.total,
        },
    }
