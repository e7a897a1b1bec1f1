"""How much of the time that verification takes is hidden behind generation and the update.

Whole RL steps of a real run whose engine, verifier and update also wait, as they would for other machines or a GPU: by
default a batch takes 0.6 s to generate, as long to verify, and half of that to learn from. ``--latency`` is the share
of a generation that does not get shorter with fewer prompts: what generating a batch in parts costs. Responses end
evenly spread over the last ``--spread`` of a generation (0: all at its end); ``as they end`` are the arrangements whose
engine tells of each as it does, and judge it then.

Printed for each arrangement: seconds per step with the verifier and with one that takes no time, and the hidden share
of verification, t_verify as measured:

- ``hidden``: (t_plain - t) / t_verify, with t_plain of the plain arrangement with the verifier; to overlap generation
  with the update counts too, so it can be above 100 %;
- ``strictly``: 1 - (t - t_free) / t_verify, with t_free of the very arrangement with the verifier that takes no time;
- ``at best``: the same of the schedule alone, with times as measured. A step takes max(G, V, U, (G + W + U) / (s + 1)),
  with G, V and U the times of generation, verification and update, W the verification that is left when a generation
  ends, and s the staleness; at staleness 0, G + W + U.

The first steps, while the pipeline fills, and the last are left out. Exit code 0 means that at every staleness
above 0 some arrangement hides, strictly, at least four fifths of the verification.

    python benchmarks/overlap.py [--generate 0.6] [--verify 0.6] [--update 0.3] [--latency 0.1] [--spread 0.9]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import assay
from assay.batch import Batch
from assay.engines.base import Request
from assay.engines.ended import listener
from assay.engines.speaking import Speaking
from assay.objectives.clip import ClippedSurrogate
from assay.registry import part
from assay.types import Episode, Task, Verdict

PROMPTS, GROUP, TOKENS = 8, 4, 4
ARRANGEMENTS = {
    "plain": (0, 1, False),
    "staleness 0, 4 parts": (0, 4, False),
    "staleness 0, 8 parts": (0, 8, False),
    "staleness 0, as they end": (0, 1, True),
    "staleness 1": (1, 1, False),
    "staleness 1, 4 parts": (1, 4, False),
    "staleness 1, as they end": (1, 1, True),
    "staleness 2": (2, 1, False),
    "staleness 2, as they end": (2, 1, True),
}
"""Staleness, parts, and whether the engine tells of responses as they end."""
WANTED = 0.8
"""Share of the verification's time that is to be hidden, strictly, where a staleness is allowed."""
LATE = 0.01
"""Seconds between two checks that count as none."""


