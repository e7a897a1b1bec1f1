"""How much of the time that verification takes is hidden behind generation and the update.

Whole RL steps of a real run whose engine, verifier and update also wait, as they would for other machines or a GPU: by
default a batch takes 0.6 s to generate, as long to verify, and half of that to learn from. ``--latency`` is the share
of a generation that does not get shorter with fewer prompts: what generating a batch in parts costs.

Printed for each arrangement: seconds per step with and without the verifier's waits, and the hidden share of
verification, 1 - (t - t0) / t_verify with t_verify as measured: once with t0 of the plain arrangement without
verification (``hidden``), and once with t0 of the same arrangement without verification (``strictly``), where it is no
merit to overlap generation with the update.

    python benchmarks/overlap.py [--generate 0.6] [--verify 0.6] [--update 0.3] [--latency 0.1] [--steps 14]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import assay
from assay.batch import Batch
from assay.engines.base import Request
from assay.objectives.clip import ClippedSurrogate
from assay.registry import part
from assay.types import Episode, Prompt, Task, Verdict

PROMPTS, GROUP, TOKENS = 8, 4, 4
ARRANGEMENTS = {
    "plain": (0, 1),
    "staleness 0, 4 parts": (0, 4),
    "staleness 1": (1, 1),
    "staleness 1, 4 parts": (1, 4),
    "staleness 2": (2, 1),
}
"""Staleness and parts."""


@part("engine", "benchmark_slow")
@dataclass
class SlowEngine:
    """Answers with random digits, after a wait."""

    policy: Any
    seconds: float
    latency: float

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.policy.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.policy.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.policy.decode(tokens)

    def follow(self, policy: Any) -> None:
        """The weights do not matter."""

    def close(self) -> None:
        """Nothing was started."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        if requests[0].n == GROUP:  # not in an evaluation
            time.sleep(self.seconds * (self.latency + (1 - self.latency) * len(requests) / PROMPTS))
        return [[self._episode(r, np.random.default_rng([r.seed, i])) for i in range(r.n)] for r in requests]

    def _episode(self, request: Request, rng: np.random.Generator) -> Episode:
        text = "".join(map(str, rng.integers(10, size=TOKENS)))
        tokens = self.encode_response(text, end=False)
        logprobs = np.full(len(tokens), -np.log(10), dtype=np.float32)
        return Episode(self.encode(request.prompt), tokens, np.ones(len(tokens), dtype=bool), logprobs, text, "length")


@part("verify", "benchmark_slow")
@dataclass
class SlowVerifier:
    """Content with every other response, after a wait."""

    seconds: float = 0.0

    def __call__(self, task: Task, response: str) -> Verdict:
        time.sleep(self.seconds)
        return Verdict.right() if sum(map(ord, response)) % 2 else Verdict.wrong()


@part("objective", "benchmark_slow")
@dataclass(frozen=True, slots=True)
class SlowUpdate(ClippedSurrogate):
    """The clipped surrogate, after a wait."""

    seconds: float = 0.0

    def prepare(self, batch: Batch) -> None:
        """Wait."""
        time.sleep(self.seconds)


def per_step(
    folder: Path, staleness: int, parts: int, verify: float, options: argparse.Namespace
) -> tuple[float, float]:
    """Seconds per RL step of a run, and those that verification took beside whatever, the first and last left out."""
    engine = {"name": "benchmark_slow", "options": {"seconds": options.generate, "latency": options.latency}}
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}},
            "tasks": {
                "source": {"name": "arithmetic", "digits": 1},
                "eval_size": 2,
                "verify": {"name": "benchmark_slow", "seconds": verify / (PROMPTS * GROUP)},
            },
            "engine": engine,
            "method": {"objective": {"name": "benchmark_slow", "seconds": options.update}},
            "rollout": {"prompts": PROMPTS, "group": GROUP, "max_tokens": TOKENS},
            "train": {"steps": options.steps},
            "overlap": {"staleness": staleness, "verify_chunks": parts},
            "evaluate": {"samples": 1},
            "run": {"dir": str(folder), "report": False, "tensorboard": False, "checkpoint_every": 1000},
        },
        quiet=True,
    )
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    # A pipeline has to fill, and the last batches find nothing to overlap with.
    kept = rows[3 : len(rows) - 2]
    step, verified = (sum(row[f"time/{name}"] for row in kept) / len(kept) for name in ("step", "verify"))
    return step, verified


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("generate", 0.6), ("verify", 0.6), ("update", 0.3), ("latency", 0.1)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--steps", type=int, default=14)
    options = parser.parse_args()
    print(f"{'':22} {'s/step':>7} {'free verifier':>14} {'hidden':>8} {'strictly':>9}")
    plain = None
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, (staleness, parts)) in enumerate(ARRANGEMENTS.items()):
            free, _ = per_step(Path(folder) / f"{i}-free", staleness, parts, 0.0, options)
            slow, verified = per_step(Path(folder) / f"{i}-slow", staleness, parts, options.verify, options)
            plain = free if plain is None else plain
            hidden, strictly = (1 - (slow - base) / verified for base in (plain, free))
            print(f"{name:22} {slow:7.3f} {free:14.3f} {hidden:8.0%} {strictly:9.0%}", flush=True)


if __name__ == "__main__":
    main()
