"""Maps of pictures by a network that was trained on others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from assay.errors import UsageError

MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, by which such networks are shown pictures."""


class Network:
    """Returns the last map of a convolutional network for a ``PIL.Image``: ``(C, H, W)``, for ResNet-50 (2048, 7, 7).

    Args:
        name: of a model that transformers has, on a hub or in a folder, such as ``microsoft/resnet-50``.
        pixels: on each side of what it is shown; the picture is stretched to that.

    Raises:
        UsageError: there is no such model, or it makes no map.
    """

    def __init__(self, name: str, pixels: int = 224):
        from transformers import AutoModel

        try:
            self.model: Any = AutoModel.from_pretrained(name).eval()
        except (OSError, ValueError) as error:
            raise UsageError(f"no network {name!r} to make maps of pictures: {str(error).splitlines()[0]}") from error
        self.name, self.pixels = name, pixels

    @torch.no_grad()
    def __call__(self, image: Any) -> Float[np.ndarray, "C H W"]:
        shown = np.asarray(image.convert("RGB").resize((self.pixels, self.pixels), 2), dtype=np.float32) / 255
        scaled = (shown - np.array(MEAN, np.float32)) / np.array(SPREAD, np.float32)
        found = self.model(pixel_values=torch.from_numpy(scaled.transpose(2, 0, 1).copy())[None]).last_hidden_state
        if found.ndim != 4:
            raise UsageError(f"network {self.name!r} makes no map of a picture; take one such as microsoft/resnet-50")
        out: np.ndarray = found[0].float().numpy()
        return out
