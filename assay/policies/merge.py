"""The weights an inference engine loads: those of the base model, with what low-rank adapters add to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from assay.errors import UsageError
from assay.policies.quantised import whole

BASE = ".base_layer"
"""What PEFT inserts into the name of a layer that it wraps."""


@torch.no_grad()
def merged_state(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of a transformers model under the names its files on the hub have, W + s B A where adapted.

    The sum is taken in float32 or better and rounded once, to the precision of W; of a W in four bits, that which it is
    computed in. Names and shapes are those that
    ``save_pretrained`` writes and ``from_pretrained`` reads, so experts that the model holds in one tensor come one by
    one; tied weights come once, under the name of the first. A weight that is not adapted may be the very tensor that
    trains, an adapted one is new: whoever keeps a tensor longer than until the next step copies it. Weights that are
    sharded over ranks are gathered one at a time, so every rank has to go through all of them.

    Args:
        model: the model itself, in which PEFT may have put LoRA layers; its weights are not changed.

    Raises:
        UsageError: the input embedding is adapted and shared with the output layer, which is not.
    """
    weights = _weights(model)
    if not _renamed(model):
        yield from weights
        return
    from transformers.core_model_loading import revert_weight_conversion

    yield from revert_weight_conversion(model, dict(weights)).items()


def _weights(model: Any) -> Iterable[tuple[str, Tensor]]:
    """Every distinct weight under the name it would have without adapters."""
    layers = _lora_layers(model)
    shared = {id(p) for p in (getattr(model.get_output_embeddings(), "weight", None),) if p is not None}
    ignored = getattr(model, "_keys_to_ignore_on_save", None) or ()
    # Unlike a state dict, this leaves a tied weight's second name out; of the buffers it takes those that are saved.
    distinct = dict(model.named_parameters()) | dict(_saved_buffers(model))
    for name, weight in distinct.items():
        if ".lora_" in name or name in ignored:
            continue
        plain = name.replace(BASE, "")
        layer = layers.get(plain)
        if layer is None:
            yield plain, _whole(whole(weight).detach())
            continue
        if id(weight) in shared:
            raise UsageError(
                "model.lora.targets adapts the input embedding, which this model shares with its output layer: no "
                "model of its kind has the merged weights; leave the embedding out"
            )
        merged = dense = whole(weight).detach()
        for adapter in layer.active_adapters:
            delta = layer.get_delta_weight(adapter)
            merged = merged.to(torch.promote_types(merged.dtype, torch.float32)) + delta.to(merged.device)
        yield plain, _whole(merged.to(dense.dtype))


def _lora_layers(model: torch.nn.Module) -> dict[str, Any]:
    """PEFT's layers by the name, without adapters, of the weight that each adapts."""
    if not any(".lora_" in name for name, _ in model.named_parameters()):
        return {}
    from peft.tuners.lora import LoraLayer

    return {
        f"{name.replace(BASE, '')}.{getattr(module, 'parameter_name', 'weight')}": module
        for name, module in model.named_modules()
        if isinstance(module, LoraLayer)
    }


def _saved_buffers(model: torch.nn.Module) -> Iterator[tuple[str, Tensor]]:
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(prefix, recurse=False):
            if name.rpartition(".")[2] not in module._non_persistent_buffers_set:
                yield name, buffer


def _whole(weight: Tensor) -> Tensor:
    """The whole of a weight of which this rank may hold a shard."""
    gather = getattr(weight, "full_tensor", None)
    return weight if gather is None else gather()


def _renamed(model: Any) -> bool:
    """Whether the model's files hold its weights under other names or in other shapes than the model does."""
    if getattr(model, "_weight_conversions", None) is not None:
        return True
    from transformers.conversion_mapping import get_model_conversion_mapping

    return bool(get_model_conversion_mapping(model, add_legacy=False))
