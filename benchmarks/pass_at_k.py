"""Unbiased pass@k of a large benchmark: 100,000 tasks x 1,024 samples, every power of two k up to 1,024.

Time, and the largest difference from exact rational arithmetic over every count of right samples there is.

    python benchmarks/pass_at_k.py
"""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np

from assay.statistics.pass_at_k import pass_curve

TASKS, SAMPLES, LIMIT, DIGITS = 100_000, 1_024, 2.0, 1e-12


def main() -> None:
    rng = np.random.default_rng(0)
    right = rng.binomial(SAMPLES, rng.beta(0.3, 0.6, TASKS))
    ks = [1 << i for i in range(SAMPLES.bit_length())]
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        pass_curve(np.full(TASKS, SAMPLES), right, ks)
        taken.append(time.perf_counter() - start)
    counts = np.arange(SAMPLES + 1)
    every = pass_curve(np.full(len(counts), SAMPLES), counts, ks)
    worst = max(
        abs(float(Fraction(every[c, j]) - (1 - Fraction(math.comb(SAMPLES - c, k), math.comb(SAMPLES, k)))))
        for j, k in enumerate(ks)
        for c in counts.tolist()
    )
    print(
        f"{TASKS:,} tasks x {SAMPLES:,} samples, k = 1, 2, ... {ks[-1]}: {np.median(taken):.3f} s (limit {LIMIT:g} s)"
    )
    print(f"largest difference from exact arithmetic, all counts of right samples: {worst:.1e} (limit {DIGITS:g})")
    if np.median(taken) > LIMIT or worst > DIGITS:
        raise SystemExit("over the limit")


if __name__ == "__main__":
    main()
