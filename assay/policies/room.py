"""How many rows' keys and values a device has room for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SHARE = 0.25
"""Of a device's memory, what keys and values of rows that are decoded together may take."""
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says how much memory a container may take."""


def memory_of(device: torch.device) -> int:
    """Return a device's memory in bytes; of a CPU what the machine has, or a container may take."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in LIMITS:
        text = file.read_text().strip() if file.is_file() else ""
        sizes += [int(text)] if text.isdecimal() else []
    return min(sizes)


def rows_that_fit(model: PreTrainedModel, device: torch.device, columns: int) -> int | None:
    """Return how many rows of so many tokens have keys and values in :data:`SHARE` of a device's memory, at least one.

    It goes by the memory that there is, and not by what is free at the moment: the same rows are decoded together when
    a run is repeated, and give the same bits.

    Args:
        model: of transformers; of one whose configuration does not tell its heads, ``None`` is returned.
        device: where it computes.
        columns: of the longest row, prompt and response.
    """
    config = model.config.get_text_config()
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if not layers or not heads:
        return None
    kept = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    row = 2 * layers * kept * width * model.dtype.itemsize * columns
    return max(1, int(SHARE * memory_of(device)) // max(1, row))
