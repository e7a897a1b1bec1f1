"""Tokens per second of one and of two Ray engines that take a fixed time per token and no processor.

    python benchmarks/ray_engines.py [--engines 1 2] [--ms 2.0] [--requests 64] [--rounds 5]

The engine sleeps for every token it gives and leaves the processor alone, so that what is measured is how well a call
is divided and how much asking costs, not how many cores this machine has. Rounds of the settings take turns; printed
are the median tokens per second of each and the median over rounds of the ratio to the first. Exit code 0 means that
every ratio is at least 0.95 times what as many engines would give at best, 1.9 for 2 engines beside 1.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.config import ScaleConfig, load_config
from assay.engines.base import Request, Sampling
from assay.policies.causal_lm import CausalLM
from assay.registry import part
from assay.scale.faults import Faults
from assay.scale.ray.cluster import Cluster, import_ray
from assay.scale.ray.engine import RayEngine
from assay.types import Episode

WANTED = 0.95
"""Share of the ratio between numbers of engines that the ratio of their speeds has to reach."""
MODEL = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}, "device": "cpu"}


@part("engine", "sleeping")
@dataclass
class Sleeping:
    """Answers with tokens that mean nothing, after ``seconds`` for each."""

    seconds: float
    policy: Any = field(repr=False, default=None)
    max_rows: int = 0

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._episode(r, i) for i in range(r.n)] for r in requests]

    def _episode(self, request: Request, i: int) -> Episode:
        # Lengths differ as those of real responses do, and follow from the seed.
        n = int(np.random.default_rng((request.seed, i)).integers(1, request.sampling.max_tokens + 1))
        time.sleep(self.seconds * n)
        return Episode(np.zeros(1, np.int64), np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n), "", "eos")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ms", type=float, default=2.0, help="milliseconds per token")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.CRITICAL}
    import_ray().init(address="local", num_cpus=sum(options.engines), **quiet)
    config = load_config({"model": MODEL}).model
    policy = CausalLM.load(config)
    spec = {"name": "sleeping", "seconds": options.ms / 1000}
    engines = []
    for n in options.engines:
        cluster = Cluster(ScaleConfig(engines=n), Faults(Path(tempfile.gettempdir()) / "none", print))
        cluster.join()
        engine = RayEngine(policy, cluster, spec, config, max_rows=1024)
        engine.follow(policy)
        engine.generate([Request("1+1=", 1, Sampling(max_tokens=1), 0)] * 8 * n)  # every actor has started
        engines.append(engine)
    speeds: list[list[float]] = [[] for _ in engines]
    for turn in range(options.rounds):
        asked = [Request("1+1=", 4, Sampling(max_tokens=16), 1000 * turn + i) for i in range(options.requests)]
        for engine, found in zip(engines, speeds, strict=True):
            start = time.perf_counter()
            tokens = sum(len(e.tokens) for episodes in engine.generate(asked) for e in episodes)
            found.append(tokens / (time.perf_counter() - start))
    print("engines  tokens/s  ratio to the first")
    reached = True
    for n, found in zip(options.engines, speeds, strict=True):
        ratio = statistics.median(a / b for a, b in zip(found, speeds[0], strict=True))
        print(f"{n:7}  {statistics.median(found):8.0f}  {ratio:.2f}")
        reached = reached and ratio >= WANTED * n / options.engines[0]
    for engine in engines:
        engine.close()
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
