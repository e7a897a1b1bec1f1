"""Regions of a weight matrix: which of its entries carry its leading directions, and which are small."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import UsageError

Region = Literal["principal", "off_principal", "low", "high", "safe", "random"]


TABLES = ("embed", "wte", "wpe", "lm_head", "output_layer")
"""What models call their embeddings and output layers: one row per token, no map between directions."""


def is_matrix(name: str, weight: Tensor) -> bool:
    """Whether a parameter maps directions to directions: a matrix, and by its name no embedding or output layer."""
    return weight.ndim == 2 and not any(word in name for word in TABLES)


def matrices(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Return the parameters of a module that are matrices in the sense of :func:`is_matrix`, by name."""
    embedded = {id(p) for m in module.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()}
    return {n: p for n, p in module.named_parameters() if is_matrix(n, p) and id(p) not in embedded}


def rank_of(shape: torch.Size | tuple[int, ...], share: float) -> int:
    """Return the number of leading directions that ``share`` of all stands for, at least one."""
    return max(1, round(share * min(shape)))


Decomposition = tuple[Tensor, Tensor, Tensor]
"""U ``(M, K)``, singular values ``(K,)`` and V^T ``(K, N)`` of a matrix, K its smaller side."""


def decomposed(weight: Float[Tensor, "M N"]) -> Decomposition:
    """Return the singular value decomposition of a matrix, in float64."""
    u, s, v = torch.linalg.svd(weight.detach().double(), full_matrices=False)
    return u, s, v


def leading(svd: Decomposition, rank: int) -> Float[Tensor, "M N"]:
    """Return the best approximation of this rank of a decomposed matrix."""
    u, s, v = svd
    return (u[:, :rank] * s[:rank]) @ v[:rank]


def largest(values: Float[Tensor, "M N"], share: float) -> Bool[Tensor, "M N"]:
    """Return the ``share`` of all entries with the largest absolute values, rounded down to a whole number."""
    count = int(share * values.numel() + 1e-9)
    mask = torch.zeros(values.numel(), dtype=torch.bool, device=values.device)
    mask[values.detach().abs().flatten().argsort(descending=True, stable=True)[:count]] = True
    return mask.reshape(values.shape)


def region(
    weight: Float[Tensor, "M N"],
    kind: Region,
    share: float = 0.5,
    rank: float = 0.05,
    generator: torch.Generator | None = None,
) -> Bool[Tensor, "M N"]:
    """Return the entries of a matrix that belong to a region.

    - ``principal``: the ``share`` with the largest absolute values in its approximation of rank k;
    - ``off_principal``: all others;
    - ``high``, ``low``: the ``share`` of largest and of smallest absolute values in the matrix itself;
    - ``safe``: those that are off principal or low, or both;
    - ``random``: each entry with probability ``share``.

    Source: "The Path Not Taken" (arXiv 2511.08567), sections 4.2 and 5.1.

    Args:
        weight: the matrix.
        kind: see above.
        share: of the entries, in (0, 1).
        rank: k as a share of the smaller side, in (0, 1].
        generator: of the random region; torch's own if left out.

    Raises:
        UsageError: ``share`` or ``rank`` out of range, or an unknown region.
    """
    if not 0 < share < 1 or not 0 < rank <= 1:
        raise UsageError(f"a region needs share in (0, 1) and rank in (0, 1], not {share:g} and {rank:g}")
    if kind in ("principal", "off_principal"):
        mask = largest(leading(decomposed(weight), rank_of(weight.shape, rank)), share)
        return mask if kind == "principal" else ~mask
    if kind == "high":
        return largest(weight, share)
    if kind == "low":
        return ~largest(weight, 1 - share)
    if kind == "safe":
        return region(weight, "off_principal", share, rank) | region(weight, "low", share)
    if kind == "random":
        return (torch.rand(weight.shape, generator=generator) < share).to(weight.device)
    raise UsageError(f"no region is called {kind!r}; known: principal, off_principal, low, high, safe, random")
