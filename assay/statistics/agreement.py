"""Two yes-or-no facts about the same rows: do they agree beyond chance, and which says yes more often?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from assay.statistics.rate import CONFIDENCE, Rate


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that both verifiers decided: ``both`` accept, only the ``first``, only the ``second``, ``neither``."""

    both: int
    first: int
    second: int
    neither: int

    @classmethod
    def count(cls, pairs: Iterable[tuple[bool, bool]]) -> Table:
        """Count pairs of decisions (or of any other two yes-or-no facts)."""
        counts = {(a, b): 0 for a in (True, False) for b in (True, False)}
        for pair in pairs:
            counts[pair] += 1
        return cls(counts[True, True], counts[True, False], counts[False, True], counts[False, False])

    @property
    def total(self) -> int:
        return self.both + self.first + self.second + self.neither


def mcnemar(first: int, second: int) -> float:
    """Two-sided exact p-value of McNemar's test, given the rows where only one of the two says yes.

    If both said yes equally often, either would be alone in half of those rows:
    ``p = min(1, 2 P(X <= min(b, c)))`` with X ~ Binomial(b + c, 1/2); 1 where there are none.
    """
    n, fewer = first + second, min(first, second)
    if n == 0:
        return 1.0
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(fewer, n, 0.5)))


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa and the ends of its interval; NaN where both always say the same one thing."""

    value: float
    low: float
    high: float


def kappa(table: Table, confidence: float = CONFIDENCE) -> Kappa:
    """Agreement beyond chance, ``(po - pe) / (1 - pe)``, with its large-sample interval (Fleiss, Cohen, Everitt 1969).

    Where no row disagrees that interval would have no width whatever the number of rows. There its lower end is what
    the exact lower bound of the agreement gives at the margins observed.
    """
    n = table.total
    if n == 0:
        return Kappa(math.nan, math.nan, math.nan)
    cells = ((table.both / n, table.first / n), (table.second / n, table.neither / n))
    rows = [sum(row) for row in cells]
    columns = [cells[0][j] + cells[1][j] for j in (0, 1)]
    agreed = cells[0][0] + cells[1][1]
    chance = sum(r * c for r, c in zip(rows, columns, strict=True))
    if 1 - chance < 1e-12:
        return Kappa(math.nan, math.nan, math.nan)
    value = (agreed - chance) / (1 - chance)
    if table.first + table.second == 0:
        return Kappa(1.0, max(-1.0, (Rate.of(n, n, confidence).low - chance) / (1 - chance)), 1.0)
    # The three terms of the variance: the diagonal, the rest of the table, and the chance agreement.
    a = sum(cells[i][i] * (1 - (rows[i] + columns[i]) * (1 - value)) ** 2 for i in (0, 1))
    b = (1 - value) ** 2 * sum(cells[i][1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1))
    c = (value - chance * (1 - value)) ** 2
    error = math.sqrt(max(a + b - c, 0.0) / n) / (1 - chance)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * error
    return Kappa(value, max(value - half, -1.0), min(value + half, 1.0))
