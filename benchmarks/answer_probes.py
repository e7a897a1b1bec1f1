"""Answer probes at many prefixes of each response, against one scoring pass and against a pass for every probe.

    python benchmarks/answer_probes.py [--probes 16] [--repeats 5]

Scores a short answer after each of 16 prefixes of every response, without gradient: in one pass, ``continuations``, and
the naive way, prefix and answer as a sequence of their own, a pass for each of the 16. Both are set against one pass
that scores the responses themselves. Medians of interleaved repeats; the bar is 1.6 times the scoring pass.
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
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.types import Ask, Episode, Group, Task

CASES = {
    "nano, 64 tokens": ({"source": "nano", "nano": {"hidden": 128, "layers": 4, "heads": 4, "context": 512}}, 8, 64, 1),
    "nano, 256 tokens": (
        {"source": "nano", "nano": {"hidden": 128, "layers": 4, "heads": 4, "context": 512}},
        8,
        256,
        4,
    ),
    "smollm2, 512 tokens": ({"source": "smollm2"}, 2, 512, 6),
}


def batch_of(prompts: int, length: int, rng: np.random.Generator) -> Batch:
    groups = []
    for g in range(prompts):
        prompt = rng.integers(4, 14, 24)
        episodes = [
            Episode(prompt, rng.integers(4, 14, length), np.ones(length, bool), None, "", "eos") for _ in range(8)
        ]
        groups.append(Group(Ask(Task(str(g), ""), 8), tuple(episodes)))
    return Batch.from_groups(groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probes", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cases", nargs="*", default=list(CASES)[:2])
    options = parser.parse_args()
    for name in options.cases:
        model, prompts, length, answer = CASES[name]
        policy = CausalLM.load(ModelConfig(**model))
        rng = np.random.default_rng(0)
        batch = batch_of(prompts, length, rng)
        points = np.linspace(0, length, options.probes, dtype=int).tolist()
        at = [points] * len(batch)
        what = [[rng.integers(4, 14, answer)] * len(points) for _ in at]

        def scoring(batch: Batch = batch, policy: Any = policy) -> None:
            for rows in policy.micro_batches(batch, 8192):
                policy.forward(batch.rows(rows))

        def together(batch: Batch = batch, policy: Any = policy, at: Any = at, what: Any = what) -> None:
            for rows in policy.micro_batches(batch, 8192):
                policy.continuations(batch.rows(rows), [at[i] for i in rows], [what[i] for i in rows])

        def apart(batch: Batch = batch, policy: Any = policy, at: Any = at, what: Any = what) -> None:
            for k in range(options.probes):
                episodes = [
                    Episode(
                        np.concatenate([e.prompt, e.tokens[: p[k]]]), w[k], np.ones(len(w[k]), bool), None, "", "eos"
                    )
                    for e, p, w in zip(batch.episodes, at, what, strict=True)
                ]
                made = Batch.from_groups([Group(Ask(Task("t", ""), 1), (e,)) for e in episodes])
                for rows in policy.micro_batches(made, 8192):
                    policy.forward(made.rows(rows))

        ways: dict[str, Callable[[], None]] = {"scoring": scoring, "together": together, "apart": apart}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        with torch.no_grad():
            for repeat in range(options.repeats + 1):
                for way, work in ways.items():
                    start = time.perf_counter()
                    work()
                    if repeat:
                        seconds[way].append(time.perf_counter() - start)
        one, probes, naive = (median(seconds[w]) for w in ways)
        print(
            f"{name}: scoring {one:.3f} s, {options.probes} probes {probes:.3f} s ({probes / one:.2f} times; bar 1.6), "
            f"a pass each {naive:.3f} s ({naive / one:.1f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main()
