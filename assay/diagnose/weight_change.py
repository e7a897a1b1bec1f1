"""What training did to the weights: how many moved, and did the spectrum and its leading directions move with them?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import UsageError
from assay.policies.regions import Decomposition, decomposed, is_matrix, largest, leading, rank_of, region

PRECISION = 1e-3
"""A relative change below this is lost when weights are kept in bfloat16, or hardly seen there."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """Angles in degrees between the leading ``rank`` singular directions before and after, of the worse side."""

    rank: int
    mean: float
    largest: float


@dataclass(frozen=True, slots=True)
class MatrixChange:
    """What became of one weight matrix.

    Attributes:
        name: of the parameter.
        entries: how many it has.
        sparsity: share of the entries that are :func:`unchanged`.
        relative: norm of the difference over the norm of the matrix before (Frobenius).
        spectral_shift: see :func:`spectral_shift`.
        rotations: one for each rank asked for.
        principal, low, random: :func:`overlap` of the changed entries with the principal region, with the region of
            small entries, and with any region at random, which is the share of changed entries.
    """

    name: str
    entries: int
    sparsity: float
    relative: float
    spectral_shift: float
    rotations: tuple[Rotation, ...]
    principal: float
    low: float
    random: float

    @property
    def kind(self) -> str:
        """The layer's type: the last part of the parameter's name that says something."""
        parts = [p for p in self.name.split(".") if p not in ("weight", "base_layer")]
        return parts[-1] if parts else self.name


def unchanged(before: Float[Tensor, "..."], after: Float[Tensor, "..."], tolerance: float = PRECISION) -> Tensor:
    """Say of each entry whether |after - before| <= tolerance max(|before|, |after|)."""
    before, after = before.double(), after.double()
    return (after - before).abs() <= tolerance * torch.maximum(before.abs(), after.abs())


def spectral_shift(before: Float[Tensor, "M N"], after: Float[Tensor, "M N"]) -> float:
    """Return ||sigma' - sigma|| / ||sigma||, sigma the singular values in order; 0 if both are zero."""
    return _shift(decomposed(before), decomposed(after))


def _shift(before: Decomposition, after: Decomposition) -> float:
    old, new = before[1], after[1]
    moved, size = float((new - old).norm()), float(old.norm())
    return moved / size if size > 0 else math.inf if moved > 0 else 0.0


def rotation(before: Float[Tensor, "M N"], after: Float[Tensor, "M N"], rank: int) -> Rotation:
    """Return the principal angles between the leading left, and right, singular subspaces of two matrices.

    Their cosines are the singular values of U_k^T U'_k, and of V_k^T V'_k; mean and largest are of the side that turned
    further.

    Raises:
        UsageError: ``rank`` is not between 1 and the smaller side.
    """
    if not 1 <= rank <= min(before.shape):
        raise UsageError(f"a matrix of shape {tuple(before.shape)} has no {rank} leading directions")
    return _turn(decomposed(before), decomposed(after), rank)


def _turn(before: Decomposition, after: Decomposition, rank: int) -> Rotation:
    (u, _, v), (u_, _, v_) = before, after
    sides = [(u[:, :rank], u_[:, :rank]), (v[:rank].mT, v_[:rank].mT)]
    angles = [_angles(a, b) for a, b in sides]
    return Rotation(rank, max(float(a.mean()) for a in angles), max(float(a.max()) for a in angles))


def _angles(a: Float[Tensor, "M K"], b: Float[Tensor, "M K"]) -> Float[Tensor, "K"]:
    """Principal angles in degrees between two subspaces with orthonormal bases."""
    cosines = torch.linalg.svdvals(a.mT @ b).clamp(max=1)
    # Small angles are read off the sines, the cosines of which are flat there.
    sines = torch.linalg.svdvals(b - a @ (a.mT @ b)).flip(0).clamp(max=1)
    return torch.where(cosines**2 > 0.5, sines.asin(), cosines.acos()).rad2deg()


def overlap(mask: Bool[Tensor, "..."], changed: Bool[Tensor, "..."]) -> float:
    """Return the share of a region's entries that changed; compare it with the share of all entries that did."""
    return float((mask & changed).sum()) / max(int(mask.sum()), 1)


