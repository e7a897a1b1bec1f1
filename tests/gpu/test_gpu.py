"""What only a GPU shows: kernels that a CPU does not have, transfers, forked processes, and the same bits again."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from running import assert_same, child, command, metrics, recipe, run
from tiny import TOKENIZER, batch_of, episode, ids, tiny

from assay.batch import Batch
from assay.compare import compare, read_plan
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.packed import LEAST_TOKENS, pays
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

METHODS: dict[str, dict[str, str]] = {"grpo": {}, "rloo": {"credit": "rloo"}}


def some_batch() -> Batch:
    rng = np.random.default_rng(0)
    a, b = ids(rng, 7), ids(rng, 12)
    return batch_of([episode(p, ids(rng, t)) for p, t in ((a, 5), (b, 1), (a, 9), (a, 2), (b, 3))])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", ["llama", "grouped queries", "mistral, window 4", "gemma3, window 5", "gpt2"])
def test_logprobs_and_gradients_are_those_of_a_cpu(kind: str, dtype: torch.dtype) -> None:
    model = tiny(kind).to(dtype)
    policies = [CausalLM(deepcopy(model).to(device), TOKENIZER, kernel="sdpa") for device in ("cpu", "cuda")]
    outputs = [p.forward(some_batch()).logprobs for p in policies]
    tolerance = 1e-4 if dtype == torch.float32 else 1e-5  # log-probabilities are float32
    torch.testing.assert_close(outputs[1].cpu(), outputs[0], rtol=0, atol=tolerance)
    for out in outputs:
        out.sum().backward()
    expected = dict(policies[0].model.named_parameters())
    for name, parameter in policies[1].model.named_parameters():
        wanted = expected[name].grad
        assert wanted is not None and parameter.grad is not None
        torch.testing.assert_close(
            parameter.grad.cpu(), wanted, rtol=0, atol=10 * tolerance * max(1.0, float(wanted.abs().max()))
        )


def test_flex_attention_has_the_gradients_of_padded_rows() -> None:
    """Its compiled kernels, forward and backward, which a CPU does not have; heads of 16 numbers are their smallest."""
    nano = NanoConfig(hidden=64, layers=2, heads=4, context=64)
    models = [ModelConfig(nano=nano, device="cuda", attention=k) for k in ("sdpa", "flex")]
    policies = [CausalLM.load(model, seed=3) for model in models]
    outputs = [p.forward(some_batch()).logprobs for p in policies]
    torch.testing.assert_close(outputs[1], outputs[0], rtol=0, atol=1e-3)
    for out in outputs:
        out.sum().backward()
    expected = dict(policies[0].model.named_parameters())
    for name, parameter in policies[1].model.named_parameters():
        wanted = expected[name].grad
        assert wanted is not None and parameter.grad is not None
        torch.testing.assert_close(parameter.grad, wanted, rtol=0, atol=1e-2 * max(1.0, float(wanted.abs().max())))


def test_what_is_sampled_has_the_policys_logprobs() -> None:
    policy = CausalLM.load(ModelConfig(device="cuda"), seed=3)
    assert not pays(policy.model, 10 * LEAST_TOKENS)
    made = HFEngine(policy).generate([Request(f"{i}+{i}=", 8, Sampling(max_tokens=12), i) for i in range(8)])
    episodes = [e for group in made for e in group]
    logprobs = policy.forward(batch_of(episodes)).logprobs.detach().cpu()
    for row, e in zip(logprobs, episodes, strict=True):
        np.testing.assert_allclose(row[: len(e.tokens)].numpy(), e.logprobs, atol=1e-4)


@pytest.mark.parametrize("method", ["S002", "S206"])
def test_methods_with_models_of_their_own_train(tmp_path: Path, method: str) -> None:
    made = run(tmp_path / "run", method={"name": method}, train={"steps": 2})
    assert len([row for row in metrics(made) if row["stage"] == "rl"]) == 2


def test_a_deterministic_run_repeats_and_resumes_bit_for_bit(tmp_path: Path) -> None:
    """In processes of their own, which is how they fork beside others too."""
    folders = [tmp_path / name for name in ("whole", "stopped")]
    files = []
    for folder in folders:
        files.append(tmp_path / f"{folder.name}.toml")
        files[-1].write_text(tomli_w.dumps({"seed": 3, "deterministic": True, **recipe(folder)}))
    log = tmp_path / "log"
    assert child(command, log, "train", str(files[0])) == 0, log.read_text()
    assert child(command, log, "train", str(files[1]), "train.steps=2") == 0, log.read_text()
    assert child(command, log, "train", "--resume", str(folders[1]), "train.steps=4") == 0, log.read_text()
    assert_same(folders[1], folders[0])


def test_runs_side_by_side_share_a_gpu(tmp_path: Path) -> None:
    """They are forked from a server that has imported everything, and must not have touched the driver."""
    plan = {k: v for k, v in recipe("").items() if k not in ("run", "method")}
    methods = {name: {"name": "grpo", **recipe("")["method"], **parts} for name, parts in METHODS.items()}
    (tmp_path / "plan.toml").write_text(tomli_w.dumps({**plan, "compare": {"methods": methods, "seeds": 2}}))
    record = compare(read_plan(tmp_path / "plan.toml"), tmp_path / "out", jobs=2)
    assert record is not None and record["failed"] == {}
