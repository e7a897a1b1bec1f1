"""A caption as characters: convolutions over them, and numbers on top."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import UsageError

CHARACTERS = 256
"""Bytes of UTF-8; 0 fills up."""


def encoded(captions: Sequence[str], length: int) -> Int[Tensor, "M L"]:
    """Return the first ``length`` bytes of each caption, filled up with 0."""
    out = torch.zeros(len(captions), length, dtype=torch.int64)
    for row, caption in zip(out, captions, strict=True):
        read = list(caption.encode("utf-8", "replace")[:length])
        row[: len(read)] = torch.tensor(read, dtype=torch.int64)
    return out


class CaptionNetwork(torch.nn.Module):
    """Six convolutions over characters with three poolings, and two layers.

    Widths 7, 7, 3, 3, 3, 3; maxima over three after the first, the second and the last.

    Args:
        outputs: numbers for a caption.
        length: characters that are read.
        width: channels; the hidden layer has twice as many.

    Raises:
        UsageError: ``length`` leaves nothing after the poolings, or a number below 1.
    """

    def __init__(self, outputs: int, length: int = 256, width: int = 64):
        super().__init__()
        left = ((((length - 6) // 3) - 6) // 3 - 8) // 3
        if min(outputs, width) < 1 or left < 1:
            raise UsageError(f"captions: length {length} must be at least 123 characters, and width {width} at least 1")
        self.length = length
        self.letters = torch.nn.Embedding(CHARACTERS, 32, padding_idx=0)

        def convolution(inputs: int, size: int) -> list[torch.nn.Module]:
            return [torch.nn.Conv1d(inputs, width, size), torch.nn.ReLU()]

        self.layers = torch.nn.Sequential(
            *convolution(32, 7),
            torch.nn.MaxPool1d(3),
            *convolution(width, 7),
            torch.nn.MaxPool1d(3),
            *(layer for _ in range(4) for layer in convolution(width, 3)),
            torch.nn.MaxPool1d(3),
            torch.nn.Flatten(),
            torch.nn.Linear(left * width, 2 * width),
            torch.nn.ReLU(),
            torch.nn.Linear(2 * width, outputs),
        )

    def forward(self, captions: Sequence[str]) -> Float[Tensor, "M O"]:
        found: Tensor = self.layers(self.letters(encoded(captions, self.length)).transpose(1, 2))
        return found
