"""Base weights in four bits, beside which adapters learn: QLoRA (Dettmers et al., arXiv 2305.14314)."""

from __future__ import annotations

import logging
from typing import Any, Literal

import torch
from torch import Tensor

from assay.errors import UsageError

Bits = Literal["nf4", "fp4"]

BLOCK, SCALES = 64, 256
"""Weights that share a scale, and scales that share one of their own (section 3, double quantisation)."""
WEIGHT_BYTES = (4 + 8 / BLOCK + 32 / (BLOCK * SCALES)) / 8
"""Of a quantised weight, with its part in the scales: 8 bits each, and 32 for each block of them."""


def quantise(model: Any, bits: Bits, dtype: torch.dtype, device: torch.device) -> Any:
    """Put a model on its device with the weights of its linear layers in four bits, and return it.

    A layer computes X W' + b in ``dtype`` with W taken back from four bits, in every pass alike. The output layer, and
    what is no linear layer (embeddings, norms, experts that one tensor holds), stay as they are.

    Args:
        model: of transformers, not on a GPU.
        bits: the 16 values of a weight: ``nf4``, quantiles of the normal distribution, or ``fp4``, floating point.
        dtype: of what is not quantised, and of the computation.
        device: where to.

    Raises:
        UsageError: bitsandbytes is not installed, or cannot work on this device.
    """
    # A look for kernels on the hub, which it warns of, is not for us: layers compute here as they do in training.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        from bitsandbytes.nn import Linear4bit
    except ImportError as error:
        raise UsageError(f"model.quantise needs bitsandbytes: pip install assay[qlora] ({error})") from None
    output, model = model.get_output_embeddings(), model.to(dtype)
    found = [(name, m) for name, m in model.named_modules() if type(m) is torch.nn.Linear and m is not output]
    if not found:
        raise UsageError("model.quantise: the model has no linear layers beside its output; leave it out")
    try:
        for name, layer in found:
            small = Linear4bit(layer.in_features, layer.out_features, layer.bias is not None, dtype, True, bits)
            small.weight.data, small.bias = layer.weight.data, layer.bias
            small.support_avx512bf16_for_cpu = False  # it would compute otherwise where no gradient is wanted
            model.set_submodule(name, small.to(device))
        model = model.to(device)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise UsageError(f"model.quantise does not work on {device}: {str(error).splitlines()[0]}") from error
    model.is_loaded_in_4bit = True  # what PEFT goes by
    return model


def whole(weight: Tensor) -> Tensor:
    """Return a weight as it is computed with: taken back from four bits, if it is in those."""
    state = getattr(weight, "quant_state", None)
    if state is None:
        return weight
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(weight.data, state)