def weight_change(
    before: str | Path | Mapping[str, Tensor],
    after: str | Path | Mapping[str, Tensor],
    ranks: Sequence[float] = (0.02, 0.05, 0.1),
    share: float = 0.5,
    tolerance: float = PRECISION,
) -> list[MatrixChange]:
    """Compare every weight matrix of two checkpoints of one model, embeddings and output layer left out.

    Source: "The Path Not Taken" (arXiv 2511.08567), which finds that RLVR leaves the spectrum and the leading
    directions alone, and that its changes avoid principal and prefer small entries, where supervised fine-tuning does
    the reverse.

    Args:
        before, after: folders with a model's safetensors, checkpoints of runs, or tensors by name.
        ranks: numbers of leading directions, as shares of a matrix's smaller side; the regions go by the middle one.
        share: of the entries that a region has.
        tolerance: see :func:`unchanged`.

    Raises:
        UsageError: a folder without weights, of adapters without their run, or of another model.
    """
    old, new = (w if isinstance(w, Mapping) else weights_of(w) for w in (before, after))
    if not 0 < share < 1 or not ranks or not all(0 < r <= 1 for r in ranks):
        raise UsageError(f"weight_change needs share in (0, 1) and ranks in (0, 1], not {share:g} and {list(ranks)}")
    names = [n for n, w in old.items() if is_matrix(n, w)]
    for name in names:
        if name not in new or new[name].shape != old[name].shape:
            raise UsageError(f"the two checkpoints are not of one model: {name} is in one only, or of another shape")
    if not names:
        raise UsageError("there is no weight matrix to compare")
    middle = sorted(ranks)[len(ranks) // 2]
    out = []
    for name in names:
        a, b = old[name].detach().double(), new[name].detach().double()
        svd, svd_ = decomposed(a), decomposed(b)
        changed = ~unchanged(a, b, tolerance)
        size = float(a.norm())
        out.append(
            MatrixChange(
                name=name,
                entries=a.numel(),
                sparsity=1 - float(changed.double().mean()),
                relative=float((b - a).norm()) / size if size > 0 else math.inf,
                spectral_shift=_shift(svd, svd_),
                rotations=tuple(_turn(svd, svd_, k) for k in dict.fromkeys(rank_of(a.shape, r) for r in ranks)),
                principal=overlap(largest(leading(svd, rank_of(a.shape, middle)), share), changed),
                low=overlap(region(a, "low", share), changed),
                random=float(changed.double().mean()),
            )
        )
    return out


def by_kind(changes: Collection[MatrixChange]) -> dict[str, dict[str, float]]:
    """Return means over the layers of each type (``q_proj``, ``up_proj``...), weighted alike, and over ``all``.

    ``rotation@K`` is the mean angle of the leading K directions.
    """
    groups: dict[str, list[MatrixChange]] = {}
    for change in changes:
        groups.setdefault(change.kind, []).append(change)
    groups["all"] = list(changes)
    plain = [f.name for f in fields(MatrixChange) if f.name not in ("name", "entries", "rotations")]
    table = {}
    for kind, members in groups.items():
        table[kind] = {name: _mean([getattr(m, name) for m in members]) for name in plain}
        for k in sorted({r.rank for m in members for r in m.rotations}):
            table[kind][f"rotation@{k}"] = _mean([r.mean for m in members for r in m.rotations if r.rank == k])
    return table


def agreement(changed: Sequence[Bool[Tensor, "..."]]) -> tuple[float, float]:
    """Return how far runs change the same entries: mean Jaccard index over pairs, and what chance would give.

    The index is |A and B| / |A or B| (1 if both are empty); by chance, for masks of densities a and b that are
    independent, about a b / (a + b - a b).

    Raises:
        UsageError: fewer than two masks.
    """
    if len(changed) < 2:
        raise UsageError("agreement is between two or more runs")
    found, chance = [], []
    for one, other in itertools.combinations(changed, 2):
        union = int((one | other).sum())
        found.append(int((one & other).sum()) / union if union else 1.0)
        a, b = (float(m.double().mean()) for m in (one, other))
        chance.append(a * b / (a + b - a * b) if a + b > 0 else 1.0)
    return _mean(found), _mean(chance)


def weights_of(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a model's folder, or of the policy in a run's checkpoint, adapters merged into their model.

    Raises:
        UsageError: there are none, or they are adapters without a run that says of which model.
    """
    from safetensors.torch import load_file

    from assay.engines.target import resolve

    folder = Path(path)
    folder = folder / "policy" if (folder / "policy").is_dir() else folder
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UsageError(f"{folder} holds no weights (*.safetensors)")
    if (folder / "adapter_config.json").is_file():
        if not (folder.parent / "config.toml").is_file():
            raise UsageError(f"{folder} holds adapters without their model; name the checkpoint of their run")
        return dict(resolve(str(folder.parent)).load().merged_state())
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
