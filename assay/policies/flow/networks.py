"""What says a velocity: networks over a state, its noise level and what the prompt says."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import UsageError
from assay.policies.flow.config import FlowConfig

BYTES = 256


class PromptReader(torch.nn.Module):
    """A GRU over the bytes of a prompt; a vector of its own stands for no prompt at all."""

    def __init__(self, width: int):
        super().__init__()
        self.embed = torch.nn.Embedding(BYTES, width)
        self.read = torch.nn.GRU(width, width, batch_first=True)
        self.nothing = torch.nn.Parameter(torch.zeros(width))

    def forward(self, tokens: Int[Tensor, "N P"], lengths: Int[Tensor, "N"]) -> Float[Tensor, "N W"]:
        """Return what each prompt says; tokens after its length are not read, and of none it is ``nothing``."""
        if tokens.shape[1] == 0:
            return self.nothing.expand(len(tokens), -1)
        states, _ = self.read(self.embed(tokens))
        last = states[torch.arange(len(tokens)), (lengths - 1).clamp(min=0)]
        return torch.where(lengths[:, None] > 0, last, self.nothing)


class MLP(torch.nn.Module):
    """Hidden layers with SiLU over state, level, prompt and draft, side by side."""

    def __init__(self, config: FlowConfig):
        super().__init__()
        size, layers = math.prod(config.shape), []
        width = size * (1 + config.edits) + 1 + config.prompt
        for _ in range(config.layers):
            layers += [torch.nn.Linear(width, config.hidden), torch.nn.SiLU()]
            width = config.hidden
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(width, size))

    def forward(
        self, x: Float[Tensor, "N D"], level: Float[Tensor, "N"], prompt: Tensor | None, draft: Tensor | None
    ) -> Float[Tensor, "N D"]:
        more = [seen for seen in (prompt, draft) if seen is not None]
        return self.layers(torch.cat([x, level[:, None], *more], -1))


class UNet(torch.nn.Module):
    """diffusers' U-Net over pictures; the frames of a video are its channels, and those of a draft. The prompt joins
    the noise level."""

    def __init__(self, config: FlowConfig):
        super().__init__()
        try:
            from diffusers import UNet2DModel
        except ImportError as error:
            raise UsageError(f"model.flow: a unet needs diffusers: pip install assay[diffusion] ({error})") from None
        self.shape = config.shape
        frames = config.shape[0] if len(config.shape) == 4 else 1
        widths = tuple(config.hidden * 2**level for level in range(config.layers))
        self.net: Any = UNet2DModel(
            sample_size=config.shape[-3:-1],
            in_channels=3 * frames * (1 + config.edits),
            out_channels=3 * frames,
            layers_per_block=1,
            block_out_channels=widths,
            down_block_types=("DownBlock2D",) * config.layers,
            up_block_types=("UpBlock2D",) * config.layers,
            norm_num_groups=8,
            class_embed_type="identity" if config.prompt else None,
        )
        self.project = torch.nn.Linear(config.prompt, 4 * config.hidden) if config.prompt else None

    def forward(
        self, x: Float[Tensor, "N D"], level: Float[Tensor, "N"], prompt: Tensor | None, draft: Tensor | None
    ) -> Float[Tensor, "N D"]:
        height, width, colours = self.shape[-3:]
        seen = x if draft is None else torch.cat([x, draft], -1)
        pictures = seen.reshape(len(x), -1, height, width, colours).permute(0, 1, 4, 2, 3).flatten(1, 2)
        said = {} if self.project is None or prompt is None else {"class_labels": self.project(prompt)}
        # Its embedding of time was made for a thousand levels.
        found = self.net(pictures, 1000 * level, **said).sample
        return found.reshape(len(x), -1, colours, height, width).permute(0, 1, 3, 4, 2).flatten(1)


def network(config: FlowConfig, seed: int) -> torch.nn.ModuleDict:
    """Return a flow's network ``velocity`` and, where it reads one, ``prompt``, with weights drawn from ``seed``.

    Raises:
        UsageError: what it needs is not installed.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        parts: dict[str, torch.nn.Module] = {"velocity": (MLP if config.network == "mlp" else UNet)(config)}
        if config.prompt:
            parts["prompt"] = PromptReader(config.prompt)
    return torch.nn.ModuleDict(parts)
