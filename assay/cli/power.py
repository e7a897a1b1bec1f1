"""``assay power``: how much must be run to see a difference?"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, print_table
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.statistics.power import Counts, Spread

LADDERS = {"tasks": (50, 100, 200, 500, 1000, 2000), "samples": (1, 4, 16), "seeds": (1, 3, 5, 10)}
"""What is tried of each, where no number is given."""


def power(
    evaluations: Annotated[tuple[str, ...], Positional, tyro.conf.arg(metavar="[EVAL [EVAL]]")] = (),
    difference: float | None = None,
    tasks: int | None = None,
    samples: int | None = None,
    seeds: int | None = None,
    share: float = 0.5,
    correlation: float = 0.5,
    task_deviation: float = 0.1,
    seed_deviation: float = 0.0,
    same_tasks: bool = False,
    methods: int = 2,
    chance: float = 0.8,
    level: float = 0.05,
    as_json: AsJson = False,
) -> int:
    """Say how many tasks, samples and seeds it takes to see a difference of two models, or what so many would show.

    assay power --difference 0.02

    assay power evals/before evals/after --difference 0.02 --samples 4

    assay power --tasks 500 --samples 4 --seeds 5 --seed-deviation 0.02

    Both models answer the same tasks, as assay eval, assay diagnose and assay compare have them do.

    Example: assay power evals/before evals/after --difference 0.02

    Args:
        evaluations: one or two that assay eval stored, of two or more samples per task, to take the variances from:
            of two models that differ as those to be compared do, or of one of them. Without any they are assumed.
        difference: to be seen, of two shares of right samples, 0.02 for 2 points; without it, the smallest that is.
        tasks: how many; without it and with a difference, how many are needed.
        samples: of each task from each model.
        seeds: training runs of each method.
        share: assumed: of the samples are right.
        correlation: assumed: of two samples of one task; 0 if all tasks are equally hard, 1 if each is always or never
            solved.
        task_deviation: assumed unless two evaluations are given: standard deviation over tasks of the true difference.
        seed_deviation: standard deviation of a method's score from one training seed to the next; 0 asks about two
            given models, and not about the methods that made them.
        same_tasks: ask about these tasks alone, as assay compare does, and not about tasks like these.
        methods: how many are compared in pairs; the level is divided among the pairs.
        chance: that the difference is found, if there is one.
        level: chance that one is found where there is none.
        as_json: print everything as JSON.
    """
    from assay.statistics.power import detectable, needed, power_of

    if difference is not None and not 0 < difference <= 1:
        raise UsageError(f"--difference is of two shares, such as 0.02 for 2 points, not {difference:g}")
    if methods < 2 or not (0 < chance < 1 and 0 < level < 1 and 0 <= seed_deviation <= 1):
        raise UsageError("--methods are 2 or more, --chance and --level between 0 and 1, --seed-deviation from 0 to 1")
    spread, source = _spread(evaluations, share, correlation, task_deviation)
    spread = replace(spread, task=0.0 if same_tasks else spread.task, seed=2 * seed_deviation**2)
    each = level / math.comb(methods, 2)
    tried, open_ = _tried(tasks, samples, seeds, difference is not None, seed_deviation > 0)
    rows = []
    for values in itertools.product(*tried.values()):
        row: dict[str, Any] = dict(zip(tried, values, strict=True))
        if open_ is not None and difference is not None:
            row[open_] = needed(spread, difference, **{**row, open_: None}, power=chance, level=each)
        known = None not in row.values()
        row["responses"] = math.prod(row.values()) if known else None
        plan = {name: row[name] for name in tried}
        row["detectable"] = detectable(spread, **plan, power=chance, level=each) if known else None
        row["chance"] = power_of(spread, difference, **plan, level=each) if known and difference is not None else None
        rows.append(row)
    if as_json:
        print(json.dumps({"spread": asdict(spread), "source": source, "level": each, "power": chance, "rows": rows}))
        return 0
    _print(rows, spread, source, difference, each, chance)
    return 0


def _tried(
    tasks: int | None, samples: int | None, seeds: int | None, solve: bool, seeds_count: bool
) -> tuple[dict[str, tuple[int | None, ...]], str | None]:
    """Return which numbers of each are tried, and which one is to be solved for: tasks rather than seeds or samples."""
    given = {"tasks": tasks, "samples": samples, "seeds": seeds}
    if wrong := [name for name, n in given.items() if n is not None and n < 1]:
        raise UsageError(f"--{wrong[0]} is a number, 1 or more")
    # Of two given models more seeds would only be more samples.
    ladders = LADDERS if seeds_count else {**LADDERS, "seeds": (1,)}
    left = [name for name in ("tasks", *(["seeds"] if seeds_count else []), "samples") if given[name] is None]
    open_ = left[0] if left and solve else None
    return {
        name: (n,) if n is not None else (None,) if name == open_ else ladders[name] for name, n in given.items()
    }, open_


def _spread(names: tuple[str, ...], share: float, correlation: float, task_deviation: float) -> tuple[Spread, str]:
    """Return the variances, and where they are from."""
    from assay.records.evaluation import stored
    from assay.statistics.power import assumed_spread, counted_spread

    if not (0 < share < 1 and 0 <= correlation <= 1 and 0 <= task_deviation <= 1):
        raise UsageError("--share is between 0 and 1, --correlation from 0 to 1, --task-deviation from 0 to 1")
    if not names:
        said = f"assumed: {share:g} of the samples right, which correlate by {correlation:g} within a task"
        return assumed_spread(share, correlation, task_deviation**2), f"{said}; {_apart(task_deviation)}"
    if len(names) > 2:
        raise UsageError("name one stored evaluation, or two of the same tasks")
    found = []
    for name in names:
        evaluation = stored(name)
        if evaluation is None:
            raise UsageError(f"{name} is no evaluation; assay eval TARGET --samples 4 --out {name} stores one")
        ids, totals, corrects = evaluation.counts()
        found.append({t: (n, c) for t, n, c in zip(ids, totals.tolist(), corrects.tolist(), strict=True) if n > 1})
    shared = [t for t in found[0] if all(t in other for other in found)]
    if len(shared) < 2:
        raise UsageError(
            f"{' and '.join(names)}: fewer than two tasks have two or more judged samples; assay eval --samples 4"
        )
    counts: list[Counts] = [tuple(zip(*(rows[t] for t in shared), strict=True)) for rows in found]  # type: ignore[misc]
    if len(counts) == 2:
        return counted_spread(counts[0], counts[1]), f"{names[0]} and {names[1]}, {len(shared)} tasks"
    return counted_spread(counts[0], task=task_deviation**2), (
        f"{names[0]}, {len(shared)} tasks, for both models; assumed: {_apart(task_deviation)}"
    )


def _apart(deviation: float) -> str:
    return f"true differences of tasks deviate by {deviation:g}"


def _print(
    rows: list[dict[str, Any]], spread: Spread, source: str, difference: float | None, level: float, chance: float
) -> None:
    asked = "the smallest difference that is found" if difference is None else f"a difference of {abs(difference):g}"
    print(f"{asked}, {chance:.0%} of the time, at a level of {level:.3g}")
    print(f"variances: {source}")
    print(
        f"of a task's difference {spread.task:.4g}, of a pair of samples {spread.sample:.4g}, "
        f"of a pair of seeds {spread.seed:.4g}"
    )
    columns = (
        "tasks",
        "samples",
        "seeds",
        "responses of each",
        *(("detectable",) if difference is None else ("chance",)),
    )
    shown = []
    for row in rows:
        last = row["detectable"] if difference is None else row["chance"]
        counts = ["none" if row[k] is None else f"{row[k]:,}" for k in ("tasks", "samples", "seeds")]
        responses = "" if row["responses"] is None else f"{row['responses']:,}"
        shown.append((*counts, responses, "" if last is None else f"{last:.3f}"))
    print_table(columns, shown)
    if any(row["responses"] is None for row in rows):
        print("none: no number of them is enough, since what else varies is too much")
    if spread.seed and any(row["seeds"] is not None and 1 < row["seeds"] < 10 for row in rows):
        print("of fewer than ten seeds take one or two more: this is the normal approximation")
