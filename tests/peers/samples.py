"""Random judged batches, in float64, and what a peer needs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.types import Ask, Episode, Group, Task, Verdict


@dataclass
class Sample:
    """A batch of ``groups`` x ``size`` responses, the current log-probabilities, and rewards of many kinds."""

    batch: Batch
    logprobs: Tensor
    groups: int
    size: int

    @property
    def mask(self) -> Tensor:
        return self.batch.mask.double()

    @property
    def old(self) -> Tensor:
        return self.batch.logprobs

    @property
    def advantages(self) -> Tensor:
        return self.batch.advantages

    @property
    def index(self) -> np.ndarray:
        return self.batch.group.numpy()

    @property
    def placed(self) -> Tensor:
        """Rewards on each response's last token, as verl wants them."""
        placed = torch.zeros_like(self.mask)
        last = torch.tensor([int(row.nonzero().max()) for row in self.batch.mask])
        placed[torch.arange(len(last)), last] = self.batch.rewards
        return placed


def sample(
    seed: int, groups: int = 3, size: int = 4, width: int = 7, holes: bool = False, spread: float = 0.3
) -> Sample:
    """Responses of 1 to ``width`` tokens; one group has equal rewards. With ``holes`` some tokens are not learnable."""
    rng = np.random.default_rng(seed)
    made: list[Group] = []
    for g in range(groups):
        episodes, verdicts = [], []
        for _ in range(size):
            length = int(rng.integers(1, width + 1))
            mask = rng.random(length) < 0.7 if holes else np.ones(length, dtype=bool)
            mask[rng.integers(length)] = True
            logprobs = -rng.gamma(2.0, 0.5, size=length)
            tokens = rng.integers(0, 50, size=length)
            episodes.append(Episode(np.zeros(1, dtype=np.int64), tokens, mask, logprobs.astype(np.float32), "", "eos"))
            verdicts.append(Verdict(0.7 if g == 1 else round(float(rng.random()), 2), True))
        made.append(Group(Ask(Task(f"task-{g}", ""), size), tuple(episodes), tuple(verdicts)))
    batch = Batch.from_groups(made, dtype=torch.float64)
    batch.rewards = torch.tensor([v.score for v in batch.verdicts], dtype=torch.float64)
    noise: Any = lambda scale: torch.from_numpy(rng.normal(0, scale, size=batch.mask.shape))  # noqa: E731
    per_response = torch.from_numpy(rng.normal(size=len(batch)))
    batch.advantages = torch.where(batch.mask, per_response[:, None], 0)
    batch.signals = {
        "reference_logprobs": batch.logprobs + noise(0.5),
        "policy_logprobs": batch.logprobs + noise(0.2),
        "values": noise(1.0),
    }
    batch.live["entropy"] = noise(1.0).abs()
    return Sample(batch, torch.where(batch.mask, batch.logprobs + noise(spread), 0), groups, size)


def gradient(loss: Any, logprobs: Tensor) -> tuple[float, Tensor]:
    """Value and gradient of ``loss(logprobs)``, a 0-d tensor."""
    logprobs = logprobs.detach().clone().requires_grad_(True)
    value = loss(logprobs)
    (grad,) = torch.autograd.grad(value, logprobs)
    return value.item(), grad


def agree(ours: Any, theirs: Any, made: Sample, tolerance: float = 1e-9) -> None:
    """Assert that two losses have the same value and gradient at the sample's log-probabilities, and not both zero."""
    (a, ga), (b, gb) = (gradient(loss, made.logprobs) for loss in (ours, theirs))
    assert abs(a - b) <= tolerance * max(1, abs(b)), (a, b)
    ga, gb = (torch.where(made.batch.mask, g, 0) for g in (ga, gb))
    assert torch.allclose(ga, gb, atol=tolerance, rtol=tolerance), (ga, gb)
    assert float(gb.abs().max()) > 1e-4
