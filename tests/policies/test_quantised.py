"""Base weights in four bits: what they are, what learns beside them, and what is made of both."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import recipe, run
from tiny import TOKENIZER, batch_of, episode, ids, tiny

from assay import api
from assay.config import load_config
from assay.console import Reporter
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM, WithoutAdapter
from assay.policies.loading import LoraConfig, ModelConfig, load_model
from assay.policies.quantised import WEIGHT_BYTES, quantise, whole
from assay.records.checkpoints import last_checkpoint
from assay.report.hub import push
from assay.training.build import build_trainer
from assay.training.checks import check_quantised

CPU = torch.device("cpu")
NF4 = [-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0]
NF4 += [0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0]
"""The sixteen values of a weight, appendix E."""

needs_bitsandbytes = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed: pip install assay[qlora], or make kernels"
)


def four_bits(kind: str = "llama", bits: Any = "nf4", dtype: torch.dtype = torch.float32) -> CausalLM:
    pytest.importorskip("peft", reason="PEFT is not installed")
    policy = CausalLM(quantise(tiny(kind), bits, dtype, CPU), TOKENIZER, lora=LoraConfig(rank=2))
    generator = torch.Generator().manual_seed(1)
    for name, parameter in policy.model.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator)
    return policy


@needs_bitsandbytes
def test_a_weight_is_one_of_sixteen_values_times_its_blocks_largest() -> None:
    model = tiny("llama")
    layer = model.model.layers[0].self_attn.q_proj
    layer.weight.data = 3 * torch.tensor(NF4).repeat(64).view(32, 32)
    before, output = layer.weight.data.clone(), model.get_output_embeddings().weight.clone()
    made = quantise(model, "nf4", torch.float32, CPU)
    small = made.model.layers[0].self_attn.q_proj.weight
    assert small.dtype == torch.uint8 and small.numel() == 32 * 32 / 2
    torch.testing.assert_close(whole(small), before, atol=2e-3, rtol=1e-3)
    assert torch.equal(made.get_output_embeddings().weight, output)  # and that is not touched
    assert made.model.embed_tokens.weight.dtype == torch.float32
    # 4 bits, 8 for each 64 weights, 32 for each 256 of those.
    assert abs(WEIGHT_BYTES - 0.5158691) < 1e-7


@needs_bitsandbytes
@pytest.mark.parametrize("bits", ["nf4", "fp4"])
def test_only_adapters_learn_and_the_reference_is_without_them(bits: str) -> None:
    policy, rng = four_bits(bits=bits), np.random.default_rng(0)
    batch = batch_of([episode(ids(rng, 5), ids(rng, 6)), episode(ids(rng, 3), ids(rng, 4))])
    policy.forward(batch).logprobs.sum().backward()
    learning = {n for n, p in policy.module.named_parameters() if p.grad is not None and p.grad.any()}
    assert learning and all("lora_" in name for name in learning)
    base = CausalLM(quantise(tiny("llama"), bits, torch.float32, CPU), TOKENIZER)  # type: ignore[arg-type]
    torch.testing.assert_close(WithoutAdapter(policy).forward(batch).logprobs, base.forward(batch).logprobs)
    assert not torch.allclose(policy.forward(batch).logprobs, base.forward(batch).logprobs, atol=1e-2)
    twin = policy.twin()
    torch.testing.assert_close(twin.forward(batch).logprobs, policy.forward(batch).logprobs)


@needs_bitsandbytes
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_the_merged_model_is_the_policy(kind: str, tmp_path: Path) -> None:
    policy, rng = four_bits(kind), np.random.default_rng(0)
    policy.save_merged(tmp_path)
    found = CausalLM.load(ModelConfig(source=str(tmp_path)))
    assert not any("lora" in n for n, _ in found.module.named_parameters())
    assert all(p.dtype == torch.float32 for p in found.module.parameters())
    batch = batch_of([episode(ids(rng, 5), ids(rng, 6)), episode(ids(rng, 3), ids(rng, 1))])
    torch.testing.assert_close(found.forward(batch).logprobs, policy.forward(batch).logprobs, atol=2e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose linear layers are in four bits, stopped after a step and continued."""
    pytest.importorskip("peft", reason="PEFT is not installed")
    shape = {"hidden": 64, "layers": 1, "heads": 2, "context": 24}
    sections = {"model": {"nano": shape, "quantise": "nf4", "lora": {"rank": 2}}, "warmup": {"steps": 0}}
    train = {"steps": 1, "lr": 1e-2}
    run(folder := tmp_path_factory.mktemp("qlora") / "run", **sections, train=train)
    api.train(resume=folder, overrides=["train.steps=2"], quiet=True)
    return folder


@needs_bitsandbytes
def test_a_run_learns_samples_and_goes_on(finished: Path) -> None:
    rows = [line for line in (finished / "metrics.jsonl").read_text().splitlines() if '"rl"' in line]
    assert len(rows) == 2
    folder = last_checkpoint(finished)[2] / "policy"
    assert (folder / "adapter_model.safetensors").stat().st_size < 50_000 and not (
        folder / "model.safetensors"
    ).exists()
    samples = api.evaluate(finished, samples=1, quiet=True).samples
    assert len(samples) == 6 and all(s.length > 0 for s in samples)


@needs_bitsandbytes
def test_what_is_pushed_is_the_merged_model(finished: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pushed: list[CausalLM] = []

    class Hub:
        def create_repo(self, repo: str, **_: Any) -> str:
            return repo

        def upload_folder(self, folder_path: str, **_: Any) -> None:
            assert {"README.md", "recipe.toml", "model.safetensors"} <= {p.name for p in Path(folder_path).iterdir()}
            pushed.append(CausalLM.load(ModelConfig(source=folder_path)))

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    push(finished, "me/sums")
    config = load_config(finished / "config.toml")
    policy = CausalLM.load(config.model, config.seed)
    policy.load_weights(last_checkpoint(finished)[2] / "policy")
    rng = np.random.default_rng(0)
    batch = batch_of([episode(ids(rng, 5) % 12, ids(rng, 6) % 12)])
    torch.testing.assert_close(pushed[0].forward(batch).logprobs, policy.forward(batch).logprobs, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lora": None}, r"weights in four bits do not learn; add adapters, model\.lora\.rank=16"),
        ({"scale": {"trainers": 2}}, r"weights in four bits are not sharded; set scale\.trainers=1"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    given = recipe(tmp_path / "run", scale=changes.get("scale", {}))
    lora = {"rank": 2} if "lora" not in changes else None
    given["model"] |= {"quantise": "nf4"} | ({} if lora is None else {"lora": lora})
    with pytest.raises(UsageError, match=message):
        check_quantised(load_config(given))
    if "lora" in changes:
        with pytest.raises(UsageError, match=message):
            build_trainer(load_config(given), Reporter(quiet=True))
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("changes", [{"compile": True}, {"lora": {"start": "pissa"}}])
def test_what_does_not_go_together_is_said(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"model\.quantise and model\.(compile|lora\.start).* do not go together"):
        load_model(ModelConfig(quantise="nf4", **changes), 0)


def test_without_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.nn", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(UsageError, match=r"model\.quantise needs bitsandbytes: pip install assay\[qlora\]"):
        load_model(ModelConfig(quantise="nf4"), 0)
