"""vLLM on an actor: handed the weights that were sent, without a copy of them beside its own."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import pytest
import torch
from test_vllm_engine import assert_agrees, requests

from assay.errors import RunError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.scale.ray.engine import EngineActor, plain
from assay.scale.ray.weights import Block, blocks


class Broken:
    """A group of which rank 0 sends so many blocks and then is gone."""

    device = "cpu"

    def __init__(self, sent: list[Block]):
        self.left = iter(sent)

    def broadcast(self, data: torch.Tensor) -> None:
        block = next(self.left, None)
        if block is None:
            raise RuntimeError("Connection closed by peer")
        data.copy_(torch.from_numpy(block.data))

    def close(self) -> None: ...


@pytest.mark.slow
def test_an_actor_generates_with_the_weights_that_were_sent(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the engine is made the actor's own policy has none; what vLLM says agrees with the policy that sent them,
    also after a broadcast that broke off."""
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda block: block))
    config = ModelConfig(source=source, device="cpu")
    policy = CausalLM.load(config)
    policy.module.requires_grad_(False)
    spec = {"name": "vllm", "max_model_len": 512, "kv_cache_gib": 1.0, "extra": {"max_num_batched_tokens": 512}}
    actor = EngineActor((spec, plain(config), 32, 0), {})
    try:
        actor.start()
        assert {p.device.type for p in actor.policy.module.parameters()} == {"meta"}
        with torch.no_grad():
            for parameter in policy.module.parameters():
                parameter.mul_(1.02)
        actor.take(1, list(blocks(policy.merged_state())))
        made = pickle.loads(actor.generate(1, requests()))
        assert_agrees([e for episodes in made for e in episodes], policy, 1.0)
        with torch.no_grad():
            for parameter in policy.module.parameters():
                parameter.mul_(1.02)
        sent = list(blocks(policy.merged_state(), 100 << 20))
        for version, size in ((2, len(sent) // 2), (3, len(sent))):
            actor.group = Broken(sent[:size])
            assert actor.receive(version, [block.what for block in sent]) == (version == 3)
            with pytest.raises(RunError, match="was asked for answers"):
                actor.generate(2, requests())
        made = pickle.loads(actor.generate(3, requests()))
        assert_agrees([e for episodes in made for e in episodes], policy, 1.0)
    finally:
        if actor.engine is not None:
            actor.engine.close()
