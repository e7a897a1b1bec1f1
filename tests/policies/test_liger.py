"""When Liger's kernel computes the log-probabilities, and that it is asked for the right ones.

On a CPU liger-kernel runs its own loop in PyTorch in the kernel's place: it shows that the call is right. The kernel
itself needs a Hopper GPU.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from assay.policies import liger, logprobs
from assay.policies.logprobs import Head, token_logprobs

CPU = torch.device("cpu")


def inputs(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in ((9, 16), (21, 16)))
    return hidden, weight, torch.randint(21, (9,), generator=generator)


@pytest.fixture
def installed() -> None:
    pytest.importorskip("liger_kernel.ops", reason="liger-kernel is not installed (or Triton, which it needs)")
    if not hasattr(__import__("liger_kernel.ops").ops, "LigerFusedLinearScaledCrossEntropyFunction"):
        pytest.skip("this liger-kernel has no fused scaled cross entropy")


@pytest.mark.usefixtures("installed")
def test_its_values_and_gradients_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, weight, targets = inputs()
    head, upstream = Head(weight, scale=0.5), torch.linspace(-1, 2, 9)
    ours, _ = token_logprobs(hidden, head, targets, 0.7)
    monkeypatch.setattr(liger, "fits", lambda *_: True)
    theirs, entropy = token_logprobs(hidden, head, targets, 0.7)
    assert entropy is None
    assert "PPO" in type(theirs.grad_fn.next_functions[0][0]).__name__  # type: ignore[union-attr]
    torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=1e-6)
    for a, b in zip(*(torch.autograd.grad(x, (hidden, weight), upstream) for x in (theirs, ours)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("installed")
def test_a_kernel_that_works_is_found_to_work() -> None:
    assert liger.disagreement(CPU) == ""


def test_a_kernel_that_is_wrong_or_missing_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def without_temperature(h: torch.Tensor, w: torch.Tensor, t: torch.Tensor, _: float) -> torch.Tensor:
        return (h @ w.T).float().log_softmax(-1).gather(-1, t[:, None])[:, 0]

    monkeypatch.setattr(liger, "fused_logprobs", without_temperature)
    assert "differ by" in liger.disagreement(CPU)
    monkeypatch.setattr(liger, "_function", lambda: None)
    liger._works.cache_clear()
    assert not liger._works(CPU)
    assert "is not used for log-probabilities: its results differ" in caplog.text

    def missing() -> Any:
        raise ImportError("no liger_kernel")

    monkeypatch.setattr(liger, "_function", missing)
    liger._works.cache_clear()
    assert not liger._works(CPU)
    liger._works.cache_clear()


class Faked:
    """What :func:`assay.policies.liger.fits` looks at."""

    def __init__(self, dtype: torch.dtype = torch.bfloat16, is_cuda: bool = True, rows: int = 3):
        self.dtype, self.is_cuda, self.rows, self.device = dtype, is_cuda, rows, CPU

    def __len__(self) -> int:
        return self.rows


@pytest.mark.parametrize(
    ("hidden", "plain", "capability", "fits"),
    [
        (Faked(), True, (9, 0), True),
        (Faked(), False, (9, 0), False),
        (Faked(), True, (8, 0), False),
        (Faked(), True, (10, 0), False),
        (Faked(torch.float32), True, (9, 0), False),
        (Faked(is_cuda=False), True, (9, 0), False),
        (Faked(rows=0), True, (9, 0), False),
    ],
)
def test_it_is_used_only_where_it_fuses(
    hidden: Any, plain: bool, capability: tuple[int, int], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(liger, "_works", lambda _: True)
    weight: Any = Faked(hidden.dtype)
    assert liger.fits(hidden, weight, plain) is fits


def test_biases_caps_and_entropies_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(logprobs.liger, "fits", lambda _h, _w, plain: bool(asked.append(plain)))
    hidden, weight, targets = inputs()
    for head, entropy in ((Head(weight), False), (Head(weight), True), (Head(weight, softcap=3.0), False)):
        token_logprobs(hidden, head, targets, entropy=entropy)
    token_logprobs(hidden, Head(weight, torch.zeros(21)), targets)
    assert asked == [True, False, False, False]
