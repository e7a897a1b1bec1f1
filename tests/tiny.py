"""Tiny models of many architectures with random weights, large enough that every part of them matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.policies.nano import NanoConfig, nano_tokenizer
from assay.types import Ask, Episode, Group, Task

TOKENIZER = nano_tokenizer(NanoConfig(alphabet="0123456789+-=() \nabc"))
VOCABULARY = len(TOKENIZER)

LLAMA_LIKE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
OTHER = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", LLAMA_LIKE),
    "grouped queries": ("llama", {**LLAMA_LIKE, "num_key_value_heads": 2}),
    "qwen2": ("qwen2", {**LLAMA_LIKE, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen3": ("qwen3", {**LLAMA_LIKE, "num_key_value_heads": 1, "head_dim": 16}),
    "mistral": ("mistral", {**LLAMA_LIKE, "sliding_window": None}),
    "mistral, window 4": ("mistral", {**LLAMA_LIKE, "sliding_window": 4}),
    "qwen2, one layer with window 3": (
        "qwen2",
        {**LLAMA_LIKE, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
    "gemma3, window 5": (
        "gemma3_text",
        {
            **LLAMA_LIKE,
            "head_dim": 8,
            "sliding_window": 5,
            "layer_types": ["sliding_attention", "full_attention"],
            "final_logit_softcapping": 4.0,
        },
    ),
    "granite": (
        "granite",
        {**LLAMA_LIKE, "logits_scaling": 0.5, "attention_multiplier": 0.7, "residual_multiplier": 0.6},
    ),
    "cohere": ("cohere", {**LLAMA_LIKE, "logit_scale": 0.25}),
    "mixtral": ("mixtral", {**LLAMA_LIKE, "num_local_experts": 4, "sliding_window": None}),
    "gpt2": (
        "gpt2",
        {
            **OTHER,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "initializer_range": 0.3,
            "scale_attn_by_inverse_layer_idx": True,
        },
    ),
    "opt": (
        "opt",
        {
            **OTHER,
            "hidden_size": 32,
            "word_embed_proj_dim": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "init_std": 0.3,
        },
    ),
}


def tiny(kind: str, **changes: Any) -> Any:
    """Return a model of ``kind`` as transformers makes it, in evaluation mode, always with the same weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    name, options = KINDS[kind]
    config = AutoConfig.for_model(name, **{**options, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms and biases start at one or zero, which would hide mistakes in them
                parameter.data += 0.2 * torch.randn_like(parameter)
    return model.eval()


def ids(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return ``n`` random tokens, none of them special."""
    return rng.integers(4, VOCABULARY, n)


def episode(prompt: np.ndarray, tokens: np.ndarray) -> Episode:
    return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, "", "eos")


def batch_of(episodes: list[Episode]) -> Batch:
    """Return a batch with one group per distinct prompt, rows in the order given."""
    groups = {e.prompt.tobytes(): i for i, e in enumerate(episodes)}
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 1), (e,)) for e in episodes])
    batch.prompt_group = torch.tensor([groups[e.prompt.tobytes()] for e in episodes])
    return batch


def plain_logits(model: Any, prompt: np.ndarray, tokens: np.ndarray) -> torch.Tensor:
    """Return transformers' own logits ``(T, V)`` for each response token: one sequence, no packing, no cache."""
    sequence = torch.from_numpy(np.concatenate([prompt, tokens]))[None].to(model.device)
    return model(input_ids=sequence, use_cache=False).logits[0, len(prompt) - 1 : -1]


def classifier(folder: Path, labels: int = 1) -> Path:
    """A reward model in a folder, or a classifier of more labels."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", **{**LLAMA_LIKE, "num_labels": labels})
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder
