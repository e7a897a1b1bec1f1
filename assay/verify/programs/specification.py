"""A problem as a program: slots that are drawn, a text they are put into, and an answer that is computed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from assay.sandbox import Limits, Program, SandboxUnavailable, sandbox
from assay.verify.text.exact import shorten

SECONDS = 10.0
"""Processor time for all the draws that are asked for at once."""
_HARNESS = """

def vera_draws(seeds):
    import random
    out = []
    for seed in seeds:
        theta = SEED if seed is None else sample(random.Random(seed))
        valid, answer = verify(theta)
        out.append([bool(valid), str(answer), str(render(theta)) if valid else ""])
    return out
"""


@dataclass(frozen=True, slots=True)
class Draw:
    """What the slots came to: whether they fit together, the answer, and the text, which is empty unless they do."""

    valid: bool
    answer: str
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a specification gave nothing; ``ours`` if it is not to blame."""

    reason: str
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Specification:
    """A seed's id and Python source with ``SEED`` (the seed's own slots), ``sample(rng)``, ``verify(theta)``, which
    returns whether the slots fit together and the answer, and ``render(theta)``.

    Source: VeRA (arXiv 2602.13217), section 3.
    """

    seed_id: str
    source: str

    @property
    def generator_id(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]

    def seed(self, index: int) -> int:
        """The seed of a draw, the same everywhere: it follows from the seed's id, the source and the number."""
        key = f"{self.seed_id}\n{self.generator_id}\n{index}"
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big")

    def draws(self, indices: Sequence[int | None]) -> list[Draw] | Failed:
        """Return a draw for each index, of the seed's own slots for ``None``; or why there is none."""
        seeds = [None if index is None else self.seed(index) for index in indices]
        try:
            done = sandbox().call(
                Program(self.source + _HARNESS), "vera_draws", [([seeds], {})], Limits(SECONDS, 3 * SECONDS)
            )
        except SandboxUnavailable as error:
            return Failed(str(error), ours=True)
        if done.outcome.failed_here:
            return Failed(done.outcome.reason, ours=True)
        if not done.calls:
            last = done.outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            return Failed(shorten("; ".join([done.outcome.reason, *last]), 300))
        if not done.calls[0].returned:
            return Failed(f"it raises {shorten(done.calls[0].exception, 300)}")
        return [Draw(bool(v), str(answer), str(text)) for v, answer, text in done.calls[0].value]
