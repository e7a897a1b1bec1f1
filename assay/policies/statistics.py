"""What the full distribution at each position says beside one token's log-probability, through blocks of logits."""

from __future__ import annotations

from collections.abc import Collection

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from assay.policies.logprobs import CHUNK_BYTES, Head

STATISTICS = frozenset({"self_certainty", "logit", "mean_logprob", "probability_gap", "candidate_logprobs"})
"""The members of :data:`assay.policies.base.QUANTITIES` that are functions of one position's logits."""


def statistics(
    hidden: Float[Tensor, "S D"],
    head: Head,
    targets: Int[Tensor, "S"],
    names: Collection[str],
    temperature: float = 1.0,
    candidates: Int[Tensor, "S n"] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> dict[str, Tensor]:
    """Return the named statistics, ``(S,)`` or ``(S, n)`` each, with gradients.

    At most ``chunk_bytes`` of logits are held at once; a block's are computed again in the backward pass.
    """
    wanted = sorted(names)

    def block(h: Tensor, target: Tensor, candidate: Tensor | None) -> tuple[Tensor, ...]:
        z = head.logits(h)
        # The constants some architectures put on logits are in z; the temperature is not.
        scaled = z if temperature == 1.0 else z / temperature
        out = []
        for name in wanted:
            if name == "logit":
                out.append(z.gather(-1, target[:, None])[:, 0])
            elif name == "self_certainty":
                out.append(z.logsumexp(-1) - z.mean(-1))
            elif name == "mean_logprob":
                out.append(scaled.mean(-1) - scaled.logsumexp(-1))
            elif name == "probability_gap":
                top = (z.topk(2, -1).values - z.logsumexp(-1, keepdim=True)).exp()
                out.append(top[:, 0] - top[:, 1])
            else:
                assert candidate is not None
                out.append(scaled.gather(-1, candidate) - scaled.logsumexp(-1, keepdim=True))
        return tuple(out)

    size = head.rows(chunk_bytes)
    blocks = []
    for start in range(0, max(len(hidden), 1), size):
        rows = slice(start, start + size)
        inputs = (hidden[rows], targets[rows], None if candidates is None else candidates[rows])
        blocks.append(checkpoint(block, *inputs, use_reentrant=False) if torch.is_grad_enabled() else block(*inputs))
    return {name: torch.cat(parts) for name, parts in zip(wanted, zip(*blocks, strict=True), strict=True)}
