"""Flex attention over packed tokens is the attention of padded rows, and so transformers' own.

On a CPU torch computes it by writing the scores out, which shows that the mask is right; the GPU kernel needs a GPU.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, tiny
from torch import Tensor
from torch.nn.attention import flex_attention as library

from assay.errors import UsageError
from assay.policies.attention import flex
from assay.policies.attention.flex import FlexPrompts, block_mask, disagreement, layout_for
from assay.policies.attention.packed import SharedPrompts
from assay.policies.attention.split import prompts_layout
from assay.policies.causal_lm import CausalLM


@pytest.fixture
def differentiable(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU torch has the gradient of flex attention, written out, but refuses to be asked for it."""
    monkeypatch.setattr(library, "_validate_device", lambda *_: None)


def layouts(lengths: list[tuple[int, list[int]]]) -> tuple[SharedPrompts, FlexPrompts]:
    """Both layouts of prompts, each with responses, given by their lengths."""
    prompts = [torch.zeros(n, dtype=torch.int64) for n, _ in lengths]
    responses = [torch.zeros(t, dtype=torch.int64) for _, many in lengths for t in many]
    of = [i for i, (_, many) in enumerate(lengths) for _ in many]
    cpu = torch.device("cpu")
    return SharedPrompts(prompts, responses, of, cpu), FlexPrompts(prompts, responses, of, cpu)


def dense(layout: FlexPrompts, window: int | None) -> Tensor:
    """Who sees whom, by the definition: walk each sequence, prompt then response."""
    size = len(layout.tokens)
    own, prompt, position = layout.own.tolist(), layout.prompt.tolist(), layout.position_ids[0].tolist()
    seen = torch.zeros(size, size, dtype=torch.bool)
    for i in range(size):
        for j in range(size):
            before = own[j] in (own[i], prompt[i]) and position[j] <= position[i]
            seen[i, j] = before and (window is None or position[i] - position[j] < window)
    return seen


SHAPES = st.lists(st.tuples(st.integers(1, 200), st.lists(st.integers(0, 150), min_size=1, max_size=4)), min_size=1)


@settings(max_examples=15, deadline=None)
@given(lengths=SHAPES.filter(lambda x: len(x) <= 4), window=st.sampled_from([None, 1, 7, 130]))
def test_the_block_mask_is_torchs_own(lengths: list[tuple[int, list[int]]], window: int | None) -> None:
    layout = layouts(lengths)[1]
    size = len(layout.tokens)
    ours = block_mask(layout.sees(window), size, torch.device("cpu"))
    theirs = library.create_block_mask(layout.sees(window), None, None, size, size, device="cpu")
    assert torch.equal(ours.to_dense(), theirs.to_dense())
    for mine, wanted in (
        (ours.kv_num_blocks, theirs.kv_num_blocks),
        (ours.full_kv_num_blocks, theirs.full_kv_num_blocks),
    ):
        assert torch.equal(mine, wanted)
    for number, mine, wanted in (
        (ours.kv_num_blocks, ours.kv_indices, theirs.kv_indices),
        (ours.full_kv_num_blocks, ours.full_kv_indices, theirs.full_kv_indices),
        (ours.q_num_blocks, ours.q_indices, theirs.q_indices),
    ):
        for row in range(number.shape[-1]):
            count = int(number[0, 0, row])
            assert mine[0, 0, row, :count].tolist() == wanted[0, 0, row, :count].tolist()


def test_rows_beyond_one_block_of_queries_are_masked_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = layouts([(300, [200, 180]), (40, [90])])[1]
    whole = layout.mask(None).to_dense()
    monkeypatch.setattr(flex, "ROWS", flex.BLOCK)
    assert torch.equal(block_mask(layout.sees(None), len(layout.tokens), torch.device("cpu")).to_dense(), whole)
    assert layout.mask(None) is layout.mask(None)


@pytest.mark.parametrize("window", [None, 1, 3])
def test_tokens_see_their_prompt_and_what_came_before(window: int | None) -> None:
    layout = layouts([(3, [4, 1, 3]), (1, [0, 6])])[1]
    index = torch.arange(len(layout.tokens))
    found = layout.sees(window)(None, None, index[:, None], index[None])
    assert torch.equal(found, dense(layout, window))
    assert bool(found.diagonal().all())


