"""vLLM's server, real and on a small model: our ``openai`` engine against it, and weights that are given to it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from tiny import batch_of

from assay.engines.base import Engine, Follower, Request, Sampling
from assay.engines.ended import listening
from assay.engines.hf import HFEngine
from assay.engines.openai.engine import openai_engine
from assay.engines.vllm.served import VLLMServerEngine, vllm_server_engine
from assay.errors import RunError, UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.types import Episode

PROMPTS = ["12+3=", "7-7=", "(1+2)*3"]


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    return CausalLM.load(ModelConfig(source="nano", device="cpu"), seed=1)


@pytest.fixture(scope="module")
def engine(policy: CausalLM) -> Iterator[VLLMServerEngine]:
    made = vllm_server_engine(policy=policy, max_rows=32, kv_cache_gib=1)
    yield made
    made.close()
    assert made.server.process.poll() is not None
    assert not made.server.folder.exists()
    made.close()


def requests(n: int = 2, **settings: float) -> list[Request]:
    sampling = Sampling(max_tokens=12, **settings)  # type: ignore[arg-type]
    return [Request(p, n, sampling, seed=100 + i) for i, p in enumerate(PROMPTS)]


def flat(groups: list[list[Episode]]) -> list[Episode]:
    return [e for group in groups for e in group]


def tokens(groups: list[list[Episode]]) -> list[list[int]]:
    return [e.tokens.tolist() for e in flat(groups)]


def assert_agrees(made: list[Episode], policy: CausalLM, temperature: float) -> None:
    with torch.no_grad():
        output = policy.forward(batch_of(made), (), temperature or 1.0)
    for i, e in enumerate(made):
        assert e.logprobs is not None and len(e.logprobs) == len(e.tokens) > 0
        np.testing.assert_allclose(output.logprobs[i, : len(e.tokens)].numpy(), e.logprobs, rtol=0, atol=1e-4)


def test_it_is_an_engine_that_follows(engine: VLLMServerEngine) -> None:
    assert isinstance(engine, Engine)
    assert isinstance(engine, Follower)


@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 0.7}, {"temperature": 1.4, "top_p": 0.8}, {"top_k": 4}, {"temperature": 0.0}],
    ids=str,
)
def test_what_it_says_is_what_the_policy_says(
    engine: VLLMServerEngine, policy: CausalLM, settings: dict[str, float]
) -> None:
    """After temperature, before truncation."""
    made = engine.generate(requests(**settings))
    assert_agrees(flat(made), policy, settings.get("temperature", 1.0))
    assert all(e.prompt.tolist() == policy.encode(p).tolist() for p, (e, _) in zip(PROMPTS, made, strict=True))


def test_greedy_is_greedy(engine: VLLMServerEngine, policy: CausalLM) -> None:
    asked = requests(1, temperature=0.0)
    assert tokens(engine.generate(asked)) == tokens(HFEngine(policy).generate(asked))


def test_seeds_decide(engine: VLLMServerEngine) -> None:
    first = tokens(engine.generate(requests(3)))
    assert first == tokens(engine.generate(requests(3)))
    assert len({tuple(t) for t in first}) == 9


def test_n_responses_of_one_call(engine: VLLMServerEngine, policy: CausalLM) -> None:
    """The plain ``openai`` engine at the same server, which asks for all of a request's responses at once."""
    plain = openai_engine(
        model="policy",
        base_url=f"{engine.server.url}/v1",
        api="completions",
        tokenizer=str(engine.server.folder),
        logprobs_after_temperature=True,
    )
    made = plain.generate(requests(4))
    assert [len(group) for group in made] == [4, 4, 4]
    assert len({tuple(t) for t in tokens(made[:1])}) == 4
    assert_agrees(flat(made), policy, 1.0)
    plain.close()


def test_responses_are_told_of_as_they_end(engine: VLLMServerEngine) -> None:
    """The longest is told of last, though it was asked for first; each with the text that its episode has."""
    asked = [Request(p, 2, Sampling(max_tokens=t), 3) for p, t in zip(PROMPTS, (90, 1, 1), strict=True)]
    heard: list[tuple[Request, str]] = []
    with listening(lambda *said: heard.append(said)):
        made = engine.generate(asked)
    expected = [(request, e.text) for request, row in zip(asked, made, strict=True) for e in row]
    assert sorted(heard, key=str) == sorted(expected, key=str)
    assert max(len(e.tokens) for e in made[0]) > 20
    assert heard[-1][0] is asked[0]


SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["yes", "no"]}, "score": {"enum": [0, 1]}},
    "required": ["verdict", "score"],
    "additionalProperties": False,
}


def test_structured_output(engine: VLLMServerEngine) -> None:
    """A model of random weights says nonsense, and what fits the schema where it is given one."""
    options = {"model": "policy", "base_url": f"{engine.server.url}/v1", "api": "completions", "max_n": 1}
    asked = [Request(PROMPTS[0], 4, Sampling(max_tokens=90), 5)]
    free, shaped = openai_engine(**options), openai_engine(**options, json_schema=SCHEMA)
    with pytest.raises(json.JSONDecodeError):
        json.loads(flat(free.generate(asked))[0].text)
    said = flat(shaped.generate(asked))
    assert {e.stop for e in said} <= {"eos", "stop"}
    for e in said:
        found = json.loads(e.text)
        assert found.keys() == {"verdict", "score"}
        assert found["verdict"] in ("yes", "no") and found["score"] in (0, 1)
    free.close()
    shaped.close()


def test_stop_strings_and_ends(engine: VLLMServerEngine, policy: CausalLM) -> None:
    free = flat(engine.generate([Request("1", 40, Sampling(max_tokens=60), 1)]))
    ended = [e for e in free if e.stop == "eos"]
    assert ended, "a hundred tokens to choose from: some response ends"
    for e in ended:
        assert e.tokens[-1] in policy.stop_ids and not set(policy.stop_ids) & set(e.tokens[:-1].tolist())
    letter = free[0].text[3]
    sampling = Sampling(max_tokens=60, stop=(letter,))
    stopped = flat(engine.generate([Request("1", 1, sampling, 1)]))[0]
    assert stopped.stop == "stop"
    assert stopped.text == free[0].text[: free[0].text.index(letter) + 1]
    assert stopped.tokens.tolist() == free[0].tokens[: len(stopped.tokens)].tolist()
    assert stopped.logprobs is not None and len(stopped.logprobs) == len(stopped.tokens)


def test_a_response_is_continued(engine: VLLMServerEngine) -> None:
    (whole,) = engine.generate(requests(1, temperature=0.0)[:1])[0]
    begun = tuple(whole.tokens[:5].tolist())
    again = Request(PROMPTS[0], 1, Sampling(max_tokens=7, temperature=0), 100, prefix=begun)
    (rest,) = engine.generate([again])[0]
    assert rest.prompt.tolist() == [*whole.prompt, *begun]
    assert rest.tokens.tolist() == whole.tokens[5:].tolist()


def test_it_follows_weights_that_change(engine: VLLMServerEngine, policy: CausalLM) -> None:
    before = tokens(engine.generate(requests(temperature=0.0)))
    changed = policy.twin()
    with torch.no_grad():
        for i, weight in enumerate(changed.module.parameters()):
            weight.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(i)) * 0.1)
    engine.follow(changed)
    after = engine.generate(requests(temperature=0.0))
    assert_agrees(flat(after), changed, 1.0)
    assert tokens(after) != before
    engine.follow(policy)
    assert tokens(engine.generate(requests(temperature=0.0))) == before
    engine.sleep()
    engine.wake()


@pytest.mark.slow
def test_a_model_divided_over_two(policy: CausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers with half of each matrix say what the policy says, before and after they are given other weights."""
    # On a CPU vLLM gives each worker a NUMA node, unless it is told to leave that alone; most machines have one.
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    engine = vllm_server_engine(policy=policy, max_rows=8, kv_cache_gib=0.25, tensor_parallel_size=2)
    try:
        first = engine.generate(requests())
        assert_agrees(flat(first), policy, 1.0)
        changed = policy.twin()
        with torch.no_grad():
            for weight in changed.module.parameters():
                weight.mul_(1.1)
        engine.follow(changed)
        after = engine.generate(requests())
        assert_agrees(flat(after), changed, 1.0)
        assert tokens(after) != tokens(first)
    finally:
        engine.close()


def test_what_it_cannot_do_is_said(engine: VLLMServerEngine) -> None:
    with pytest.raises(UsageError, match="beams"):
        engine.generate([Request("x", 2, Sampling(), 0, beam=True)])
    with pytest.raises(RunError, match="refused /collective_rpc"):
        engine.server.post("/collective_rpc", {"method": "no_such_method"})


def test_a_server_that_cannot_start_says_why(policy: CausalLM) -> None:
    with pytest.raises(UsageError, match=r"vllm's server ended with \d+: .*no-such-option"):
        vllm_server_engine(policy=policy, extra={"no-such-option": 1})
