"""A share of a count with its exact interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``total`` with the exact interval of Clopper and Pearson; all NaN for a total of 0."""

    count: int
    total: int
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int, confidence: float = CONFIDENCE) -> Rate:
        """Return ``count / total`` with its interval.

        The ends are the proportions at which so many, or so few, would be seen with probability (1 - confidence) / 2:
        ``low = Beta^-1(a/2; k, n-k+1)``, ``high = Beta^-1(1 - a/2; k+1, n-k)`` (Clopper and Pearson 1934).

        Raises:
            ValueError: ``count`` outside ``[0, total]``.
        """
        if not 0 <= count <= total:
            raise ValueError(f"a rate needs 0 <= count <= total, got {count} of {total}")
        if total == 0:
            return cls(0, 0, math.nan, math.nan, math.nan)
        from scipy.special import betaincinv

        tail = (1 - confidence) / 2
        low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, tail))
        high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1 - tail))
        return cls(count, total, count / total, low, high)


def rate_data(rate: Rate) -> dict[str, Any]:
    """A rate as plain data."""
    return {
        "count": rate.count,
        "total": rate.total,
        "value": defined(rate.value),
        "low": defined(rate.low),
        "high": defined(rate.high),
    }


def defined(x: float) -> float | None:
    """``x``, or ``None`` where it is not a finite number."""
    return x if math.isfinite(x) else None
