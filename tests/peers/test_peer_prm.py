"""The loss of TRL's trainer of process reward models: that of transformers' token classifiers, which it calls.

TRL's trainer labels the separator after each step and everything else -100, and has no loss of its own.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers.loss.loss_utils import ForTokenClassification

from assay.rewards.step_models.losses import labelled_loss


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("known", [1.0, 0.7])
def test_hard_labels_are_learned_as_by_trl(seed: int, known: float) -> None:
    """Value and gradient, of random logits of four padded rows with up to six steps each."""
    made = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, 30, 2, generator=made, dtype=torch.float64).requires_grad_()
    targets = torch.full((4, 30), -100)
    steps: list[tuple[int, list[int], list[float | None]]] = []
    for row in range(4):
        ends = (
            torch.randperm(30, generator=made)[: 1 + int(torch.randint(6, (), generator=made))].sort().values.tolist()
        )
        right = (torch.rand(len(ends), generator=made) < 0.5).tolist()
        told = (torch.rand(len(ends), generator=made) < known).tolist()
        labels = [float(r) if t else None for r, t in zip(right, told, strict=True)]
        for t, label in zip(ends, labels, strict=True):
            if label is not None:
                targets[row, t] = int(label)
        steps.append((row, ends, labels))
    count = int((targets >= 0).sum())
    assert count
    theirs = ForTokenClassification(logits, targets, SimpleNamespace(num_labels=2))
    [wanted] = torch.autograd.grad(theirs, logits)
    terms = [labelled_loss(logits[row, ends, 1] - logits[row, ends, 0], labels, "hard") for row, ends, labels in steps]
    mine = torch.stack(terms).sum() / count
    [found] = torch.autograd.grad(mine, logits)
    assert float(mine) == pytest.approx(float(theirs), abs=1e-5)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
