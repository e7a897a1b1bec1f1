"""How often ``assay compare`` tells methods apart that are equal, and that are not: the tables of docs/compare.md.

    python benchmarks/compare_rule.py [--comparisons 2000] [--seed 0]

Runs are simulated (:func:`simulated`). Printed are shares of comparisons in which at least one pair is told apart: by
the rule (Student's t-test on differences seed by seed, Holm's correction over pairs, interquartile means on the same
side), and by the sign-flip test in the t-test's place.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Mapping

import numpy as np

from assay.compare.statistics import LEVEL, paired_test
from assay.statistics.aggregate import iqm
from assay.statistics.power import holm
from assay.statistics.sign_flip import sign_flip

QUESTIONS, SAMPLES = 300, 4
SETTINGS = (
    *((2, 2, 1, 0.0), (2, 3, 1, 0.0), (2, 5, 1, 0.0), (2, 5, 1, 0.1), (2, 10, 1, 0.0), (2, 10, 1, 0.1)),
    *((2, 5, 3, 0.0), (3, 5, 1, 0.0), (3, 5, 3, 0.1), (5, 5, 2, 0.1)),
)
"""Methods, seeds, tasks, and the share of runs that collapse."""
GAIN = 1.5
"""Logits by which the last method is better in the second table."""


def simulated(
    rng: np.random.Generator, methods: int, seeds: int, tasks: int, gain: float = 0.0, collapse: float = 0.0
) -> Mapping[str, np.ndarray]:
    """Final scores as runs have them: a start shared by the methods of a seed, an end of its own, finite questions.

    On the scale of logits, a task's level, a seed's start and a run's end are normal; a run collapses now and then; the
    score is the share right of 300 questions of unequal difficulty, the same for all methods of a seed, 4 responses
    each. ``gain`` is what the last method is better by, in logits.
    """
    level = rng.normal(0.5, 1.0, tasks)
    start = rng.normal(0, 0.4, (seeds, tasks))
    difficulty = rng.normal(0, 1.5, (seeds, tasks, QUESTIONS))
    out = {}
    for m in range(methods):
        end = level + start + rng.normal(0, 0.5, (seeds, tasks)) + (gain if m == methods - 1 else 0)
        p = 1 / (1 + np.exp(difficulty - end[..., None]))
        p = np.where(rng.random((seeds, tasks, 1)) < collapse, 0.02, p)
        out[f"m{m}"] = rng.binomial(SAMPLES, p).mean(-1) / SAMPLES
    return out


def told_apart(scores: Mapping[str, np.ndarray], step: float) -> tuple[bool, bool]:
    """Whether the rule, and the sign-flip test in its place, tell any pair apart."""
    pairs = [(scores[a], scores[b]) for a, b in itertools.combinations(scores, 2)]
    agree = np.array([(iqm(a) - iqm(b)) * (a.mean() - b.mean()) > 0 for a, b in pairs])
    student = holm([paired_test(a.mean(1), b.mean(1), step)[1] for a, b in pairs])
    flips = holm([sign_flip(a.mean(1) - b.mean(1)) for a, b in pairs])
    return bool((agree & (student < LEVEL)).any()), bool((flips <= LEVEL).any())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    error = math.sqrt(0.05 * 0.95 / args.comparisons)
    for title, gain in (("equal methods", 0.0), (f"the last better by {GAIN:g} logits", GAIN)):
        print(f"\n{title}; standard error of 5%: {100 * error:.1f} points")
        print("| methods | seeds | tasks | runs that collapse | the rule | sign flips |\n|---|---|---|---|---|---|")
        for methods, seeds, tasks, collapse in SETTINGS:
            rng = np.random.default_rng([args.seed, methods, seeds, tasks])
            step = 1 / (QUESTIONS * SAMPLES * tasks)
            drawn = (simulated(rng, methods, seeds, tasks, gain, collapse) for _ in range(args.comparisons))
            rule, flips = np.mean([told_apart(scores, step) for scores in drawn], axis=0)
            cells = (methods, seeds, tasks, f"{100 * collapse:.0f} %", f"{100 * rule:.1f} %", f"{100 * flips:.1f} %")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
