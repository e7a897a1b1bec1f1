"""What a submission with evidence is worth: proven, told honestly, and briefly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import NOTE, Verdict


@part("reward", "evidence")
@dataclass(slots=True)
class EvidenceReward:
    """R_i = v_i - cost max(n_i - free, 0) + lambda(step) a_i for a submission that could be judged, else -1.

    v is 1 where more than half of the votes told are for success, else 0 where more than half find the evidence valid,
    else -1; n the number of turns cited; a = 1[any action] where v = 1, else min(1, actions / 10). lambda(step) is
    ``bonus``, or with ``decay`` bonus (1 + cos(pi min(step / decay, 1))) / 2. Verdicts are those of the environment
    ``submit_evidence``; one that abstains has no reward. The step is in the checkpoint.

    Args:
        cost: of each turn cited beyond ``free``.
        free: at least 0.
        bonus: of having acted at all; 0 in the paper's main runs.
        decay: steps after which the bonus is gone; ``None`` keeps it.

    Raises:
        UsageError: an option out of range.

    Source: SmartSnap (arXiv 2512.22322) and its authors' code.
    """

    cost: float = 0.1
    free: int = 3
    bonus: float = 0.0
    decay: int | None = None
    _step: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.cost, self.free, self.bonus) < 0 or (self.decay is not None and self.decay < 1):
            raise UsageError("reward 'evidence': cost, free and bonus must be at least 0, and decay at least 1")

    @property
    def weight(self) -> float:
        """lambda at this step."""
        if self.decay is None:
            return self.bonus
        return self.bonus * (1 + math.cos(math.pi * min(self._step / self.decay, 1))) / 2

    def __call__(self, batch: Batch) -> Reward:
        proven = [verified(v) for v in batch.verdicts]
        brief = [-self.cost * max(_note(v, "cited") - self.free, 0) for v in batch.verdicts]
        acted = [_acted(v) for v in batch.verdicts]
        formed = [bool(v.parts.get("submitted")) for v in batch.verdicts]
        weight = self.weight
        self._step += 1
        rows = zip(proven, brief, acted, formed, strict=True)
        values = [v + b + weight * a if ok else -1.0 for v, b, a, ok in rows]
        made = {"proven": proven, "brevity": brief, "acted": acted}
        terms = {name: torch.tensor(x, dtype=batch.rewards.dtype) for name, x in made.items()}
        return Reward(torch.tensor(values, dtype=batch.rewards.dtype), valid=judged(batch), terms=terms)

    def state_dict(self) -> dict[str, Any]:
        return {"step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._step = int(state["step"])


def _note(verdict: Verdict, name: str) -> float:
    return verdict.parts.get(f"submitted{NOTE}{name}") or 0.0


def verified(verdict: Verdict) -> float:
    """Return v: 1 proven, 0 not proven by evidence that allows a verdict, -1 else."""
    if not verdict.parts.get("submitted"):
        return -1.0
    success, valid = verdict.parts.get("success") or 0.0, verdict.parts.get("valid") or 0.0
    return 1.0 if 2 * success > 1 else 0.0 if 2 * valid > 1 else -1.0


def _acted(verdict: Verdict) -> float:
    actions = _note(verdict, "actions")
    return float(actions > 0) if verified(verdict) == 1 else min(1.0, actions / 10)
