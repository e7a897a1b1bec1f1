"""Small steps move weights of any precision as they should, and an optimiser comes back bit for bit."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import assert_same, recipe, run
from tiny import TOKENIZER, batch_of, episode, ids, tiny
from torch import Tensor
from torch.nn import Parameter

import assay
from assay.batch import Batch
from assay.errors import UsageError
from assay.learning import master
from assay.learning.master import MasterAdamW
from assay.learning.optimizer import Kind, make_optimizer
from assay.learning.update import update
from assay.objectives.sft import SFT
from assay.policies.causal_lm import CausalLM
from assay.records.run_folder import RunFolder

BETAS = (0.9, 0.999)


@pytest.fixture
def interpreted() -> Iterator[None]:
    """torchao's step as Python has it: compiled, it takes half a minute first."""
    pytest.importorskip("torchao", reason="torchao is not installed")
    with torch.compiler.set_stance("force_eager"):
        yield


def weights(dtype: torch.dtype, seed: int = 0) -> list[Parameter]:
    """A matrix large enough for eight-bit moments, one that blocks do not divide, and a vector."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((32, 256), (5, 7), (9,))
    return [Parameter((1 + torch.rand(s, generator=generator)).to(dtype)) for s in shapes]


def gradients(steps: int, dtype: torch.dtype = torch.float32) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [[torch.randn(w.shape, generator=generator).to(dtype) for w in weights(dtype)] for _ in range(steps)]


def take(optimizer: torch.optim.Optimizer, steps: list[list[Tensor]]) -> None:
    parameters = [p for g in optimizer.param_groups for p in g["params"]]
    for step in steps:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = gradient.to(getattr(parameter, "grad_dtype", parameter.dtype))
        optimizer.step()


# Low precision


def test_small_updates_of_a_bfloat16_weight_are_those_of_float32() -> None:
    low, exact = weights(torch.bfloat16), [Parameter(w.detach().float()) for w in weights(torch.bfloat16)]
    before = [w.detach().clone() for w in low]
    optimizer = make_optimizer(low, 1e-6, BETAS, 0.1)
    reference = make_optimizer(exact, 1e-6, BETAS, 0.1)
    assert type(reference) is torch.optim.AdamW
    # A gradient that is always 1 moves every weight by the learning rate at every step.
    ones = [[torch.ones_like(w) for w in exact]] * 100
    take(optimizer, ones)
    take(reference, ones)
    for weight, wanted, first in zip(low, exact, before, strict=True):
        kept = optimizer.state[weight]["master"]
        torch.testing.assert_close(kept, wanted.detach(), rtol=0, atol=0)
        assert torch.equal(weight, wanted.bfloat16())
        moved = first.float() - kept
        assert float((moved - 1e-4).abs().max()) < 2e-5 + 1e-5  # decay adds at most 1e-6 x 0.1 x 2 x 100
    # So little does not show in bfloat16 yet, but it is not lost: after 4100 steps it is more than half a unit.
    assert all(torch.equal(a, b) for a, b in zip(low, before, strict=True))
    take(optimizer, ones * 40)
    take(reference, ones * 40)
    for weight, wanted, first in zip(low, exact, before, strict=True):
        assert torch.equal(weight, wanted.bfloat16())
        assert bool((weight != first).all())


def test_without_master_weights_they_would_be_lost() -> None:
    # What the masters are for: the same hundred steps, taken in bfloat16, change nothing.
    low = weights(torch.bfloat16)
    before = [w.detach().clone() for w in low]
    take(torch.optim.AdamW(low, lr=1e-6, weight_decay=0.0, fused=True), [[torch.ones_like(w) for w in low]] * 100)
    assert all(torch.equal(a, b) for a, b in zip(low, before, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_random_gradients_give_the_steps_of_float32(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "CHUNK", 40)  # several chunks, one of them too small for its only weight
    low = [*weights(dtype), Parameter(torch.ones(4, 2))]  # an adapter's weights are float32 beside them
    exact = [Parameter(w.detach().float()) for w in low]
    optimizer, reference = make_optimizer(low, 1e-3, BETAS, 0.01), make_optimizer(exact, 1e-3, BETAS, 0.01)
    order = [*range(2), 3, 2]  # matrices first
    steps = [[*s, torch.full((4, 2), 0.5)] for s in gradients(20)]
    for made in (optimizer, reference):
        take(made, [[s[i] for i in order] for s in steps])
    assert "master" not in optimizer.state[low[3]]
    for weight, wanted in zip(low, exact, strict=True):
        torch.testing.assert_close(weight, wanted.detach().to(weight.dtype), rtol=0, atol=0)


@pytest.mark.skipif(not hasattr(torch.zeros(()), "grad_dtype"), reason="this torch has no gradients of another dtype")
def test_micro_batches_add_up_in_float32() -> None:
    weight = Parameter(torch.ones(300, dtype=torch.bfloat16))
    optimizer = make_optimizer([weight], 1.0, BETAS, 0.0)
    for _ in range(300):  # in bfloat16, 256 + 1 is 256
        weight.sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
    assert bool((weight.grad == 300).all())
    optimizer.zero_grad()
    assert weight.grad is None


def test_an_update_without_advantage_keeps_momentum_in_low_precision() -> None:
    policy = CausalLM(tiny("llama").bfloat16(), TOKENIZER)
    rng = np.random.default_rng(0)
    batch: Batch = batch_of([episode(ids(rng, 3), ids(rng, 4))])
    batch.totals = batch.count()
    optimizer = make_optimizer(policy.module.parameters(), 1e-3, BETAS, 0.0)
    update(policy, SFT(), batch, optimizer)
    before = {k: s["master"].clone() for k, s in optimizer.state.items()}
    batch.advantages = torch.zeros_like(batch.advantages)
    metrics, tokens = update(policy, SFT(), batch, optimizer, skip_idle=True)
    assert tokens == 0
    assert metrics["grad_norm"] == 0
    assert any(not torch.equal(before[k], s["master"]) for k, s in optimizer.state.items())


# Eight bits


@pytest.mark.usefixtures("interpreted")
def test_eight_bit_steps_are_near_those_of_adamw() -> None:
    parameters, exact = weights(torch.float32), weights(torch.float32)
    optimizer, reference = (
        make_optimizer(p, 1e-3, BETAS, 0.1, kind) for p, kind in ((parameters, "adamw8bit"), (exact, "adamw"))
    )
    steps = gradients(10)
    take(optimizer, steps[:1])
    take(reference, steps[:1])
    for ours, theirs in zip(parameters, exact, strict=True):
        # Moments are quantised after they are used, so the first step is AdamW's.
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    take(optimizer, steps[1:])
    take(reference, steps[1:])
    start = weights(torch.float32)
    for ours, theirs, first in zip(parameters, exact, start, strict=True):
        moved = (theirs - first).detach().norm()
        assert float((ours - theirs).detach().norm() / moved) < 0.05
    matrix, odd = parameters[0], parameters[1]
    assert optimizer.state[matrix]["exp_avg"].codes.dtype == torch.uint8
    assert optimizer.state[odd]["exp_avg"].dtype == torch.float32
    assert optimizer.param_groups[0]["lr"] == 1e-3


@pytest.mark.usefixtures("interpreted")
def test_eight_bit_moments_take_a_byte() -> None:
    weight = Parameter(torch.zeros(64, 256))
    optimizer = make_optimizer([weight], 1e-3, BETAS, 0.0, "adamw8bit")
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    state = optimizer.state_dict()["state"][0]
    kept = sum(v.numel() * v.element_size() for k, v in state.items() if k != "step")
    assert kept == 2 * weight.numel() * (1 + 4 / 256)


@pytest.mark.usefixtures("interpreted")
def test_a_bfloat16_weight_moves_by_the_step_on_average() -> None:
    torch.manual_seed(0)
    weight = Parameter(torch.ones(64, 256, dtype=torch.bfloat16))
    optimizer = make_optimizer([weight], 1e-6, BETAS, 0.0, "adamw8bit")
    for _ in range(100):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    # Each entry goes down by 2^-8 with chance 1e-6 / 2^-8 a step: 1e-4 in all, with 16384 entries to average over.
    deviation = (2**-8 * 1e-4 / weight.numel()) ** 0.5
    assert abs(float((1 - weight.detach().double()).mean()) - 1e-4) < 4 * deviation


def test_eight_bits_without_torchao_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "assay.learning.adamw8bit", raising=False)
    monkeypatch.setitem(sys.modules, "torchao.optim", None)
    with pytest.raises(UsageError, match=r"needs torchao: pip install assay\[lowbit\]") as error:
        make_optimizer(weights(torch.float32), 1e-3, BETAS, 0.0, "adamw8bit")
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("interpreted")
def test_eight_bits_do_not_train_float16() -> None:
    with pytest.raises(UsageError, match="cannot train float16"):
        make_optimizer(weights(torch.float16), 1e-3, BETAS, 0.0, "adamw8bit")


# State


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["adamw", "adamw8bit"])
def test_a_loaded_optimizer_goes_on_bit_for_bit(kind: Kind, dtype: torch.dtype, request: Any) -> None:
    if kind == "adamw8bit":
        request.getfixturevalue("interpreted")
    torch.manual_seed(3)
    whole, parted = weights(dtype), weights(dtype)
    first = make_optimizer(whole, 1e-2, BETAS, 0.1, kind)
    take(first, gradients(6)[:3])
    file = io.BytesIO()
    torch.save({"o": first.state_dict(), "w": [w.detach() for w in whole], "rng": torch.get_rng_state()}, file)
    take(first, gradients(6)[3:])
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    for weight, value in zip(parted, saved["w"], strict=True):
        weight.data.copy_(value)
    torch.set_rng_state(saved["rng"])
    second = make_optimizer(parted, 1e-2, BETAS, 0.1, kind)
    second.load_state_dict(saved["o"])
    take(second, gradients(6)[3:])
    assert all(torch.equal(a, b) for a, b in zip(whole, parted, strict=True))
    a, b = (o.state_dict()["state"] for o in (first, second))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[i][k], b[i][k]) and a[i][k].dtype == b[i][k].dtype for i in a for k in a[i])


def test_loading_copies_and_keeps_precision() -> None:
    weight = Parameter(torch.ones(3, 2, dtype=torch.bfloat16))
    optimizer = make_optimizer([weight], 1e-2, BETAS, 0.1)
    assert isinstance(optimizer, MasterAdamW)
    take(optimizer, [[torch.ones(3, 2)]])
    saved = optimizer.state_dict()
    other = make_optimizer([Parameter(torch.ones(3, 2, dtype=torch.bfloat16))], 1e-2, BETAS, 0.1)
    other.load_state_dict(saved)
    state = other.state[other.param_groups[0]["params"][0]]
    assert {v.dtype for v in state.values()} == {torch.float32}
    assert state["master"].data_ptr() != saved["state"][0]["master"].data_ptr()


@contextmanager
def stopped_after(monkeypatch: pytest.MonkeyPatch, *steps: int) -> Iterator[None]:
    """A run within is asked to stop when it logs these of its steps."""
    original, seen = RunFolder.log, 0

    def logged(self: RunFolder, *arguments: Any) -> None:
        nonlocal seen
        original(self, *arguments)
        seen += 1
        if seen in steps:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", logged)
        yield


@pytest.mark.parametrize(
    ("kind", "dtype"), [("adamw", "bfloat16"), ("adamw8bit", "float32"), ("adamw8bit", "bfloat16")]
)
def test_a_resumed_run_ends_with_the_same_bits(
    kind: Kind, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    if kind == "adamw8bit":
        request.getfixturevalue("interpreted")
    nano = {"hidden": 64, "layers": 1, "heads": 2, "context": 24}
    sections: dict[str, Any] = {"model": {"nano": nano, "dtype": dtype}, "train": {"optimizer": kind}}
    whole, folder = run(tmp_path / "whole", **sections), tmp_path / "run"
    with stopped_after(monkeypatch, 1, 3, 5):
        result = assay.train(recipe(folder, **sections), quiet=True)
        while result.stopped_by:
            result = assay.train(resume=folder, quiet=True)
    assert_same(folder, whole)
