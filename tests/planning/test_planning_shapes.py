"""Shapes: parameters as published and as transformers makes them, keys and values, what the backward pass needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.planning.memory import kept_numbers
from assay.planning.models import KNOWN, nano_shapes, shapes_of
from assay.planning.shapes import Shapes, from_config, from_options
from assay.planning.workload import adapter_parameters
from assay.policies.loading import LoraConfig, ModelConfig
from assay.policies.nano import NanoConfig

# Parameters as the models' own files state them.
PUBLISHED = {
    "meta-llama/Meta-Llama-3-8B": 8_030_261_248,
    "meta-llama/Llama-3.1-70B": 70_553_706_496,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-7B": 7_615_616_512,
    "Qwen/Qwen2.5-32B": 32_763_876_352,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "HuggingFaceTB/SmolLM2-135M": 134_515_008,
}
SMALL = {
    "vocab_size": 320,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"tie_word_embeddings": True},
    "llama with biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "llama with narrow heads": {"model_type": "llama", "head_dim": 8},
    "mistral": {},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 32},
    "phi3": {"pad_token_id": 0},
    "gemma3_text": {"head_dim": 32},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {**EXPERTS, "head_dim": 32},
    "qwen3_moe, one dense layer": {"model_type": "qwen3_moe", **EXPERTS, "head_dim": 32, "mlp_only_layers": [1]},
    "qwen2_moe": {**EXPERTS, "shared_expert_intermediate_size": 56, "decoder_sparse_step": 1},
    "qwen2_moe, every second layer": {"model_type": "qwen2_moe", **EXPERTS, "decoder_sparse_step": 2},
    "gpt2": {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128},
    "starcoder2": {},
}


def on_meta(config: dict[str, Any]) -> Any:
    """A transformers model of a configuration, without weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    options = {k: v for k, v in config.items() if k != "model_type"}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **options))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_published(name: str) -> None:
    assert from_config(KNOWN[name], name).parameters == PUBLISHED[name]


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_of_the_model_that_transformers_makes(name: str) -> None:
    config = {"model_type": name.split(",")[0].split(" ")[0], **SMALL, **CONFIGS[name]}
    model = on_meta(config)
    told = from_config(model.config.to_dict(), name)
    assert told.parameters == sum(p.numel() for p in model.parameters())
    assert told.tied == (model.get_input_embeddings().weight is model.get_output_embeddings().weight)
    assert (told.layers, told.hidden, told.heads) == (3, 64, 4)


def test_active_parameters_leave_out_the_experts_that_a_token_does_not_use() -> None:
    config = {"model_type": "qwen3_moe", **SMALL, **CONFIGS["qwen3_moe"]}
    # Of three layers with six experts of 3 x 64 x 40 each, four are idle.
    shapes = from_config(on_meta(config).config.to_dict())
    assert shapes.parameters - shapes.active_parameters == 3 * 4 * 3 * 64 * 40
    assert from_config(KNOWN["Qwen/Qwen3-235B-A22B"]).active_parameters == pytest.approx(22e9, rel=0.02)
    assert from_config(KNOWN["Qwen/Qwen3-30B-A3B"]).active_parameters == pytest.approx(3.3e9, rel=0.02)
    dense = from_config(KNOWN["Qwen/Qwen3-8B"])
    assert dense.active_parameters == dense.parameters


def test_keys_and_values_of_a_token() -> None:
    # Two of 32 layers x 8 heads x 128 numbers of 2 bytes each.
    assert from_config(KNOWN["meta-llama/Meta-Llama-3-8B"]).kv_bytes(2) == 131_072
    assert from_config(KNOWN["Qwen/Qwen2.5-7B"]).kv_bytes(2) == 2 * 28 * 4 * 128 * 2


def test_the_experts_that_rows_touch() -> None:
    shapes = from_config(KNOWN["mistralai/Mixtral-8x7B-v0.1"])
    rest = shapes.always + shapes.head
    assert shapes.touched(1) == pytest.approx(rest + 32 * 2 * shapes.expert)
    # Of 8 experts two rows of two each touch 8 (1 - (3/4)^2) = 3.5 on average.
    assert shapes.touched(2) == pytest.approx(rest + 32 * 3.5 * shapes.expert)
    assert shapes.touched(1e4) == pytest.approx(rest + 32 * 8 * shapes.expert)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_the_nano_model(layers: int, heads: int, half: int) -> None:
    from assay.policies.nano import nano_model, nano_tokenizer

    nano = NanoConfig(hidden=heads * half * 2, layers=layers, heads=heads, alphabet="0123456789+=\n0")
    model = nano_model(nano, len(nano_tokenizer(nano)), 0)
    assert nano_shapes(nano).parameters == sum(p.numel() for p in model.parameters())


def test_adapters_are_as_many_as_peft_makes() -> None:
    peft = pytest.importorskip("peft")
    from assay.policies.nano import nano_model

    nano = NanoConfig(hidden=32, layers=2, heads=4)
    for targets in ("all-linear", ["q_proj", "down_proj"]):
        adapted = peft.get_peft_model(
            nano_model(nano, 99, 0), peft.LoraConfig(r=5, target_modules=targets, task_type="CAUSAL_LM")
        )
        count = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
        assert adapter_parameters(nano_shapes(nano), LoraConfig(rank=5, targets=targets)) == count


