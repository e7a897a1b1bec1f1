"""What a method costs beside the model: selection, credit, and the loss forward and backward through log-probabilities.

    python benchmarks/method_overhead.py [--against SECONDS]

Prints milliseconds (median of the repeats) for two batch shapes and the share of a step of ``--against`` seconds, 1 by
default: about a step of the nano model. The credit and selection run once per step, the loss once per micro-batch; here
the whole batch is one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.objectives.table import METHODS
from assay.registry import build
from assay.types import Ask, Episode, Group, Task, Verdict

SHAPES = ((256, 32), (64, 1024))
GROUP = 8


def make_batch(n: int, width: int) -> Batch:
    """Responses of half to full width, judged at random, with every signal a part may read."""
    rng = np.random.default_rng(0)
    groups = []
    for g in range(n // GROUP):
        episodes = []
        for _ in range(GROUP):
            length = int(rng.integers(width // 2, width + 1))
            logprobs = -rng.random(length).astype(np.float32)
            mask = np.ones(length, dtype=bool)
            episodes.append(Episode(np.zeros(8, np.int64), np.zeros(length, np.int64), mask, logprobs, "", "eos"))
        verdicts = [Verdict(float(v), bool(v)) for v in rng.integers(0, 2, GROUP)]
        groups.append(Group(Ask(Task(str(g), ""), GROUP), tuple(episodes), tuple(verdicts)))
    batch = Batch.from_groups(groups)
    batch.rewards = torch.tensor([v.score for v in batch.verdicts])
    for name in ("policy_logprobs", "reference_logprobs", "values"):
        batch.signals[name] = batch.logprobs + 0.1 * torch.randn(batch.logprobs.shape)
    batch.signals["baseline_rewards"] = torch.rand(n)
    batch.live["entropy"] = torch.rand(batch.logprobs.shape)
    return batch


def milliseconds(work: Callable[[], Any], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=float, default=1.0, help="seconds of a model step")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print(f"{'':22}" + "".join(f"{f'N={n} T={t}':>34}" for n, t in SHAPES))
    print(f"{'method':22}" + f"{'select':>8}{'credit':>8}{'loss':>8}{'of step':>10}" * len(SHAPES))
    for name, (credit_spec, objective_spec, _) in METHODS.items():
        cells = ""
        for n, width in SHAPES:
            batch = make_batch(n, width)
            select = build("select", {"name": "chain", "parts": ["dapo", "overlong"]})
            credit, objective = build("credit", dict(credit_spec)), build("objective", dict(objective_spec))
            now = batch.logprobs + 0.05 * torch.randn(batch.logprobs.shape)

            def choose(batch: Batch = batch, select: Any = select) -> None:
                batch.weights = torch.ones(len(batch))
                batch.weights = select(batch)

            def value(batch: Batch = batch, credit: Any = credit) -> None:
                batch.advantages = credit(batch)

            def learn(batch: Batch = batch, objective: Any = objective, now: torch.Tensor = now) -> None:
                logprobs = now.clone().requires_grad_(True)
                objective(logprobs, batch).value.backward()

            times = [milliseconds(choose, options.repeats), milliseconds(value, options.repeats)]
            batch.totals = batch.count()
            times.append(milliseconds(learn, options.repeats))
            cells += "".join(f"{t:8.2f}" for t in times) + f"{sum(times) / 1e3 / options.against:10.2%}"
        print(f"{name:22}{cells}")


if __name__ == "__main__":
    main()
