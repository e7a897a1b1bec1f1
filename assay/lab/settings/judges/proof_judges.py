"""A judge of proofs that misses flaws by chance, and by each prompt anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay import catalogue
from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.papers.judges.s188_proof_verify_small import proof_rates
from assay.types import Episode

FLAW = "Here is a gap."


@dataclass(frozen=True, slots=True)
class Setting:
    """Half of the proofs have a flaw. An arm says how many prompts are asked and how many of them have to accept.

    Args:
        proofs: that are judged.
        caught: chance that an opinion objects to a flawed proof.
        alarms: chance that it objects to a sound one.
    """

    proofs: int = 400
    caught: float = 0.5
    alarms: float = 0.03

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``balanced`` accuracy, ``false_accepts`` and ``false_rejects``; ``consistent``, the pairwise agreement
        of three verdicts on each proof; ``rollouts``, opinions asked for."""
        options = {k: v for k, v in arm.items() if k not in ("name", "count")}
        prompts = [f"Check {k}: {{question}} {{response}}" for k in range(arm["count"])]
        made = catalogue.make(arm["name"], judge=Chance(self.caught, self.alarms, seed), prompts=prompts, **options)
        items = [(f"Statement {i}.", FLAW if i % 2 else "All is shown.", i % 2 == 0) for i in range(self.proofs)]
        rates = proof_rates(made.judged(items), items)
        consistent = made.consistency([(q, r) for q, r, _ in items[:50]]).pairwise
        return {
            **{name: rates[name] for name in ("balanced", "false_accepts", "false_rejects")},
            "consistent": consistent,
            "rollouts": self.proofs * arm["count"],
        }


class Chance(Keywords):
    """The judge of :class:`Setting`, an engine; its opinions are independent, by the seeds of requests."""

    def __init__(self, caught: float, alarms: float, seed: int = 0):
        super().__init__(())
        self.caught, self.alarms, self.seed = caught, alarms, seed

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            rng = np.random.default_rng([self.seed, r.seed])
            objects = rng.random(r.n) < (self.caught if FLAW in str(r.prompt) else self.alarms)
            out.append([self._said(r"\boxed{False}" if no else r"\boxed{True}") for no in objects.tolist()])
        return out

    def _said(self, text: str) -> Episode:
        tokens = self.encode(text)
        return Episode(tokens[:0], tokens, tokens > 0, None, text, "eos")
