"""A response's verdict on itself: the log-probability of one reserved token right after its end."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.statistics.self_verification import self_verification

PHASE = 200
"""Steps of each of the first two phases."""


@part("signal", "last_token")
class LastToken:
    """Signal ``self_verdict`` ``(N,)``: r = scale (log pi(c | x, y) - reference), c a token that never occurs.

    The log-probability is that at temperature 1. A response is taken for right if r > 1/2. Beside it,
    ``last_token_reference``, ``last_token_scale`` and ``last_token_phase`` ``(N,)`` are left for the parts that train r
    and use it: phase 0 in the first ``warmup`` steps, 1 (train it) in the next ``rest`` steps, 2 (use it as well) from
    then on.

    Source: LaSeR (arXiv 2510.14943) and its authors' code.

    Args:
        token: id of c, reserved and in no text: 151652 of Qwen, 128002 of Llama 3; 0, the padding, of a nano model.
        scale: above 0; ``None`` for 0.1, or more where c is not rare enough at the start: 2 / |reference|, so that the
            verdict "right", r = 1, is at a log-probability of half the reference.
        reference: log pi_ref(c | x, y), which hardly varies; ``None`` for its mean over the first step's responses
            (about -23 for Qwen, -25 for Llama).
        warmup, rest: steps of phases 0 and 1; ``None`` for 200, or a fifth of a run of fewer than 1000 steps.

    Raises:
        UsageError: ``token`` or a number of steps negative, ``scale`` not above 0.
    """

    name = "self_verdict"

    def __init__(
        self,
        token: int = 0,
        scale: float | None = None,
        reference: float | None = None,
        warmup: int | None = None,
        rest: int | None = None,
    ):
        if min(token, warmup or 0, rest or 0) < 0 or (scale is not None and scale <= 0):
            raise UsageError("signal 'last_token': needs token, warmup and rest of at least 0 and scale above 0")
        self.token, self._scale, self.reference = token, scale, reference
        self._warmup, self._rest, self._usual, self.seen = warmup, rest, PHASE, 0

    @property
    def quantity(self) -> str:
        """Name of the policy's quantity that it is made of."""
        return f"next_logprob@{self.token}"

    @property
    def scale(self) -> float:
        """Of log-probabilities; see above."""
        if self._scale is not None:
            return self._scale
        return max(0.1, 2 / max(abs(self.reference or 0.0), 0.1))

    def planned(self, steps: int) -> None:
        """Take in how many steps the run has: in a short one all phases have their turn."""
        self._usual = min(PHASE, steps // 5)

    @property
    def warmup(self) -> int:
        """Steps of phase 0."""
        return self._usual if self._warmup is None else self._warmup

    @property
    def rest(self) -> int:
        """Steps of phase 1."""
        return self._usual if self._rest is None else self._rest

    @property
    def phase(self) -> int:
        """0: plain, 1: r is trained, 2: r is used as well."""
        return int(self.seen >= self.warmup) + int(self.seen >= self.warmup + self.rest)

    def start(self, models: Models) -> None:
        """Nothing is to be made: what it trains is the policy."""

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N"]:
        logprob = batch.signals.get(f"policy_{self.quantity}")
        if logprob is None:
            logprob = models.quantities(batch, {self.quantity})[self.quantity]
        ended = finished(batch)
        if self.reference is None and bool(ended.any()):
            self.reference = float(logprob[ended].mean())
        reference = 0.0 if self.reference is None else self.reference
        phase = 0 if self.reference is None else self.phase
        for name, value in (("reference", reference), ("scale", self.scale), ("phase", phase)):
            batch.signals[f"last_token_{name}"] = torch.full_like(logprob, value)
        return torch.where(ended, self.scale * (logprob - reference), 0)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Count the step; metrics ``self_verdict/...``: what ``self_verification`` says, scale and reference."""
        self.seen += 1
        used = batch.valid & finished(batch)
        right = [bool(v.passed) for v, u in zip(batch.verdicts, used.tolist(), strict=True) if u]
        found = self_verification(batch.signals[self.name][used].tolist(), right)
        found |= {"scale": self.scale} | ({} if self.reference is None else {"reference": self.reference})
        return {f"self_verdict/{k}": v for k, v in found.items()}

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "reference": self.reference}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen, self.reference = state["seen"], state["reference"]


def finished(batch: Batch) -> Bool[Tensor, "N"]:
    """Whether each response came to its end, so that it has a verdict on itself."""
    return torch.tensor([not e.truncated and len(e.tokens) > 0 for e in batch.episodes], dtype=torch.bool)
