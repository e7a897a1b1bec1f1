"""Thoughts in tokens and drawings after them, as decisions of one policy."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.engines.base import Request, Sampling, engine_of
from assay.engines.flow.sampling import FlowSampling
from assay.engines.flow.thinking import ThinkingEngine
from assay.errors import UsageError
from assay.learning.warmup import demonstrations
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.samples import DRAWN, point, split
from assay.policies.flow.thinking import STEP, ThinkingFlow, drawing_steps
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig
from assay.policies.policy import load_policy
from assay.types import Ask, Group, Task, Verdict

CONFIG = ModelConfig(
    source="flow",
    device="cpu",
    nano=NanoConfig(hidden=16, layers=1, heads=2, context=64),
    flow=FlowConfig(hidden=8, layers=1, prompt=4, language="nano", steps=3),
)


@pytest.fixture(scope="module")
def policy() -> ThinkingFlow:
    return load_policy(CONFIG)


def drawn(policy: ThinkingFlow, sampling: Sampling, prompts=("one", "another")) -> Batch:
    answers = engine_of(policy, "hf", 8).generate([Request(p, 3, sampling, i) for i, p in enumerate(prompts)])
    groups = [
        Group(Ask(Task(p, p), 3), tuple(a), (Verdict.right(),) * 3) for p, a in zip(prompts, answers, strict=True)
    ]
    return Batch.from_groups(groups)


def test_what_is_sampled_is_what_is_learned_from(policy: ThinkingFlow) -> None:
    batch = drawn(policy, Sampling(5))
    output = policy.forward(batch, {"step_mean", "step_deviation"})
    assert torch.allclose(output.logprobs, batch.logprobs, atol=1e-5)
    steps = drawing_steps(batch)
    assert steps.sum(-1).tolist() == [3] * 6 and len({len(e.tokens) for e in batch.episodes}) >= 1
    assert bool((output.live["step_deviation"][~steps] == 1).all())
    assert bool((output.live["step_mean"][steps].abs().sum(-1) > 0).all())
    assert not output.live["step_mean"][~steps].any()
    output.logprobs.sum().backward()
    for part in ("language", "flow"):
        assert any(p.grad is not None and bool(p.grad.any()) for p in policy.module[part].parameters())
    policy.module.zero_grad()
    for e in batch.episodes:
        thought, sample = split(e.text)
        assert thought == policy.decode(e.tokens) and point(e.text).shape == (2,) and point(sample) is not None


def test_the_drawing_reads_the_thought(policy: ThinkingFlow) -> None:
    batch = drawn(policy, Sampling(5))
    other = [replace(e, text=f"quite other{DRAWN}{split(e.text)[1]}") for e in batch.episodes]
    steps, usual = drawing_steps(batch), policy.forward(batch).logprobs
    found = policy.forward(replace(batch, episodes=other)).logprobs
    assert torch.equal(found[~steps], usual[~steps]) and not torch.allclose(found[steps], usual[steps])


def test_a_window_and_no_heat(policy: ThinkingFlow) -> None:
    windowed = drawn(policy, FlowSampling(5, begin=1, end=2))
    assert drawing_steps(windowed).sum(-1).tolist() == [1] * 6
    assert {int(e.drawing.taken[0]) for e in windowed.episodes} == {1}
    cold = drawn(policy, Sampling(5, 0.0), ["one"])
    assert not drawing_steps(cold).any()
    assert len({split(e.text)[0] for e in cold.episodes}) == 1 and len({split(e.text)[1] for e in cold.episodes}) == 3


def test_demonstrations_are_of_both_kinds(policy: ThinkingFlow) -> None:
    batch = demonstrations([Task("a", "one", solution=f"think{DRAWN}1 2"), Task("b", "two", solution="0 1")], policy)
    assert batch.tokens[0, -1] == STEP and policy.decode(batch.episodes[0].tokens) == "think"
    assert drawing_steps(batch).sum(-1).tolist() == [1, 1]
    found = policy.forward(batch).logprobs
    assert bool((found[batch.mask] < 0).all())
    with pytest.raises(UsageError, match="a sample of shape"):
        policy.encode_response("a thought alone")


def test_it_is_saved_and_split_into_passes(policy: ThinkingFlow, tmp_path) -> None:
    policy.save(tmp_path)
    again = load_policy(ModelConfig(source=str(tmp_path), device="cpu"))
    assert isinstance(again, ThinkingFlow)
    batch = drawn(policy, Sampling(5))
    assert torch.equal(again.forward(batch).logprobs, policy.forward(batch).logprobs)
    twin = policy.twin()
    with torch.no_grad():
        for parameter in twin.module.parameters():
            parameter.add_(1)
    frozen = twin.frozen(tmp_path)
    assert torch.allclose(frozen.forward(batch).logprobs, policy.forward(batch).logprobs, atol=1e-5)
    assert not torch.allclose(twin.forward(batch).logprobs, policy.forward(batch).logprobs)
    assert not any(p.requires_grad for part in (frozen.language, frozen.flow) for p in part.module.parameters())
    sizes = [len(e.prompt) + len(e.tokens) for e in batch.episodes]
    parts = policy.micro_batches(batch, sizes[0] + sizes[1])
    assert parts[0].tolist() == [0, 1] and torch.cat(parts).tolist() == list(range(6))
    assert policy.size == policy.width == 2 and np.array_equal(policy.encode("x"), policy.language.encode("x"))


def test_what_it_cannot_do_is_said(policy: ThinkingFlow) -> None:
    engine = engine_of(policy, "hf", 4)
    assert isinstance(engine, ThinkingEngine) and engine.words.max_rows == 4
    with pytest.raises(UsageError, match="no prefix"):
        engine.generate([Request("", 1, Sampling(3), 0, prefix=(1,))])
    with pytest.raises(UsageError, match="language model"):
        policy.continuations()
    with pytest.raises(ValueError, match="a flow that reads it"):
        FlowConfig(language="nano")
