"""Which flow a recipe's ``[model.flow]`` describes."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assay.types import Sampler


class FlowConfig(BaseModel):
    """What is drawn, by which network, and with how much noise."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    shape: tuple[int, ...] = (2,)
    """Of a sample: ``[D]`` a point, ``[H, W, 3]`` a picture, ``[F, H, W, 3]`` a video of F frames."""
    network: Literal["mlp", "unet"] = "mlp"
    """``mlp``: on the sample as one vector; ``unet``: diffusers' U-Net on pictures, a video's frames side by side as
    channels (extra ``diffusion``)."""
    hidden: int = Field(96, gt=0, le=2**14)
    """Width of the hidden layers; of a U-Net's first level, which divides by 8."""
    layers: int = Field(3, gt=0, le=64)
    """Hidden layers; of a U-Net its levels, each of half the resolution and twice the width."""
    prompt: int = Field(0, ge=0, le=2**14)
    """Width of what reads the prompt; 0 draws the same whatever is asked."""
    noise: float = Field(0.7, gt=0, le=10)
    """Noise level a of sampled steps at temperature 1; the temperature multiplies it, and at 0 there is none."""
    sampler: Sampler = "sde"
    """How noise enters a step, see :data:`assay.types.Sampler`."""
    shift: float = Field(1.0, gt=0)
    """Above 1, more of the steps are taken where there is much noise."""
    guidance: float = Field(1.0, ge=0)
    """w of classifier-free guidance: v = v(none) + w (v(prompt) - v(none)), in sampling and in learning alike."""
    edits: bool = False
    """Whether the network sees a draft beside what it draws, where there is one: ``task.meta["draft"]`` of a
    demonstration, or the draft that a rollout has drawn over."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of supervised samples whose prompt is hidden, so that the flow knows what to draw without one."""

    language: str = ""
    """A language model that writes a thought before each sample, which the flow reads after the prompt: ``nano``, a
    folder, a hub id; both learn. ``rollout.max_tokens`` is then the longest thought's."""
    steps: int = Field(10, gt=0, le=10_000)
    """Steps of a drawing after a thought."""

    @model_validator(mode="after")
    def _fits(self) -> FlowConfig:
        if len(self.shape) not in (1, 3, 4) or min(self.shape, default=0) < 1 or math.prod(self.shape) > 2**24:
            raise ValueError(
                f"shape = {list(self.shape)} is none of a point [D], a picture [H, W, 3], a video [F, H, W, 3]"
            )
        if len(self.shape) > 1 and self.shape[-1] != 3:
            raise ValueError(f"shape = {list(self.shape)}: pictures have three channels, which stand last")
        if self.guidance != 1 and not self.prompt:
            raise ValueError("guidance wants a prompt that is read: set prompt to the width of its reader")
        if self.language and not self.prompt:
            raise ValueError("a thought wants a flow that reads it: set prompt to the width of its reader")
        if self.network == "unet":
            if len(self.shape) == 1:
                raise ValueError("a unet draws pictures and videos; a point wants network = mlp")
            if self.hidden % 8:
                raise ValueError(f"hidden = {self.hidden} does not divide by 8, as a unet's width must")
            if any(side % 2 ** (self.layers - 1) for side in self.shape[-3:-1]):
                raise ValueError(f"layers = {self.layers} halve the sides of {list(self.shape)} too often")
        return self