@pytest.mark.usefixtures("differentiable")
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    ("heads", "shared"),
    [pytest.param(4, 4, marks=pytest.mark.slow), (4, 2), pytest.param(6, 1, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("window", [None, pytest.param(1, marks=pytest.mark.slow), 5, 140])
def test_outputs_and_gradients_are_those_of_padded_rows(heads: int, shared: int, window: int | None) -> None:
    generator = torch.Generator().manual_seed(0)
    ways = layouts([(9, [12, 1, 30]), (150, [3, 160]), (1, [0, 5])])
    size = len(ways[0].tokens)
    shapes = [(1, h, size, 8) for h in (heads, shared, shared)]
    inputs = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]
    upstream = torch.randn(1, size, heads, 8, generator=generator, dtype=torch.float64)
    outputs = [way.attend(0, *inputs, 0.3, window) for way in ways]
    torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-10, atol=1e-10)
    wanted, found = (torch.autograd.grad(out, inputs, upstream) for out in outputs)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("differentiable")
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "kind",
    [
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("llama", "grouped queries", "mistral, window 4", "gpt2")
        ),
        "gemma3, window 5",
    ],
)
def test_a_model_has_the_same_logprobs_and_gradients(kind: str) -> None:
    plain = CausalLM(tiny(kind), TOKENIZER, kernel="sdpa")
    packed = CausalLM(deepcopy(tiny(kind)), TOKENIZER, kernel="flex")
    assert packed.layout is FlexPrompts
    assert packed.twin().layout is FlexPrompts
    rng = np.random.default_rng(0)
    a, b = ids(rng, 7), ids(rng, 12)
    batch = batch_of([episode(p, ids(rng, t)) for p, t in ((a, 5), (b, 1), (a, 9), (a, 0), (b, 3))])
    outputs = [policy.forward(batch).logprobs for policy in (packed, plain)]
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
    for out in outputs:
        out.sum().backward()
    expected = dict(plain.model.named_parameters())
    for name, parameter in packed.model.named_parameters():
        wanted = expected[name].grad
        if wanted is None:
            assert parameter.grad is None, name
            continue
        worst = (parameter.grad - wanted).abs().max() / wanted.abs().max().clamp(min=1)
        assert float(worst) < 1e-5, name


@pytest.mark.usefixtures("differentiable")
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.slow)])
def test_a_kernel_that_works_is_found_to_work(dtype: torch.dtype) -> None:
    assert disagreement(4, 2, 16, dtype, torch.device("cpu")) == ""


@pytest.mark.usefixtures("differentiable")
def test_a_kernel_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    # One that forgets the responses' prompts.
    monkeypatch.setattr(flex, "_kernel", lambda _: lambda q, k, v, **_kw: q * 0 + v.repeat_interleave(2, 1))
    assert "differ by" in disagreement(4, 2, 16, torch.float32, torch.device("cpu"))
    with pytest.raises(
        UsageError, match=r'model.attention = "flex" does not work here, set "sdpa": its results differ'
    ):
        layout_for("flex", tiny("grouped queries"))

    class OnGpu:
        config = tiny("grouped queries").config

        def parameters(self) -> object:
            yield type("W", (), {"device": torch.device("cuda"), "dtype": torch.float32})()

    monkeypatch.setattr(flex, "disagreement", lambda *_: "no compiler")
    assert layout_for("auto", OnGpu()) is prompts_layout
    assert "sdpa is used: no compiler" in caplog.text
    monkeypatch.setattr(flex, "disagreement", lambda *_: "")
    assert layout_for("auto", OnGpu()) is FlexPrompts
    assert layout_for("sdpa", OnGpu()) is prompts_layout


def test_on_a_cpu_auto_is_sdpa_and_flex_is_refused_in_one_line() -> None:
    assert CausalLM(tiny("llama"), TOKENIZER).layout is prompts_layout
    assert "sliding_window" in KINDS["mistral, window 4"][1]
    with pytest.raises(UsageError, match="does not work here") as error:
        CausalLM(tiny("llama"), TOKENIZER, kernel="flex")
    assert "\n" not in str(error.value)
