"""The shaped probability: worked numbers, its slope, and that own tokens are left to the clipped surrogate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.shaped import Shaped, shaped
from assay.types import Origin

pytestmark = pytest.mark.usefixtures("one_thread")


def test_worked_numbers() -> None:
    """f(.05) = 1/3 and f(.5) = 5/6; rare tokens have the larger slope: 4.444 against 0.278."""
    p = torch.tensor([[0.05, 0.5]], dtype=torch.float64, requires_grad=True)
    f = shaped(p, 0.1)
    assert f.tolist() == [pytest.approx([0.333333, 0.833333], abs=1e-6)]
    f.sum().backward()
    assert p.grad is not None and p.grad.tolist() == [pytest.approx([4.444444, 0.277778], abs=1e-6)]


def mixed(make_batch):
    """Two responses of three tokens; the last two of the second are a teacher's, of unknown log-probabilities."""
    batch = make_batch([3, 3], [0.0, 1.0])
    origins = np.array([Origin.OWN, Origin.TEACHER, Origin.TEACHER], dtype=np.uint8)
    batch.episodes[1] = replace(batch.episodes[1], origins=origins)
    batch.logprobs = torch.log(torch.tensor([[0.5, 0.4, 0.3], [0.2, 0.1, 0.1]], dtype=torch.float64))
    batch.logprobs[1, 1:] = torch.nan
    batch.advantages = torch.tensor([[-1.0] * 3, [2.0] * 3], dtype=torch.float64)
    return batch


def test_own_tokens_are_clipped_and_others_shaped(make_batch) -> None:
    """Own ones far beyond the clip range have no gradient; a teacher's have f'(p) p A, however far p has moved."""
    batch = mixed(make_batch)
    now = torch.log(torch.tensor([[0.1, 0.4, 0.3], [0.9, 0.05, 0.5]], dtype=torch.float64)).requires_grad_(True)
    loss = Shaped()(now, batch)
    loss.value.backward()
    own = torch.tensor([0.8, 1.0, 1.0]).sum() - 2 * 1.2
    others = -2 * (0.05 / 0.15 + 0.5 / 0.6)
    assert loss.value.item() == pytest.approx((float(own) + others) / 6)
    assert now.grad is not None
    assert now.grad[0, 0] == 0 and now.grad[1, 0] == 0
    assert now.grad[0, 1:].tolist() == pytest.approx([1 / 6, 1 / 6])
    slopes = [p * 0.1 / (p + 0.1) ** 2 for p in (0.05, 0.5)]
    assert now.grad[1, 1:].tolist() == pytest.approx([-2 * s / 6 for s in slopes])
    assert loss.metrics["others/tokens"] == pytest.approx(2 / 6)
    assert loss.metrics["others/probability"] == pytest.approx(0.275)


def test_without_others_it_is_the_clipped_surrogate(make_batch) -> None:
    batch = mixed(make_batch)
    batch.episodes[1] = replace(batch.episodes[1], origins=None)
    batch.logprobs = batch.logprobs.nan_to_num(-1.0)
    now = batch.logprobs + 0.1
    assert Shaped()(now, batch).value == ClippedSurrogate()(now, batch).value


def test_options() -> None:
    for bad in (0.0, -1.0):
        with pytest.raises(UsageError, match="above 0"):
            Shaped(gamma=bad)
    with pytest.raises(UsageError, match="clip_low"):
        Shaped(clip_low=-1.0)
    assert Shaped().gamma == 0.1 and Shaped().words()[0] == "token; of others, a shaped probability"