@pytest.mark.parametrize(
    ("dtype", "size", "kv_heads"), [("float32", 4, 4), ("float32", 4, 2), ("bfloat16", 2, 4), ("bfloat16", 2, 2)]
)
def test_what_a_layer_keeps_is_what_torch_saves(dtype: str, size: int, kv_heads: int) -> None:
    """The bytes of all tensors that autograd saves in a packed pass, of two depths; their difference is the layers'."""
    shared, length, rows = 32, 97, 4
    packed, in_rows = shared + rows * (length - 1), rows * (shared + length - 1)
    config = {**SMALL, "num_key_value_heads": kv_heads, "intermediate_size": 192, "model_type": "llama"}
    kept, padded = kept_numbers(from_config(config), size)
    expected = size * (packed * kept + in_rows * padded)
    deep, flat = (saved_bytes({**config, "num_hidden_layers": n}, dtype, shared, length, rows) for n in (5, 2))
    assert (deep - flat) / 3 == pytest.approx(expected, rel=0.03)


def test_a_checkpointed_layer_keeps_its_input() -> None:
    deep, flat = (
        saved_bytes({**SMALL, "model_type": "llama", "num_hidden_layers": n}, "float32", 32, 97, 4, again=True)
        for n in (5, 2)
    )
    assert (deep - flat) / 3 == 4 * 64 * (32 + 4 * 96)


def saved_bytes(config: dict[str, Any], dtype: str, shared: int, length: int, rows: int, again: bool = False) -> int:
    """Bytes that a packed forward pass saves for its backward pass, weights left out."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from assay.batch import Batch
    from assay.policies.causal_lm import CausalLM
    from assay.policies.nano import nano_tokenizer
    from assay.types import Ask, Episode, Group, Task, Verdict

    options = {k: v for k, v in config.items() if k != "model_type"}
    made = AutoConfig.for_model(config["model_type"], pad_token_id=0, bos_token_id=1, eos_token_id=2, **options)
    model = AutoModelForCausalLM.from_config(made, dtype=getattr(torch, dtype))
    if again:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    policy = CausalLM(model, nano_tokenizer(NanoConfig()))
    episode = Episode(
        prompt=np.arange(shared) % 90 + 4,
        tokens=np.full(length, 5),
        mask=np.ones(length, dtype=bool),
        logprobs=np.zeros(length, dtype=np.float32),
        text="",
        stop="eos",
    )
    group = Group(Ask(Task("a", "q"), rows), (episode,) * rows, (Verdict(1.0, True),) * rows)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    seen: dict[int, int] = {}
    alive = []

    def pack(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
            alive.append(storage)
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        policy.forward(Batch.from_groups([group]))
    return sum(seen.values())


def test_shapes_by_hand() -> None:
    given = {"layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "intermediate": "14336"}
    assert from_options({**given, "vocabulary": "128_256"}).parameters == 8_030_261_248
    assert from_options({**given, "params": "7.5e9"}).parameters == 7_500_000_000
    base = from_config(KNOWN["meta-llama/Meta-Llama-3-8B"])
    assert from_options({"layers": "16"}, base).layers == 16
    assert from_options({"layers": "16"}, base).hidden == 4096
    sparse = from_options({**given, "experts": "8", "experts_per_token": "2", "expert_intermediate": "1024"})
    assert sparse.expert_layers == 32 and sparse.active_parameters < sparse.parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "3"}, "--shape has no 'layer'; did you mean 'layers'?"),
        ({"layers": "many"}, "--shape layers=many: expected a number"),
        ({"layers": "0", "hidden": "8", "heads": "2"}, "expected a number above 0"),
        ({"layers": "3"}, "--shape lacks hidden, heads"),
        ({"layers": "3", "hidden": "8", "heads": "2", "experts": "4"}, "also takes experts_per_token"),
    ],
)
def test_shapes_that_make_no_sense(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=r".+") as error:
        from_options(options)
    assert message in str(error.value)


def test_where_shapes_are_found(tmp_path: Path) -> None:
    config = {**KNOWN["Qwen/Qwen3-0.6B"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for model, file in ((str(tmp_path), None), ("any/name", tmp_path), ("any/name", tmp_path / "config.json")):
        assert shapes_of(ModelConfig(source=model), file).parameters == 596_049_920
    assert shapes_of(ModelConfig(source="Qwen/Qwen2.5-7B-Instruct")).parameters == 7_615_616_512
    assert shapes_of(ModelConfig(source="Qwen/Qwen3-235B-A22B-Instruct-2507")).experts == 128


def test_a_model_that_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "list.json").write_text("[]")
    cases: list[tuple[str, Path | None, str]] = [
        ("Qwen/Qwen2.5-8B", None, "did you mean 'Qwen/Qwen2.5-"),
        ("nobody/nothing", None, "give --model-config"),
        ("./nowhere", None, "no folder ./nowhere"),
        ("nano", tmp_path / "missing.json", "no model config"),
        ("nano", tmp_path / "config.json", "has no 'hidden_size'"),
        ("nano", tmp_path / "list.json", "holds no model config"),
    ]
    for source, file, message in cases:
        with pytest.raises(UsageError, match=r".+") as error:
            shapes_of(ModelConfig(source=source), file)
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_experts_that_are_laid_out_otherwise_are_refused() -> None:
    with pytest.raises(UsageError, match="how a deepseek_v3 lays out its experts"):
        from_config({"model_type": "deepseek_v3", **SMALL, "n_routed_experts": 4})


def test_a_shape_has_no_parameters_of_its_own_beside_its_matrices() -> None:
    shapes = Shapes("x", layers=2, hidden=8, heads=2, kv_heads=1, head_dim=4, intermediate=16, vocabulary=10)
    # By hand: attention 8 x 4 x (4 + 2) = 192, MLP 3 x 8 x 16 = 384, two layers; two embeddings of 80.
    assert shapes.parameters == 2 * (192 + 384) + 160
