"""Which model a plan is of: the recipe's, found without loading its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest
from assay.planning.shapes import Shapes, from_config
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig

_LLAMA = {"model_type": "llama", "max_position_embeddings": 131_072}
_QWEN2 = {"model_type": "qwen2", "max_position_embeddings": 32_768}
_QWEN3 = {"model_type": "qwen3", "max_position_embeddings": 40_960, "head_dim": 128, "vocab_size": 151_936}
_MOE = {**_QWEN3, "model_type": "qwen3_moe", "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1}
_MIXTRAL = {
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 32_768,
}


def _row(
    base: Mapping[str, Any],
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    width: int,
    vocabulary: int,
    tied: bool = False,
    **more: Any,
) -> dict[str, Any]:
    return {
        **base,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": width,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        **more,
    }


# The shapes in the config.json that each is published with.
KNOWN: dict[str, dict[str, Any]] = {
    "HuggingFaceTB/SmolLM2-135M": _row(_LLAMA, 30, 576, 9, 3, 1536, 49_152, True),
    "HuggingFaceTB/SmolLM2-360M": _row(_LLAMA, 32, 960, 15, 5, 2560, 49_152, True),
    "HuggingFaceTB/SmolLM2-1.7B": _row(_LLAMA, 24, 2048, 32, 32, 8192, 49_152, True),
    "meta-llama/Llama-3.2-1B": _row(_LLAMA, 16, 2048, 32, 8, 8192, 128_256, True),
    "meta-llama/Llama-3.2-3B": _row(_LLAMA, 28, 3072, 24, 8, 8192, 128_256, True),
    "meta-llama/Llama-3.1-8B": _row(_LLAMA, 32, 4096, 32, 8, 14_336, 128_256),
    "meta-llama/Llama-3.1-70B": _row(_LLAMA, 80, 8192, 64, 8, 28_672, 128_256),
    "meta-llama/Meta-Llama-3-8B": _row(_LLAMA, 32, 4096, 32, 8, 14_336, 128_256, max_position_embeddings=8192),
    "Qwen/Qwen2.5-0.5B": _row(_QWEN2, 24, 896, 14, 2, 4864, 151_936, True),
    "Qwen/Qwen2.5-1.5B": _row(_QWEN2, 28, 1536, 12, 2, 8960, 151_936, True),
    "Qwen/Qwen2.5-3B": _row(_QWEN2, 36, 2048, 16, 2, 11_008, 151_936, True),
    "Qwen/Qwen2.5-7B": _row(_QWEN2, 28, 3584, 28, 4, 18_944, 152_064),
    "Qwen/Qwen2.5-14B": _row(_QWEN2, 48, 5120, 40, 8, 13_824, 152_064),
    "Qwen/Qwen2.5-32B": _row(_QWEN2, 64, 5120, 40, 8, 27_648, 152_064),
    "Qwen/Qwen2.5-72B": _row(_QWEN2, 80, 8192, 64, 8, 29_568, 152_064),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": _row(_QWEN2, 28, 1536, 12, 2, 8960, 151_936),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": _row(_QWEN2, 28, 3584, 28, 4, 18_944, 152_064),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": _row(_QWEN2, 64, 5120, 40, 8, 27_648, 152_064),
    "Qwen/Qwen3-0.6B": _row(_QWEN3, 28, 1024, 16, 8, 3072, 151_936, True),
    "Qwen/Qwen3-1.7B": _row(_QWEN3, 28, 2048, 16, 8, 6144, 151_936, True),
    "Qwen/Qwen3-4B": _row(_QWEN3, 36, 2560, 32, 8, 9728, 151_936, True),
    "Qwen/Qwen3-8B": _row(_QWEN3, 36, 4096, 32, 8, 12_288, 151_936),
    "Qwen/Qwen3-14B": _row(_QWEN3, 40, 5120, 40, 8, 17_408, 151_936),
    "Qwen/Qwen3-32B": _row(_QWEN3, 64, 5120, 64, 8, 25_600, 151_936),
    "Qwen/Qwen3-30B-A3B": _row(_MOE, 48, 2048, 32, 4, 6144, 151_936, moe_intermediate_size=768),
    "Qwen/Qwen3-235B-A22B": _row(_MOE, 94, 4096, 64, 4, 12_288, 151_936, moe_intermediate_size=1536),
    "mistralai/Mixtral-8x7B-v0.1": _row(_MIXTRAL, 32, 4096, 32, 8, 14_336, 32_000),
}
SUFFIXES = ("-Instruct-2507", "-Thinking-2507", "-Instruct", "-Base", "-Math", "-Coder", "-2507")
"""Endings of names under which the same shapes are published."""


def shapes_of(config: ModelConfig, file: Path | None = None) -> Shapes:
    """Return the shapes of a recipe's model without its weights.

    In order: the config in ``file``, the nano model, a folder's config.json, a table of well-known models, and what
    transformers finds by the name.

    Raises:
        UsageError: there is no such model, or its config does not tell its shapes.
    """
    if file is not None:
        return from_config(_read(file / "config.json" if file.is_dir() else file), file.name)
    source = config.source
    if source == "nano":
        return nano_shapes(config.nano)
    path = Path(source).expanduser()
    if path.is_dir():
        return from_config(_read(path / "config.json"), source)
    if known := _known(source):
        return from_config(known, source)
    if path.suffix == ".gguf" or source.startswith((".", "/", "~")):
        what = "a .gguf file tells its shapes only when it is loaded" if path.is_file() else f"no folder {source}"
        raise UsageError(f"model.source: {what}; give --model-config FILE or --shape layers=... hidden=... heads=...")
    return from_config(_fetched(source), source)


def nano_shapes(nano: NanoConfig) -> Shapes:
    """Return the shapes of the built-in model."""
    width = nano.intermediate or 3 * nano.hidden
    vocabulary = len(dict.fromkeys(nano.alphabet)) + 4  # and the four special tokens
    row = _row(_LLAMA, nano.layers, nano.hidden, nano.heads, nano.heads, width, vocabulary, True)
    return from_config({**row, "max_position_embeddings": nano.context}, "nano")


def _known(source: str) -> dict[str, Any] | None:
    for suffix in ("", *SUFFIXES):
        if suffix and not source.endswith(suffix):
            continue
        if found := KNOWN.get(source.removesuffix(suffix)):
            return found
    return None


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no model config {file}; give a config.json or --shape layers=... hidden=...") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read as a model's config.json: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{file} holds no model config, a table was expected")
    return found


def _fetched(source: str) -> dict[str, Any]:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(source).to_dict()
    except Exception as error:  # what is raised depends on the network, the cache and the hub
        raise UsageError(
            f"model.source = {source!r}: its shapes are not known here and the hub did not tell them"
            f"{nearest(source, KNOWN) if _close(source) else ''}; give --model-config CONFIG.json or --shape "
            f"layers=... hidden=... heads=... ({type(error).__name__})"
        ) from None


def _close(source: str) -> bool:
    return nearest(source, KNOWN).startswith("; did you mean")
