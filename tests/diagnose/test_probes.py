"""Continuations after prefixes, against one separate sequence for each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, tiny

from assay.policies.causal_lm import CausalLM, WithoutAdapter
from assay.policies.loading import LoraConfig
from assay.policies.tabular import TabularPolicy, Tree

pytestmark = pytest.mark.usefixtures("one_thread")


def plain(model: torch.nn.Module, prefix: np.ndarray, continuation: np.ndarray, temperature: float) -> torch.Tensor:
    """Transformers' own log-probabilities of a continuation: one sequence, no packing."""
    sequence = torch.from_numpy(np.concatenate([prefix, continuation]))[None]
    logits = model(sequence, use_cache=False).logits[0, len(prefix) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(-1, sequence[0, len(prefix) :, None])[:, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_each_continuation_is_as_if_it_stood_alone(kind: str) -> None:
    rng = np.random.default_rng(0)
    policy, model = CausalLM(tiny(kind), TOKENIZER), tiny(kind)
    prompts = [ids(rng, 4), ids(rng, 7)]
    batch = batch_of([episode(prompts[i % 2], ids(rng, n)) for i, n in enumerate((6, 1, 0, 9))])
    at = [[0, 3, 6, 3], [1], [0, 0], [9, 2, 5]]
    what = [[ids(rng, int(n)) for n in rng.integers(0, 5, len(points))] for points in at]
    what[3][1] = what[3][0]
    found = policy.continuations(batch, at, what, 0.8)
    assert found.shape[:2] == (4, 4)
    for i, (points, many) in enumerate(zip(at, what, strict=True)):
        for k, (after, continuation) in enumerate(zip(points, many, strict=True)):
            e = batch.episodes[i]
            expected = plain(model, np.concatenate([e.prompt, e.tokens[:after]]), continuation, 0.8)
            np.testing.assert_allclose(found[i, k, : len(continuation)].detach(), expected.detach(), atol=2e-5)
            assert not bool(found[i, k, len(continuation) :].any())
        assert not bool(found[i, len(points) :].any())


def test_gradients_are_those_of_the_separate_sequences() -> None:
    rng = np.random.default_rng(1)
    policy, model = CausalLM(tiny("qwen2"), TOKENIZER), tiny("qwen2")
    prompt = ids(rng, 5)
    batch = batch_of([episode(prompt, ids(rng, 6)), episode(prompt, ids(rng, 4))])
    at, what = [[2, 6], [0, 4]], [[ids(rng, 3), ids(rng, 2)], [ids(rng, 2), ids(rng, 4)]]
    (policy.continuations(batch, at, what) ** 2).sum().backward()
    total = torch.zeros(())
    for e, points, many in zip(batch.episodes, at, what, strict=True):
        for after, continuation in zip(points, many, strict=True):
            prefix = np.concatenate([e.prompt, e.tokens[:after]])
            total = total + (plain(model, prefix, continuation, 1.0) ** 2).sum()
    total.backward()
    for (name, ours), theirs in zip(policy.model.named_parameters(), model.parameters(), strict=True):
        assert ours.grad is not None and theirs.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_are_those_of_the_separate_sequences(kind: str) -> None:
    rng = np.random.default_rng(3)
    policy, model = CausalLM(tiny(kind), TOKENIZER), tiny(kind)
    prompts = [ids(rng, 4), ids(rng, 7)]
    batch = batch_of([episode(prompts[i % 2], ids(rng, n)) for i, n in enumerate((6, 0, 9))])
    at = [[0, 3], [0], [9, 2, 5]]
    what = [[ids(rng, int(n)) for n in rng.integers(0, 5, len(points))] for points in at]
    found = policy.continuation_ranks(batch, at, what)
    assert found.dtype == torch.int64
    for i, (points, many) in enumerate(zip(at, what, strict=True)):
        for k, (after, continuation) in enumerate(zip(points, many, strict=True)):
            e = batch.episodes[i]
            prefix = np.concatenate([e.prompt, e.tokens[:after]])
            logits = model(torch.from_numpy(np.concatenate([prefix, continuation]))[None]).logits[0, len(prefix) - 1 :]
            for j, token in enumerate(continuation.tolist()):
                order = logits[j].argsort(descending=True).tolist()
                # Neighbours may change places by a rounding error.
                assert abs(int(found[i, k, j]) - order.index(token)) <= 1
        assert not bool(found[i, len(points) :].any())
    assert policy.continuation_ranks(batch, [[]] * 3, [[]] * 3).shape == (3, 0, 0)


def test_under_adapters_the_reference_is_probed_without_them() -> None:
    pytest.importorskip("peft", reason="low-rank adapters need PEFT")
    rng = np.random.default_rng(4)
    policy = CausalLM(tiny("llama"), TOKENIZER, lora=LoraConfig(rank=2))
    batch = batch_of([episode(ids(rng, 4), ids(rng, 5))])
    probe = (batch, [[1, 4]], [[ids(rng, 3), ids(rng, 2)]])
    before, ranks = policy.continuations(*probe).detach(), policy.continuation_ranks(*probe)
    for name, weight in policy.module.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    reference = WithoutAdapter(policy)
    assert not torch.allclose(policy.continuations(*probe), before, atol=1e-2)
    torch.testing.assert_close(reference.continuations(*probe), before)
    assert torch.equal(reference.continuation_ranks(*probe), ranks)
    draw = [reference.candidates(batch, 4, generator=torch.Generator().manual_seed(0)) for _ in range(2)]
    assert torch.equal(*draw) and draw[0].shape == (1, 5, 4)


def test_nothing_to_probe() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    rng = np.random.default_rng(2)
    batch = batch_of([episode(ids(rng, 3), ids(rng, 3))])
    assert policy.continuations(batch, [[]], [[]]).shape == (1, 0, 0)
    assert policy.continuations(batch, [[1]], [[np.zeros(0, np.int64)]]).shape == (1, 1, 0)


def test_a_tree() -> None:
    policy = TabularPolicy.random(Tree.of([[0, 1, 0], [1, [0, 1]]]), seed=0)
    batch = batch_of(policy.leaf_episodes(torch.tensor([1, 3])))
    other = [[np.array([0]), np.array([0, 2])], [np.array([1, 1])]]
    found = policy.continuations(batch, [[1, 0], [1]], other, 0.7)
    log_p = policy.log_policy(0.7)
    assert found[0, 0].tolist() == pytest.approx([log_p[1, 0].item(), 0])
    assert found[0, 1].tolist() == pytest.approx([log_p[0, 0].item(), log_p[1, 2].item()])
    assert found[1, 0].tolist() == pytest.approx([log_p[2, 1].item(), log_p[3, 1].item()])
    assert not bool(found[1, 1].any())
    ranks = policy.continuation_ranks(batch, [[1, 0], [1]], other)
    every = [[np.array([k]) for k in range(2)], []]
    # Of the two arms of the root, each has another rank.
    assert sorted(policy.continuation_ranks(batch, [[0, 0], []], every)[0].flatten().tolist()) == [0, 1]
    assert ranks[0, 0].tolist() == [int((log_p[1] > log_p[1, 0]).sum()), 0]
    assert ranks[0, 1].tolist() == [int((log_p[0] > log_p[0, 0]).sum()), int((log_p[1] > log_p[1, 2]).sum())]
