"""The weight of the divergence follows the rule by hand, and goes on from a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.rewards.shaping.adaptive_kl import AdaptiveKL
from assay.types import Ask, Episode, Group, Task


def batch(gap: float) -> Batch:
    """Two samples of two tokens, each more likely than under the reference by ``gap`` nats."""
    episode = Episode(
        np.zeros(1, np.int64), np.zeros(2, np.int64), np.ones(2, bool), np.zeros(2, np.float32), "", "eos"
    )
    made = Batch.from_groups([Group(Ask(Task("t", ""), 2), (episode, episode))])
    made.signals = {"policy_logprobs": torch.zeros(2, 2), "reference_logprobs": torch.full((2, 2), -gap)}
    return made


def test_the_weight_by_hand() -> None:
    part = AdaptiveKL(target=0.1, weight=0.5, horizon=10)
    # KL = .11: error .1, c = .5 (1 + .1 * 2 / 10) = .51; then KL = 1: clipped to .2, c = .51 * 1.04.
    first = part(batch(0.11))
    assert first.tokens is not None and first.tokens[0, 0].item() == pytest.approx(-0.5 * 0.11)
    assert part.state_dict()["weight"] == pytest.approx(0.51)
    second = part(batch(1.0))
    assert second.terms["kl_weight"].tolist() == pytest.approx([0.51, 0.51])
    again = AdaptiveKL(target=0.1)
    again.load_state_dict(part.state_dict())
    assert again.state_dict()["weight"] == pytest.approx(0.51 * 1.04)
    # Below the target it falls: KL = 0, error -1 clipped to -.2.
    part(batch(0.0))
    assert part.state_dict()["weight"] == pytest.approx(0.51 * 1.04 * 0.96)


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="above 0"):
        AdaptiveKL(target=0)
