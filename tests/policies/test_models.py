"""Models: built in, from folders and GGUF files, with adapters; saved, loaded, frozen; what is refused, in one line."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, VOCABULARY, batch_of, episode, ids, tiny

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig, ModelConfig, load_model
from assay.policies.nano import ALPHABET, NanoConfig, nano_tokenizer

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}"
    "({{ m.content }})\n{% endfor %}{% if add_generation_prompt %}={% endif %}"
)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell the hub's client to stay at home; the variable alone is read only once, at its first import."""
    import huggingface_hub.constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def some_batch(seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    prompt, other = ids(rng, 6), ids(rng, 3)
    return batch_of([episode(prompt, ids(rng, 5)), episode(prompt, ids(rng, 2)), episode(other, ids(rng, 7))])


def disturb(policy: CausalLM, seed: int = 1) -> None:
    """Change every trainable weight."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.module.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=g).to(parameter))


def weights(policy: CausalLM) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in policy.module.state_dict().items()}


def assert_same_weights(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert [k for k in a if not torch.equal(a[k], b[k])] == []


# The built-in model


def test_nano_is_drawn_from_its_seed_and_leaves_the_global_one() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    a, b, c = (CausalLM.load(ModelConfig(), seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert_same_weights(weights(a), weights(b))
    assert not torch.equal(a.head.weight, c.head.weight)
    assert a.model.get_input_embeddings().weight is a.model.get_output_embeddings().weight


def test_nano_shape() -> None:
    policy = CausalLM.load(ModelConfig(nano=NanoConfig(hidden=48, layers=2, heads=3, context=77)))
    assert policy.context == 77
    assert policy.stop_ids == [2]
    config = policy.model.config
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (48, 2, 3)
    assert config.intermediate_size == 144


@pytest.mark.parametrize("shape", [{"hidden": 50, "heads": 4}, {"hidden": 12, "heads": 4}])
def test_nano_refuses_heads_that_do_not_fit(shape: dict) -> None:
    with pytest.raises(ValueError, match="heads of even width"):
        NanoConfig(**shape)


def test_nano_tokenizer_round_trip() -> None:
    tokenizer = nano_tokenizer(NanoConfig())
    ids_ = tokenizer(ALPHABET)["input_ids"]
    assert ids_[0] == tokenizer.bos_token_id == 1
    assert len(ids_) == len(ALPHABET) + 1
    assert tokenizer.decode(ids_, skip_special_tokens=True) == ALPHABET
    assert tokenizer("aéa")["input_ids"][2] == tokenizer.unk_token_id


def test_encoding() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    assert policy.encode("12").tolist() == TOKENIZER("12")["input_ids"]
    assert policy.encode("12").dtype == np.int64
    messages = ({"role": "system", "content": "1"}, {"role": "user", "content": "2"})
    assert policy.encode(messages).tolist() == policy.encode("1\n2").tolist()  # without a template: joined lines
    response = policy.encode_response("12")
    assert response.tolist() == [*TOKENIZER("12", add_special_tokens=False)["input_ids"], 2]
    assert policy.decode(response) == "12"


def test_an_empty_prompt_starts_with_the_begin_token() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    assert policy.encode("").tolist() == [1]
    bare = deepcopy(TOKENIZER)
    bare.backend_tokenizer.post_processor = None
    bare.bos_token = None
    assert CausalLM(tiny("llama"), bare).encode("").tolist() == [2]


# Chat templates


def chatty() -> Any:
    tokenizer = deepcopy(TOKENIZER)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def test_chat_template_goes_around_messages_and_plain_text() -> None:
    policy = CausalLM(tiny("llama"), chatty())
    expected = TOKENIZER("(1+1)\n=", add_special_tokens=False)["input_ids"]  # the template decides on a begin token
    assert policy.encode("1+1").tolist() == expected
    assert policy.encode(({"role": "user", "content": "1+1"},)).tolist() == expected


def test_chat_never_feeds_plain_text() -> None:
    policy = CausalLM(tiny("llama"), chatty(), chat=False)
    assert policy.encode("1+1").tolist() == TOKENIZER("1+1")["input_ids"]


def test_a_template_that_refuses_a_message_is_a_usage_error() -> None:
    policy = CausalLM(tiny("llama"), chatty())
    with pytest.raises(UsageError, match="no system messages"):
        policy.encode(({"role": "system", "content": "1"},))


# Folders


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2", "mixtral", "gemma3, window 5"])
def test_save_and_load_are_exact(tmp_path: Path, kind: str) -> None:
    policy = CausalLM(tiny(kind), TOKENIZER)
    disturb(policy)
    expected = weights(policy)
    policy.save(tmp_path)
    disturb(policy, seed=2)
    policy.load_weights(tmp_path)
    assert_same_weights(weights(policy), expected)

    again = CausalLM.load(ModelConfig(source=str(tmp_path), device="cpu"))
    assert_same_weights(weights(again), expected)
    assert again.context == policy.context
    batch = some_batch()
    assert torch.equal(again.forward(batch).logprobs, policy.forward(batch).logprobs)
    assert again.encode("1+1").tolist() == policy.encode("1+1").tolist()


def test_a_saved_folder_opens_in_transformers_alone(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    policy = CausalLM(tiny("llama"), TOKENIZER)
    policy.save(tmp_path)
    assert "assay" not in (tmp_path / "config.json").read_text()
    logits = AutoModelForCausalLM.from_pretrained(tmp_path)(torch.tensor([[1, 5, 6]])).logits
    torch.testing.assert_close(logits, tiny("llama")(torch.tensor([[1, 5, 6]])).logits)


def test_half_precision(tmp_path: Path) -> None:
    CausalLM(tiny("llama"), TOKENIZER).save(tmp_path)
    policy = CausalLM.load(ModelConfig(source=str(tmp_path), dtype="bfloat16"))
    assert policy.head.weight.dtype == torch.bfloat16
    made = [e for g in HFEngine(policy).generate([Request("1+1=", 4, Sampling(max_tokens=8), 0)]) for e in g]
    output = policy.forward(batch_of(made))
    assert output.logprobs.dtype == torch.float32
    output.logprobs.sum().backward()
    for i, e in enumerate(made):
        # Two digits of precision in weights and activations; logits here are of the order of ten.
        np.testing.assert_allclose(output.logprobs[i, : len(e.tokens)].detach().cpu().numpy(), e.logprobs, atol=0.5)
    expected = weights(policy)
    policy.save(tmp_path / "again")
    disturb(policy)
    policy.load_weights(tmp_path / "again")
    assert_same_weights(weights(policy), expected)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    CausalLM(tiny("llama", num_hidden_layers=1), TOKENIZER).save(tmp_path)
    with pytest.raises(UsageError, match="does not hold this model's weights") as error:
        CausalLM(tiny("llama"), TOKENIZER).load_weights(tmp_path)
    assert "\n" not in str(error.value)


def test_frozen_keeps_the_saved_weights(tmp_path: Path) -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    batch = some_batch()
    expected = policy.forward(batch).logprobs.detach()
    policy.save(tmp_path)
    disturb(policy)
    reference = policy.frozen(tmp_path)
    disturb(policy, seed=2)
    assert not torch.allclose(policy.forward(batch).logprobs, expected, atol=1e-2)
    output = reference.forward(batch, ("entropy",))
    assert torch.equal(output.logprobs, expected)
    assert not output.logprobs.requires_grad


# Adapters


@pytest.fixture
def adapted() -> CausalLM:
    pytest.importorskip("peft")
    torch.manual_seed(0)
    return CausalLM(tiny("grouped queries"), TOKENIZER, lora=LoraConfig(rank=4))


def test_a_fresh_adapter_changes_nothing_and_is_all_that_learns(adapted: CausalLM) -> None:
    batch = some_batch()
    plain = CausalLM(tiny("grouped queries"), TOKENIZER)
    output = adapted.forward(batch).logprobs
    torch.testing.assert_close(output, plain.forward(batch).logprobs, rtol=1e-6, atol=1e-6)
    output.sum().backward()
    learning = [n for n, p in adapted.module.named_parameters() if p.requires_grad]
    assert learning
    assert all("lora_" in n for n in learning)
    assert any(p.grad is not None and p.grad.any() for n, p in adapted.module.named_parameters() if "lora_B" in n)


def test_adapters_act_in_the_engine_as_in_training(adapted: CausalLM) -> None:
    disturb(adapted)
    requests = [Request(p, 3, Sampling(max_tokens=10), i) for i, p in enumerate(["1+1=", "2", "3-2="])]
    made = [e for g in HFEngine(adapted).generate(requests) for e in g]
    output = adapted.forward(batch_of(made))
    merged = CausalLM(deepcopy(adapted.adapter).merge_and_unload(), TOKENIZER)
    oracle = merged.forward(batch_of(made)).logprobs
    torch.testing.assert_close(output.logprobs, oracle, rtol=1e-4, atol=1e-4)
    for i, e in enumerate(made):
        np.testing.assert_allclose(output.logprobs[i, : len(e.tokens)].detach().cpu().numpy(), e.logprobs, atol=2e-5)


def test_the_reference_is_the_model_without_adapters(adapted: CausalLM, tmp_path: Path) -> None:
    adapted.save(tmp_path)
    reference = adapted.frozen(tmp_path)
    disturb(adapted)
    batch = some_batch()
    expected = CausalLM(tiny("grouped queries"), TOKENIZER).forward(batch).logprobs
    learnt = adapted.forward(batch).logprobs
    assert not torch.allclose(learnt, expected, atol=1e-2)
    with torch.no_grad():
        assert torch.allclose(reference.forward(batch).logprobs, expected, atol=1e-6)
    assert torch.equal(adapted.forward(batch).logprobs, learnt)
    assert [p.requires_grad for n, p in adapted.module.named_parameters() if "lora_" in n].count(False) == 0
    assert reference.micro_batches(batch, 1000)[0].tolist() == [0, 1, 2]


def test_the_reference_keeps_adapters_that_a_warm_up_trained(adapted: CausalLM, tmp_path: Path) -> None:
    disturb(adapted)
    adapted.save(tmp_path)
    batch = some_batch()
    with torch.no_grad():
        expected = adapted.forward(batch).logprobs
    reference = adapted.frozen(tmp_path)
    disturb(adapted, seed=2)
    learnt = adapted.forward(batch).logprobs
    assert not torch.allclose(learnt, expected, atol=1e-2)
    assert torch.allclose(reference.forward(batch).logprobs, expected, atol=1e-6)
    assert learnt.requires_grad


def test_adapters_save_and_load_exactly(adapted: CausalLM, tmp_path: Path) -> None:
    disturb(adapted)
    expected = weights(adapted)
    adapted.save(tmp_path)
    size = sum(f.stat().st_size for f in tmp_path.glob("*.safetensors"))
    learning = sum(p.numel() for p in adapted.module.parameters() if p.requires_grad)
    assert size < 4 * learning + 10_000, "the base model is not saved"
    disturb(adapted, seed=2)
    adapted.load_weights(tmp_path)
    assert_same_weights(weights(adapted), expected)
    with pytest.raises(UsageError, match=r"adapter.*run"):
        load_model(ModelConfig(source=str(tmp_path)), 0)


def test_dropout_of_adapters_is_on_in_training_and_off_in_generation() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER, lora=LoraConfig(rank=4, dropout=0.5))
    disturb(policy)
    batch = some_batch()
    assert not torch.equal(policy.forward(batch).logprobs, policy.forward(batch).logprobs)
    request = [Request("1+1=", 2, Sampling(max_tokens=8), 0)]
    a, b = (HFEngine(policy).generate(request)[0] for _ in range(2))
    assert all(np.array_equal(x.logprobs, y.logprobs) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("targets", "reason"),
    [(["nothing_like_it"], "nothing_like_it"), (["lm_head", "q_proj"], "adapts the output layer")],
)
def test_adapter_targets_that_cannot_be(targets: list[str], reason: str) -> None:
    pytest.importorskip("peft")
    with pytest.raises(UsageError, match=reason) as error:
        CausalLM(tiny("llama"), TOKENIZER, lora=LoraConfig(targets=targets))
    assert "\n" not in str(error.value)


# What cannot be loaded


def refusal(source: str | Path, **options: Any) -> str:
    with pytest.raises(UsageError) as error:
        load_model(ModelConfig(source=str(source), **options), 0)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_sources_that_do_not_exist(tmp_path: Path, no_network: None) -> None:
    assert f"no folder {tmp_path / 'nowhere'}" in refusal(tmp_path / "nowhere")
    assert "no folder ./nowhere" in refusal("./nowhere")
    assert f"no file {tmp_path / 'm.gguf'}" in refusal(tmp_path / "m.gguf")
    assert "holds no config.json" in refusal(tmp_path)
    message = refusal("nobody/has-made-this-model")
    assert "'nobody/has-made-this-model' is neither 'nano', a folder, a .gguf file nor a hub model" in message


def test_files_that_cannot_be_read(tmp_path: Path, no_network: None) -> None:
    (tmp_path / "m.gguf").write_bytes(b"this is no model")
    assert "m.gguf" in refusal(tmp_path / "m.gguf")

    CausalLM(tiny("llama"), TOKENIZER).save(tmp_path / "cut")
    whole = (tmp_path / "cut" / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(whole[:-100])
    assert "cannot be read" in refusal(tmp_path / "cut")

    (tmp_path / "unknown").mkdir()
    (tmp_path / "unknown" / "config.json").write_text(json.dumps({"model_type": "no_such_architecture"}))
    assert "no_such_architecture" in refusal(tmp_path / "unknown")


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    endless = deepcopy(TOKENIZER)
    endless.eos_token = None
    CausalLM(tiny("llama"), TOKENIZER).save(tmp_path)
    endless.save_pretrained(tmp_path)
    assert "no end-of-sequence token" in refusal(tmp_path)


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "mps" if not torch.backends.mps.is_available() else "xpu"])
def test_devices_that_are_not_there(device: str) -> None:
    assert f"model.device = {device!r}" in refusal("nano", device=device)


def test_a_gguf_file_loads(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    policy = CausalLM(tiny("llama", bos_token_id=1), TOKENIZER)
    write_gguf(gguf, tmp_path / "tiny.gguf", policy.model)
    loaded = CausalLM.load(ModelConfig(source=str(tmp_path / "tiny.gguf"), chat="never"))
    batch = some_batch()
    torch.testing.assert_close(loaded.forward(batch).logprobs, policy.forward(batch).logprobs, rtol=1e-4, atol=1e-4)


def write_gguf(gguf: Any, path: Path, model: Any) -> None:
    """Write a Llama and a byte-pair vocabulary with one merge to a GGUF file, by the format's own library."""
    c = model.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(c.num_hidden_layers)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_dimension_count(c.hidden_size // c.num_attention_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(c.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    tokens = ["<pad>", "<s>", "</s>", "<unk>", *(chr(ord("A") + i) for i in range(VOCABULARY - 5)), "AB"]
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3, 2] + [1] * (VOCABULARY - 4))
    writer.add_token_merges(["A B"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)

    def interleave(weight: np.ndarray, heads: int) -> np.ndarray:
        # llama.cpp rotates neighbouring pairs where transformers rotates halves.
        return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)

    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    outer = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, tensor in model.state_dict().items():
        value, stem = tensor.numpy(), name.removesuffix(".weight")
        if stem in outer:
            target = outer[stem]
        else:
            _, _, layer, part = stem.split(".", 3)
            target = f"blk.{layer}.{names[part]}"
            if part == "self_attn.q_proj":
                value = interleave(value, c.num_attention_heads)
            if part == "self_attn.k_proj":
                value = interleave(value, c.num_key_value_heads)
        writer.add_tensor(f"{target}.weight", np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
