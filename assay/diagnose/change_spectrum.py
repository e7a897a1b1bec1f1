"""The spectrum of what training added to the weights: in how few directions does the change lie?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.policies.regions import is_matrix

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Means over the weight matrices of a model that changed at all.

    Attributes:
        shares: numbers of leading directions, as shares of a matrix's smaller side.
        change: share of the squared norm of W' - W that its own leading directions hold, at each of ``shares``.
        weights: the same of W, for comparison.
        stable_rank: ||W' - W||_F^2 / ||W' - W||_2^2 over the smaller side: 1 / side for one direction, 1 if all weigh
            alike.
        matrices: how many changed, of how many.
    """

    shares: tuple[float, ...]
    change: tuple[float, ...]
    weights: tuple[float, ...]
    stable_rank: float
    matrices: tuple[int, int]


def change_spectrum(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], shares: Sequence[float] = SHARES
) -> Spectrum | None:
    """Return the spectrum of the change of every weight matrix, embeddings and output layer left out.

    Args:
        before, after: tensors by name.
        shares: in (0, 1].

    Returns:
        ``None`` if no matrix changed.

    Raises:
        UsageError: tensors of two models, or a share out of range.
    """
    if not shares or not all(0 < s <= 1 for s in shares):
        raise UsageError(f"change_spectrum needs shares in (0, 1], not {list(shares)}")
    rows: list[tuple[list[float], list[float], float]] = []
    total = 0
    for name, old in before.items():
        if not is_matrix(name, old):
            continue
        if name not in after or after[name].shape != old.shape:
            raise UsageError(f"the two checkpoints are not of one model: {name} is in one only, or of another shape")
        total += 1
        moved = after[name].double() - old.double()
        if not bool(moved.any()):
            continue
        own, sigma = torch.linalg.svdvals(moved), torch.linalg.svdvals(old.double())
        stable = float((own**2).sum() / own[0] ** 2) / len(own)
        rows.append((energy(own, shares), energy(sigma, shares), stable))
    if not rows:
        return None
    means = [tuple(float(x) for x in torch.tensor([r[i] for r in rows]).double().mean(0)) for i in (0, 1)]
    return Spectrum(tuple(shares), means[0], means[1], sum(r[2] for r in rows) / len(rows), (len(rows), total))


def energy(singular: Float[Tensor, "K"], shares: Sequence[float]) -> list[float]:
    """Return the share of sum sigma^2 in the leading singular values, at each share of their number; 0 if all are 0.

    Between two whole numbers of directions it is interpolated.
    """
    squares = np.concatenate([[0.0], (singular**2).cumsum(0).cpu().numpy()])
    whole = float(squares[-1])
    return [
        float(np.interp(x * len(singular), range(len(squares)), squares)) / whole if whole > 0 else 0.0 for x in shares
    ]
