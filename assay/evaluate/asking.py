"""Tasks asked k times each, and the responses judged: the samples of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from assay.config import RunConfig
from assay.engines.base import Engine, Request, Sampling, requests
from assay.errors import RunError, UsageError
from assay.from_file import is_reference
from assay.records.evaluation import Evaluation
from assay.records.sample import FAILED, Sample, plain_meta
from assay.registry import build, find, names
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.base import Verifier
from assay.verify.episodes import judge_episodes


class Player(Protocol):
    """Plays and judges episodes of several turns, as :class:`assay.rollout.turns.multi_turn.MultiTurn` does."""

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return a judged group per ask."""
        ...


def player_of(config: RunConfig, sampling: Sampling) -> Player | None:
    """Return what plays the tasks of a configuration, ``None`` where a response to them is one turn."""
    spec = config.method.rollout
    name = spec.get("name") if isinstance(spec, dict) else spec
    # A paper's id stands for the paper's own rollout, and none of those plays.
    if not isinstance(name, str) or not (is_reference(name) or name in names("rollout")):
        return None
    if not hasattr(find("rollout", name), "play"):
        return None
    found: Any = build("rollout", spec, sampling=sampling)
    # One around another plays if that does.
    return found if getattr(found, "plays", True) else None


class Adds(Protocol):
    """Finds out more of judged responses than the verdict, as :class:`assay.evaluate.detail.Detail` does."""

    def add(
        self, pairs: Sequence[tuple[Task, Episode]], rows: list[Sample], engine: Engine, rng: np.random.Generator
    ) -> list[Sample]:
        """Return the rows with what was found out of each."""
        ...


def evaluate(
    tasks: Sequence[Task],
    engine: Engine,
    verifier: Verifier,
    *,
    samples: int,
    sampling: Sampling,
    rng: np.random.Generator,
    label: str,
    step: int,
    chunk: int = 64,
    progress: Callable[[int, int], None] | None = None,
    player: Player | None = None,
) -> Evaluation:
    """Ask every task ``samples`` times and judge the responses.

    One seed per task is drawn before anything is generated, so that the result does not depend on ``chunk``.
    A response whose generation failed (``stop == "error"``) is an abstention.

    Args:
        tasks: with distinct ids.
        samples: responses per task.
        rng: source of the seeds; advanced by one draw per task.
        chunk: tasks per call of the engine.
        progress: called as ``progress(tasks done, tasks in all)`` after each chunk.
        player: plays and judges the episodes of several turns, in place of one response each.

    Raises:
        UsageError: no tasks, two tasks of the same id, ``samples < 1`` or ``chunk < 1``.
        RunError: the engine gave another number of responses than it was asked for.
    """
    check_tasks(tasks, samples, chunk)
    asked = requests(tasks, samples, sampling, rng)
    rows: list[Sample] = []
    for start in range(0, len(tasks), chunk):
        part = slice(start, start + chunk)
        rows += sample_tasks(tasks[part], asked[part], engine, verifier, player=player)
        if progress is not None:
            progress(min(start + chunk, len(tasks)), len(tasks))
    return Evaluation(label, step, tuple(rows))


def check_tasks(tasks: Sequence[Task], samples: int, chunk: int) -> None:
    """Raise UsageError for no tasks, two of the same id, or numbers below 1."""
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise UsageError(f"two tasks to evaluate have the id {task.id!r}; ids must be distinct")
        seen.add(task.id)
    if not tasks or samples < 1 or chunk < 1:
        raise UsageError(
            f"an evaluation needs at least one task, one sample per task and one task per chunk;"
            f" got {len(tasks)}, {samples} and {chunk}"
        )


def sample_tasks(
    tasks: Sequence[Task],
    asked: Sequence[Request],
    engine: Engine,
    verifier: Verifier,
    detail: Adds | None = None,
    rng: np.random.Generator | None = None,
    player: Player | None = None,
) -> list[Sample]:
    """Answer and judge some tasks; ``detail``, with its ``rng``, adds what it finds out of every response.

    Where there is a ``player``, it plays and judges them.

    Raises:
        RunError: the engine gave another number of responses than it was asked for.
    """
    verdicts: list[Verdict] | None = None
    if player is None:
        answers = engine.generate(asked)
    else:
        asks = [Ask(task, request.n) for task, request in zip(tasks, asked, strict=True)]
        groups = player.play(asks, [request.seed for request in asked], engine)
        answers = [list(group.episodes) for group in groups]
        verdicts = [verdict for group in groups for verdict in group.verdicts]
    if [len(a) for a in answers] != [r.n for r in asked]:
        raise RunError(f"the engine was asked for {asked[0].n} responses to each of {len(tasks)} tasks and gave others")
    pairs = [(task, episode) for task, episodes in zip(tasks, answers, strict=True) for episode in episodes]
    rows = [
        Sample(
            task_id=task.id,
            prompt=task.question,
            response=episode.text,
            score=float(verdict.score),
            passed=verdict.passed,
            feedback=_failure(episode) or verdict.feedback,
            length=int(np.count_nonzero(episode.mask)),
            stop=episode.stop,
            turns=len(episode.turns),
            calls=sum(len(turn.calls) for turn in episode.turns),
            invalid=sum(not turn.valid for turn in episode.turns),
            meta=plain_meta(task.meta),
        )
        for (task, episode), verdict in zip(pairs, verdicts or judge_episodes(verifier, pairs), strict=True)
    ]
    return rows if detail is None else detail.add(pairs, rows, engine, rng or np.random.default_rng(0))


def _failure(episode: Episode) -> str:
    """Why a response could not be had, where the engine says so; empty for one that could."""
    reason = episode.meta.get("error") if episode.stop == "error" else None
    return f"{FAILED}: {' '.join(str(reason).split())}" if reason else ""
