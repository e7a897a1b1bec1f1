"""Whether what moves in a video obeys Newton, as differentiable functions of its frames.

Something bright moves before a dark ground. Positions are in units of a frame's height, y upwards, time in frames.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Proxy = Literal["moment", "centroid"]
"""What velocity is read from: the moment of brightness, over the first frame's brightness, shrinks where the object
fades, as optical flow does; its centroid does not."""


def brightness(frames: Float[Tensor, "N F H W 3"]) -> Float[Tensor, "N F H W"]:
    """Return the light of each pixel, 0 to 1, of frames between -1 and 1."""
    return ((frames + 1) / 2).mean(-1)


def masses(light: Float[Tensor, "N F H W"]) -> Float[Tensor, "N F"]:
    """Return the light of each frame."""
    return light.sum((-1, -2))


def positions(light: Float[Tensor, "N F H W"], proxy: Proxy = "centroid") -> Float[Tensor, "N F 2"]:
    """Return x and y of what is bright, see :data:`Proxy`; in a dark frame 0."""
    height, width = light.shape[-2:]
    x = (torch.arange(width, dtype=light.dtype, device=light.device) + 0.5) / height
    y = 1 - (torch.arange(height, dtype=light.dtype, device=light.device) + 0.5) / height
    moment = torch.stack([(light.sum(-2) * x).sum(-1), (light.sum(-1) * y).sum(-1)], -1)
    whole = masses(light)
    if proxy == "moment":
        whole = whole[:, :1].detach()
    return moment / whole.clamp(min=1e-3)[..., None]


def kinematic_loss(places: Float[Tensor, "N F D"]) -> Float[Tensor, "N"]:
    """mean_t |v_{t+1} - 2 v_t + v_{t-1}|^2, v_t = x_{t+1} - x_t: 0 where the acceleration is constant.

    It goes with the square of the motion: with none it is 0.

    Args:
        places: of at least 4 frames.
    """
    return (places.diff(n=3, dim=1) ** 2).sum(-1).mean(-1)


def mass_loss(features: Float[Tensor, "N F P"], wanted: Float[Tensor, "N G P"]) -> Float[Tensor, "N"]:
    """mean_t |(phi_t - wanted_t) / wanted_1|^2, the mean over the features as well; G is F or 1."""
    return (((features - wanted) / wanted[:, :1].clamp(min=1e-3)) ** 2).mean((-1, -2))


@cache
def _filters(count: int) -> Tensor:
    """Fixed random filters ``(count, 1, 3, 3)``, each of which sums to zero."""
    drawn = torch.randn(count, 1, 3, 3, generator=torch.Generator().manual_seed(157))
    return drawn - drawn.mean((-1, -2), keepdim=True)


def appearance(light: Float[Tensor, "N F H W"], filters: int = 8) -> Float[Tensor, "N F P"]:
    """Return P = 1 + ``filters`` features of what is seen that do not say where: the light of a frame, and the squares
    of what random filters make of it, summed.
    """
    flat = light.reshape(-1, 1, *light.shape[-2:])
    found = [flat.sum((-1, -2))]
    if filters:
        found.append((torch.nn.functional.conv2d(flat, _filters(filters).to(light), padding=1) ** 2).sum((-1, -2)))
    return torch.cat(found, -1).reshape(*light.shape[:2], -1)


def newton_loss(
    frames: Float[Tensor, "N F H W 3"], real: Float[Tensor, "N F H W 3"] | None, proxy: Proxy, filters: int
) -> tuple[Float[Tensor, "N"], Float[Tensor, "N"]]:
    """Return the kinematic and the mass loss of videos, the latter against real ones or, without, their first frames.

    Args:
        frames, real: between -1 and 1.
        proxy: see :data:`Proxy`.
        filters: see :func:`appearance`.
    """
    light = brightness(frames)
    seen = appearance(light, filters)
    # A first frame is like itself.
    seen, wanted = (seen[:, 1:], seen[:, :1]) if real is None else (seen, appearance(brightness(real), filters))
    return kinematic_loss(positions(light, proxy)), mass_loss(seen, wanted)
