"""The same model in another basis: rotations of weight matrices that cancel each other."""

from __future__ import annotations

import torch

from assay.errors import UsageError


@torch.no_grad()
def rotate_values(module: torch.nn.Module, seed: int = 0) -> list[str]:
    """Rotate what attention heads carry, in place: W_v <- R W_v and W_o <- W_o R^T, R random orthogonal for each head.

    Outputs stay as they are (up to rounding), and so do the singular values of the two together, but not which entries
    are large nor, within a head, which directions lead. It is a control: where in the weights RL learns, if the model's
    own geometry decides that, must change with it, and entries that changed in the model as it was and in the rotated
    one must agree no more than by chance (:func:`assay.diagnose.weight_change.agreement`).

    Source: the function-preserving rotations of "The Path Not Taken" (arXiv 2511.08567).

    Args:
        module: a transformer whose attention layers have linear ``v_proj`` and ``o_proj``, as the Llama family's do;
            heads that share their values share R.
        seed: of the rotations.

    Returns:
        The names of the matrices that were rotated.

    Raises:
        UsageError: there are no such layers, or their sizes do not say where heads begin.
    """
    generator, names = torch.Generator().manual_seed(seed), []
    for name, layer in module.named_modules():
        value, out = (getattr(layer, part, None) for part in ("v_proj", "o_proj"))
        if not isinstance(value, torch.nn.Linear) or not isinstance(out, torch.nn.Linear):
            continue
        size = int(getattr(layer, "head_dim", 0))
        if size < 1 or value.out_features % size or out.in_features % value.out_features:
            raise UsageError(f"{name}: {value.out_features} values do not divide into heads of {size}")
        shared = out.in_features // value.out_features  # heads that read the same values stand side by side
        for k in range(value.out_features // size):
            rotation = _orthogonal(size, generator).to(value.weight)
            mine = slice(k * size, (k + 1) * size)
            value.weight[mine] = rotation @ value.weight[mine]
            if value.bias is not None:
                value.bias[mine] = rotation @ value.bias[mine]
            for head in range(k * shared, (k + 1) * shared):
                theirs = slice(head * size, (head + 1) * size)
                out.weight[:, theirs] = out.weight[:, theirs] @ rotation.T
        names += [f"{name}.v_proj.weight", f"{name}.o_proj.weight"]
    if not names:
        raise UsageError(
            "this model has no attention layers with linear v_proj and o_proj, whose values could be rotated"
        )
    return names


def _orthogonal(size: int, generator: torch.Generator) -> torch.Tensor:
    """Return an orthogonal matrix that is uniform over the group (Haar's measure)."""
    q, r = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))
    return q * r.diagonal().sign()
