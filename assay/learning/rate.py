"""A learning rate for whoever names none."""

from __future__ import annotations

LARGEST_MODEL = 1.5e9
"""Parameters from which on the lowest rate is taken."""
LOWEST, HIGHEST = 1e-6, 1e-3
ADAPTERS = 10.0
"""How many times as high the rate of low-rank adapters is (Thinking Machines, "LoRA Without Regret", 2025)."""


def fitting_rate(parameters: int, adapters: bool = False) -> float:
    """Return a learning rate for Adam on a policy of this many parameters, in two significant digits.

    1e-6 (1.5e9 / parameters)^(3/4), within [1e-6, 1e-3]: 1e-6 is usual for models of billions of parameters, and about
    4e-4 suits the built-in model of half a million; ten times that where low-rank adapters learn.
    """
    rate = LOWEST * (LARGEST_MODEL / max(parameters, 1)) ** 0.75
    rate = min(max(rate, LOWEST), HIGHEST) * (ADAPTERS if adapters else 1.0)
    return float(f"{rate:.1e}")
