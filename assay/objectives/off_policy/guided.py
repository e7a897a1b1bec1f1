"""The clipped surrogate, and a smoothed ratio where a response was sampled under another prompt than it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.policy_loss import Ratios
from assay.ops import masked_mean
from assay.registry import part

Form = Literal["smoothed", "constant", "power", "plain", "clipped"]

LEAST = 1e-4
"""The least the quantile of ratios is taken as."""


@part("objective", "guided")
@dataclass(frozen=True, slots=True)
class Guided(ClippedSurrogate):
    """l_it = -g(w_it) A_it, without a clip, on responses that were sampled under another prompt; as ``clip`` elsewhere.

    w_it = pi(y_t | x, y_<t) / pi_old(y_t | x', y_<t): the prompt x that is trained in the numerator, x', under
    which it was sampled, in the denominator. Its exponent is clamped to [-20, 20]. The form of g:

    - ``smoothed``: w / (w + q) with q = max(quantile of w, 1e-4), a constant, over the response's learnable tokens,
      with linear interpolation;
    - ``constant``: w / (w + gamma);
    - ``power``: w ** gamma;
    - ``plain``: w;
    - ``clipped``: w, with the clip that own tokens have.

    At w = q the ``smoothed`` form is 1/2 with a slope of 1/4 in log w; as w grows it is bounded by 1.

    Source: Guide (arXiv 2506.13923) and its authors' code.

    Args:
        form: see above.
        quantile: in [0, 1].
        gamma: above 0.

    Raises:
        UsageError: ``quantile`` or ``gamma`` out of range.
    """

    form: Form = "smoothed"
    quantile: float = 0.9
    gamma: float = 0.1

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if not 0 <= self.quantile <= 1 or self.gamma <= 0:
            raise UsageError(
                f"objective 'guided': quantile {self.quantile:g} must be in [0, 1], gamma {self.gamma:g} above 0"
            )

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss, metrics = ClippedSurrogate.surrogate(self, r)
        theirs = r.mask & elsewhere(r.batch)[:, None]
        if self.form != "clipped":
            loss = torch.where(theirs, -self.weight(torch.where(theirs, r.ratio, 1), theirs) * r.advantages, loss)
        with torch.no_grad():
            metrics["guided/tokens"] = masked_mean(theirs.to(loss.dtype), r.mask)
            if bool(theirs.any()):
                metrics["guided/ratio"] = masked_mean(r.ratio.detach(), theirs)
        return loss, metrics

    def weight(self, w: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Float[Tensor, "N T"]:
        """g(w), with the gradient of w; values outside the mask do not matter."""
        if self.form == "smoothed":
            return w / (w + row_quantile(w, mask, self.quantile).clamp(min=LEAST)[:, None])
        if self.form == "constant":
            return w / (w + self.gamma)
        return w**self.gamma if self.form == "power" else w

    def words(self) -> tuple[str, str]:
        ratio, bound = ClippedSurrogate.words(self)
        return f"{ratio}; under another prompt, {self.form}", bound


def elsewhere(batch: Batch) -> Bool[Tensor, "N"]:
    """Samples that were sampled under another prompt than the one they are trained under."""
    rows = [
        e.sampled_prompt is not None
        and (len(e.sampled_prompt) != len(e.prompt) or bool((e.sampled_prompt != e.prompt).any()))
        for e in batch.episodes
    ]
    return torch.tensor(rows, dtype=torch.bool, device=batch.mask.device)


@torch.no_grad()
def row_quantile(values: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], q: float) -> Float[Tensor, "N"]:
    """The quantile of each row's values on the mask, with linear interpolation; 0 of an empty row."""
    rows = [torch.quantile(v[m], q) if bool(m.any()) else v.new_zeros(()) for v, m in zip(values, mask, strict=True)]
    return torch.stack(rows) if rows else values.new_zeros(0)