@part("engine", "benchmark_slow")
@dataclass
class SlowEngine(Speaking):
    """Answers with random digits, after a wait; tells of each response as it ends, if it ``tells``."""

    policy: Any
    seconds: float
    latency: float
    spread: float
    tells: bool

    def follow(self, policy: Any) -> None:
        """The weights do not matter."""

    def close(self) -> None:
        """Nothing was started."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        start, hear = time.perf_counter(), listener() if self.tells else None
        out = [[self._episode(r, np.random.default_rng([r.seed, i])) for i in range(r.n)] for r in requests]
        if requests[0].n == GROUP:  # not in an evaluation
            whole = self.seconds * (self.latency + (1 - self.latency) * len(requests) / PROMPTS)
            rows = [(request, episode) for request, episodes in zip(requests, out, strict=True) for episode in episodes]
            order = np.random.default_rng(requests[0].seed).permutation(len(rows))
            for end, i in zip(ends(len(rows), self.spread), order, strict=True):
                time.sleep(max(0.0, start + whole * end - time.perf_counter()))
                if hear is not None:
                    hear(rows[i][0], rows[i][1].text)
        return out

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
    _until: float = field(default=0.0, init=False)

    def __call__(self, task: Task, response: str) -> Verdict:
        # As another machine would: that this one wakes up late, being busy, does not hold it up.
        now = time.perf_counter()
        self._until = (self._until if now - self._until < LATE else now) + self.seconds
        time.sleep(max(0.0, self._until - now))
        return Verdict.right() if sum(map(ord, response)) % 2 else Verdict.wrong()

    def map(self, pairs: Iterable[tuple[Task, str]]) -> Iterator[Verdict]:
        """Verdicts on many, as of a pool; it has processes of its own, and is not in the way of generation."""
        return (self(*pair) for pair in pairs)


@part("objective", "benchmark_slow")
@dataclass(frozen=True, slots=True)
class SlowUpdate(ClippedSurrogate):
    """The clipped surrogate, after a wait."""

    seconds: float = 0.0

    def prepare(self, batch: Batch) -> None:
        """Wait."""
        time.sleep(self.seconds)


class Seconds(NamedTuple):
    """What an RL step takes, in all; and what generation and verification take, each beside whatever."""

    step: float
    generate: float
    verify: float


def ends(responses: int, spread: float) -> np.ndarray:
    """When each response ends, as shares of the generation ``(N,)``, ascending."""
    return 1 - spread * (1 - np.arange(1, responses + 1) / responses)


def at_best(staleness: int, parts: int, tells: bool, spread: float, seconds: Seconds, update: float) -> float:
    """The hidden share of verification that the schedule allows, strictly; ``update`` is in seconds per step."""
    generate, verify, n = seconds.generate, seconds.verify, PROMPTS * GROUP // parts
    verified = 0.0
    for i in range(parts):
        for end in ends(n, spread) if tells else np.ones(n):
            verified = max(verified, generate * (i + end) / parts) + verify / (PROMPTS * GROUP)
    left = verified - generate
    slow, free = (
        max(generate, v, update, (generate + w + update) / (staleness + 1)) if staleness else generate + w + update
        for v, w in ((verify, left), (0.0, 0.0))
    )
    return 1 - (slow - free) / verify


def per_step(
    folder: Path, staleness: int, parts: int, tells: bool, verify: float, options: argparse.Namespace
) -> Seconds:
    """Run; return what a step took, the first and the last steps left out."""
    settings = {"seconds": options.generate, "latency": options.latency, "spread": options.spread, "tells": tells}
    engine = {"name": "benchmark_slow", "options": settings}
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
    return Seconds(*(sum(row[f"time/{name}"] for row in kept) / len(kept) for name in Seconds._fields))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("generate", 0.6), ("verify", 0.6), ("update", 0.3), ("latency", 0.1), ("spread", 0.9)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--only", nargs="+", default=[], help="arrangements whose names begin so, besides plain")
    options = parser.parse_args()
    print(f"{'':25} {'s/step':>7} {'free verifier':>14} {'hidden':>8} {'strictly':>9} {'at best':>8}")
    plain, update, most = 0.0, 0.0, dict[int, float]()
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, arrangement) in enumerate(ARRANGEMENTS.items()):
            if i and options.only and not name.startswith(tuple(options.only)):
                continue
            free = per_step(Path(folder) / f"{i}-free", *arrangement, 0.0, options)
            slow = per_step(Path(folder) / f"{i}-slow", *arrangement, options.verify, options)
            if not i:
                plain, update = slow.step, free.step - free.generate
            best = at_best(*arrangement, options.spread, slow, update)
            shares = (plain - slow.step) / slow.verify, 1 - (slow.step - free.step) / slow.verify, best
            most[arrangement[0]] = max(shares[1], most.get(arrangement[0], -1.0))
            hidden, strictly, allowed = (
                f"{abs(share):.0%}" if abs(share) < 0.005 else f"{share:.0%}" for share in shares
            )
            print(f"{name:25} {slow.step:7.3f} {free.step:14.3f} {hidden:>8} {strictly:>9} {allowed:>8}", flush=True)
    sys.exit(0 if all(share >= WANTED for staleness, share in most.items() if staleness) else 1)


if __name__ == "__main__":
    main()
