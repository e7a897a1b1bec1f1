"""What vLLM has to know of a model before it gets its weights."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

from assay.policies.causal_lm import CausalLM

CPU_CACHE = 2.0
"""GiB of keys and values on a CPU, where vLLM would else take most of the memory."""

STEP = 4096
"""Tokens of a step on a CPU, at least."""


def cpu_cache(cuda: bool) -> int | None:
    """Return the bytes of keys and values where nothing else says how many: on a CPU, :data:`CPU_CACHE`."""
    return None if cuda or os.environ.get("VLLM_CPU_KVCACHE_SPACE") else int(CPU_CACHE * 2**30)


def on_a_cpu(context: int | None) -> dict[str, Any]:
    """Return the arguments of vLLM's that a CPU wants other than they would be.

    Prompts are not computed in parts: vLLM fails where the part belongs to a request with a seed, whose generator's
    offset it sets back, and a CPU's has none. A step must then have room for the longest prompt. Blocks of the cache
    are smaller than the 128 tokens they would have, since prompts share whole blocks only.
    """
    return {"enable_chunked_prefill": False, "max_num_batched_tokens": max(STEP, context or 0), "block_size": 32}


def architecture(model: Any) -> str:
    """Return the name of a model's class: its own, where sharding has put one in front that is named otherwise."""
    from torch.distributed.fsdp import FSDPModule

    return next(kind.__name__ for kind in type(model).__mro__ if not issubclass(kind, FSDPModule))


def precision(policy: CausalLM) -> str:
    """Return the type of number that a policy computes in, by vLLM's name; one that is sharded keeps its weights in
    float32 all the same."""
    return str(getattr(policy, "dtype", policy.model.dtype)).removeprefix("torch.")


def write_description(policy: CausalLM, folder: Path) -> None:
    """Write everything of a model but its weights: what vLLM has to know before it gets those."""
    config = deepcopy(policy.model.config)
    config.architectures = [architecture(policy.model)]
    config.save_pretrained(folder)
    tokenizer = policy.tokenizer
    if not policy.chat and getattr(tokenizer, "chat_template", None):
        tokenizer = deepcopy(tokenizer)
        tokenizer.chat_template = None
    tokenizer.save_pretrained(folder)
