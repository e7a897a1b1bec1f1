"""A flow as a policy: what it samples is what it learns from, and supervised steps are flow matching."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.engines.base import Request, Sampling, engine_of
from assay.engines.flow.engine import FlowEngine
from assay.engines.flow.sampling import FlowSampling
from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.learning.warmup import demonstrations
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import frames, point, read, written
from assay.policies.loading import ModelConfig
from assay.policies.policy import load_policy
from assay.types import Ask, Group, Task, Verdict

STEPS = Sampling(max_tokens=6)


def flow(**options):
    config = FlowConfig(**{"hidden": 16, "layers": 2, **options})
    return FlowPolicy(config, network(config, 0))


def drawn(policy, n=3, prompts=("one", "another"), sampling=STEPS, seed=5):
    groups = FlowEngine(policy).generate([Request(p, n, sampling, seed + i) for i, p in enumerate(prompts)])
    return Batch.from_groups(
        [
            Group(Ask(Task(str(i), p), n), tuple(e), (Verdict.right(),) * n)
            for i, (p, e) in enumerate(zip(prompts, groups, strict=True))
        ]
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"sampler": "cps"}, {"prompt": 8, "guidance": 2.5}, {"shift": 3.0, "shape": (4, 4, 3)}],
    ids=["sde", "cps", "guided", "picture"],
)
def test_what_is_sampled_is_what_is_learned_from(options):
    policy = flow(**options)
    batch = drawn(policy)
    assert batch.tokens.shape == (6, 6) and bool(batch.mask.all())
    output = policy.forward(batch, {"step_mean", "step_deviation"})
    assert torch.allclose(output.logprobs, batch.logprobs, atol=1e-5)
    output.logprobs.sum().backward()
    assert all(p.grad is not None for p in policy.module["velocity"].parameters())
    assert output.live["step_mean"].shape == (6, 6, policy.size)
    assert bool((output.live["step_deviation"][:, :-1] > 0).all())


def test_heat_multiplies_the_noise_in_sampling_and_learning():
    policy = flow()
    batch = drawn(policy, sampling=replace(STEPS, temperature=0.5))
    assert torch.allclose(policy.forward(batch, temperature=0.5).logprobs, batch.logprobs, atol=1e-5)
    usual = policy.forward(batch, {"step_deviation"}).live["step_deviation"]
    assert torch.allclose(policy.forward(batch, {"step_deviation"}, 0.5).live["step_deviation"], usual / 2)


def test_without_heat_nothing_is_decided():
    policy = flow()
    batch = drawn(policy, sampling=replace(STEPS, temperature=0.0))
    assert batch.tokens.shape == (6, 0)
    states = batch.episodes[0].drawing.states
    x = torch.from_numpy(states[0])[None]
    for level in torch.linspace(1, 0, 7)[:-1]:
        x = x - policy.velocity(x, level[None], None) / 6
    assert np.allclose(x.detach().numpy()[0], states[-1], atol=1e-6)
    assert torch.allclose(policy.forward(batch, {"sample@6"}).live["sample@6"][0], x[0], atol=1e-6)


def test_requests_draw_the_same_whatever_else_is_asked():
    policy = flow(prompt=4)
    both = drawn(policy).episodes
    alone = FlowEngine(policy, max_rows=2).generate([Request("another", 3, STEPS, 6)])[0]
    assert [e.text for e in both[3:]] == [e.text for e in alone]
    assert len({e.text for e in both}) == 6


def test_a_window_leaves_the_other_steps_alone():
    batch = drawn(flow(), sampling=FlowSampling(6, begin=1, end=3))
    assert batch.tokens.shape == (6, 2)
    for e in batch.episodes:
        assert e.drawing.taken.tolist() == [1, 2]
    short = drawn(flow(), n=4, prompts=["one"], sampling=FlowSampling(6, end=5, trained=2, branch=2))
    starts = [e.drawing.taken.tolist() for e in short.episodes]
    assert all(b == a + 1 and 0 <= a <= 3 for a, b in starts)
    first, second, third, _ = (e.drawing for e in short.episodes)
    fork = first.taken[0]
    assert starts[0] == starts[1] and np.array_equal(first.states[: fork + 1], second.states[: fork + 1])
    assert not np.array_equal(first.states[fork + 1], second.states[fork + 1])
    assert not np.array_equal(first.states[0], third.states[0])
    for odd in (FlowSampling(6, begin=6), FlowSampling(6, begin=1, end=3, trained=3), FlowSampling(6, branch=0)):
        with pytest.raises(UsageError, match=r"noisy ones in a row|cannot share"):
            drawn(flow(), sampling=odd)


def test_a_demonstration_is_flow_matching():
    policy = flow(prompt=4)
    tasks = [Task("a", "one", solution="1.5 -0.25"), Task("b", "two", solution="0 2")]
    batch = demonstrations(tasks, policy)
    assert batch.tokens.shape == (2, 1)
    level, noise = torch.tensor([[0.25], [0.75]]), torch.tensor([[0.5, -1.0], [0.3, 0.1]])
    batch.signals["noised"] = torch.cat([level, noise], 1)
    x0 = torch.tensor([[1.5, -0.25], [0.0, 2.0]])
    said = policy.prompts([e.prompt for e in batch.episodes])
    v = policy.velocity((1 - level) * x0 + level * noise, level[:, 0], said)
    wanted = -((v - (noise - x0)) ** 2).mean(-1)
    assert torch.allclose(policy.forward(batch).logprobs[:, 0], wanted)
    del batch.signals["noised"]
    one, two = (policy.forward(batch).logprobs for _ in range(2))
    assert not torch.equal(one, two)
    with torch.no_grad():
        assert torch.equal(policy.forward(batch).logprobs, policy.forward(batch).logprobs)
    assert int(policy.module.drawn) == 2


def test_supervised_steps_hide_prompts_so_that_guidance_has_something_to_go_by():
    policy = flow(prompt=4, dropout=0.5)
    batch = demonstrations([Task(str(i), str(i), solution="1 1") for i in range(40)], policy)
    policy.forward(batch).logprobs.sum().backward()
    assert float(policy.module["prompt"].nothing.grad.abs().sum()) > 0
    policy = flow(prompt=4, dropout=0.0)
    policy.forward(batch).logprobs.sum().backward()
    nothing = policy.module["prompt"].nothing.grad
    assert nothing is None or float(nothing.abs().sum()) == 0


def test_samples_are_text_and_back():
    assert written(np.array([1.5, -0.25], dtype=np.float32)) == "1.5 -0.25"
    assert point("1.5 -0.25").tolist() == [1.5, -0.25]
    assert point("1.5 x") is None and point("") is None and point("nan 1") is None
    rng = np.random.default_rng(0)
    video = (rng.integers(0, 256, (3, 4, 6, 3)) / 255 * 2 - 1).astype(np.float32)
    assert np.allclose(read(written(video), (3, 4, 6, 3)), video, atol=1e-6)
    assert read(written(video[0]), (4, 6, 3)).shape == (4, 6, 3)
    assert frames(written(video)).dtype == np.uint8 and frames("no picture") is None
    assert frames(written(video[0]) + "\n" + written(video[0, :2])) is None
    with pytest.raises(UsageError, match=r"shape \[2\] is wanted, and '1 2 3' is \[3\]"):
        read("1 2 3", (2,))
    with pytest.raises(UsageError, match="nothing of the kind"):
        read("hello", (4, 6, 3))


def test_weights_come_back(tmp_path):
    policy = flow(prompt=4)
    policy.module.drawn += 3
    policy.save(tmp_path)
    again = load_policy(ModelConfig(source=str(tmp_path), device="cpu"))
    assert isinstance(again, FlowPolicy) and again.config == policy.config and int(again.module.drawn) == 3
    assert [e.text for e in drawn(policy).episodes] == [e.text for e in drawn(again).episodes]
    twin = policy.twin()
    with torch.no_grad():
        twin.module["velocity"].layers[0].weight += 1
    frozen = twin.frozen(tmp_path)
    assert not any(p.requires_grad for p in frozen.module.parameters())
    batch = drawn(policy)
    assert torch.equal(frozen.forward(batch).logprobs, policy.forward(batch).logprobs)
    with pytest.raises(UsageError, match="does not hold this flow's weights"):
        flow(hidden=8).load_weights(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": (4, 4)}, "none of a point"),
        ({"shape": (4, 4, 1)}, "three channels"),
        ({"guidance": 2.0}, "guidance wants a prompt"),
        ({"network": "unet"}, "a point wants"),
        ({"network": "unet", "shape": (8, 8, 3), "hidden": 12}, "does not divide by 8"),
        ({"network": "unet", "shape": (8, 6, 3), "layers": 3, "hidden": 8}, "halve the sides"),
    ],
)
def test_what_cannot_be_is_said(options, words):
    with pytest.raises(ValueError, match=words):
        FlowConfig(**options)


def test_what_is_for_text_is_refused():
    policy = flow()
    engine = engine_of(policy, "hf", 4)
    assert isinstance(engine, FlowEngine) and engine.max_rows == 4
    for odd in ({"prefix": (1,)}, {"beam": True}, {"within": Trie([[1]])}):
        with pytest.raises(UsageError, match="whole samples"):
            engine.generate([replace(Request("", 1, STEPS, 0), **odd)])
    for odd in ({"stop": ("x",)}, {"top_p": 0.5}, {"top_k": 2}):
        with pytest.raises(UsageError, match="no tokens"):
            engine.generate([Request("", 1, replace(STEPS, **odd), 0)])
    with pytest.raises(UsageError, match="language model"):
        policy.continuations(None, [], [])
    with pytest.raises(UsageError, match="does not see"):
        policy.encode(({"role": "user", "content": "<image>", "images": (b"",)},))
    with pytest.raises(UsageError, match=r"model\.compile: a flow"):
        load_policy(ModelConfig(source="flow", compile=True))
    with pytest.raises(UsageError, match="nothing of the kind"):
        engine.encode_response("no point")


@pytest.mark.slow
def test_a_unet_reads_prompt_and_level_of_every_frame():
    pytest.importorskip("diffusers")
    policy = flow(network="unet", shape=(2, 8, 8, 3), hidden=8, layers=2, prompt=4)
    batch = drawn(policy, n=2, sampling=replace(STEPS, max_tokens=2))
    assert torch.allclose(policy.forward(batch).logprobs, batch.logprobs, atol=1e-5)
    x = torch.randn(1, 2 * 8 * 8 * 3)
    said = policy.prompts([np.array([1]), np.array([2, 3])])
    first, second = (policy.velocity(x, torch.tensor([0.5]), said[i : i + 1]) for i in range(2))
    assert not torch.allclose(first, second)
    assert not torch.allclose(first, policy.velocity(x, torch.tensor([0.9]), said[:1]))
    with torch.no_grad():
        policy.module["velocity"].net.conv_out.weight.zero_()
        policy.module["velocity"].net.conv_out.bias.copy_(torch.arange(6))
    frames_out = policy.velocity(x, torch.tensor([0.5]), said[:1]).reshape(2, 8, 8, 3)
    assert frames_out[0, 0, 0].tolist() == [0, 1, 2] and frames_out[1, 5, 3].tolist() == [3, 4, 5]
