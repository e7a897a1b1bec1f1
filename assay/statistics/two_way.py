"""A table of two factors: what each adds by itself, what they add together, and how sure that is over tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.errors import UsageError
from assay.statistics.intervals import Interval

Row = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TwoWay:
    """A table ``(rows, columns)`` taken apart: ``table[i, j] = grand + rows[i] + columns[j] + interaction[i, j]``.

    Attributes:
        grand: mean of all cells.
        rows, columns: main effects; each sums to 0.
        interaction: ``(rows, columns)``, what is left; every row and column of it sums to 0.
        squares: sums of squares over the cells of ``rows``, ``columns`` and ``interaction``; they sum to ``total``.
        spread: of each row, its largest less its smallest cell.
    """

    grand: float
    rows: Row
    columns: Row
    interaction: Row
    squares: dict[str, float]
    total: float
    spread: Row


def two_way(table: ArrayLike) -> TwoWay:
    """Take a table with one value in each cell apart, all cells weighing the same.

        grand = mean_ij x_ij;  row_i = mean_j x_ij - grand;  column_j = mean_i x_ij - grand
        interaction_ij = x_ij - grand - row_i - column_j
        SS_rows = J sum_i row_i^2;  SS_columns = I sum_j column_j^2;  SS_interaction = sum_ij interaction_ij^2

    Args:
        table: ``(I, J)``, finite.

    Raises:
        UsageError: no table of numbers.
    """
    x = np.asarray(table, dtype=np.float64)
    if x.ndim != 2 or 0 in x.shape or not np.isfinite(x).all():
        raise UsageError(f"a two-way table has a number in every cell, not shape {x.shape} with gaps")
    grand = x.mean()
    rows, columns = x.mean(1) - grand, x.mean(0) - grand
    rest = x - grand - rows[:, None] - columns
    squares = {
        "rows": x.shape[1] * float(rows @ rows),
        "columns": x.shape[0] * float(columns @ columns),
        "interaction": float((rest * rest).sum()),
    }
    return TwoWay(float(grand), rows, columns, rest, squares, float(((x - grand) ** 2).sum()), np.ptp(x, axis=1))


@dataclass(frozen=True, slots=True)
class Effects:
    """A table of means over tasks, taken apart, and 95% intervals of its parts from a bootstrap over tasks.

    Attributes:
        found: of the means.
        rows, columns: an interval of each main effect.
        interaction: of each cell, a row of them for each row.
        spread: of each row. It is never negative, so that noise alone makes it positive: compare intervals of effects.
        tasks: that every cell has.
    """

    found: TwoWay
    rows: tuple[Interval, ...]
    columns: tuple[Interval, ...]
    interaction: tuple[tuple[Interval, ...], ...]
    spread: tuple[Interval, ...]
    tasks: int


def effects_over_tasks(values: ArrayLike, *, resamples: int = 2000, confidence: float = 0.95, seed: int = 0) -> Effects:
    """Take the means over tasks apart (:func:`two_way`), with percentile intervals from resampled tasks.

    A task is drawn with its values in all cells, so that what tasks have in common, easy or hard, does not widen the
    intervals of effects.

    Args:
        values: ``(rows, columns, tasks)``, one value per cell and task.
        resamples, seed: of the bootstrap.
        confidence: coverage.

    Raises:
        UsageError: fewer than two tasks, or a value that is missing.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 3 or x.shape[2] < 2 or not np.isfinite(x).all():
        raise UsageError(f"effects over tasks need two or more tasks with a value in every cell, not shape {x.shape}")
    tasks = x.shape[2]
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=resamples) / tasks
    drawn = np.einsum("ijt,bt->bij", x, weights)
    grand = drawn.mean((1, 2))
    rows, columns = drawn.mean(2) - grand[:, None], drawn.mean(1) - grand[:, None]
    rest = drawn - grand[:, None, None] - rows[:, :, None] - columns[:, None, :]
    found = two_way(x.mean(2))
    tail = (1 - confidence) / 2

    def intervals(value: Row, draws: Row) -> tuple[Interval, ...]:
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
        return tuple(map(Interval, value.tolist(), low.tolist(), high.tolist()))

    return Effects(
        found,
        intervals(found.rows, rows),
        intervals(found.columns, columns),
        tuple(intervals(found.interaction[i], rest[:, i]) for i in range(len(found.rows))),
        intervals(found.spread, np.ptp(drawn, axis=2)),
        tasks,
    )
