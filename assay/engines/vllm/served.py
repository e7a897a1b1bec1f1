"""The engine over a vLLM server that it starts: asked through the ``openai`` engine, its weights kept up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.engines.base import Request
from assay.engines.openai.engine import OpenAIEngine, openai_engine
from assay.engines.speaking import Speaking
from assay.engines.vllm.asking import check_temperature
from assay.engines.vllm.describe import cpu_cache, on_a_cpu
from assay.engines.vllm.server import VLLMServer
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.registry import part
from assay.types import Episode


class VLLMServerEngine(Speaking):
    """Generates with a server that this engine starts; see :func:`vllm_server_engine`.

    Args:
        policy: gives tokenizer, architecture and weights.
        server: runs.
    """

    by_name = True
    """Of a policy it follows nothing is read but ``merged_state``."""
    through_host = True
    """All that it follows is in main memory at once, on its way into a file."""

    def __init__(self, policy: CausalLM, server: VLLMServer):
        self.policy, self.server = policy, server
        self.inner: OpenAIEngine = openai_engine(
            model="policy",
            base_url=f"{server.url}/v1",
            api="completions",
            tokenizer=str(server.folder),
            logprobs_after_temperature=True,
            # One by one: to siblings in one call vLLM gives seeds that follow each other, as those of requests may.
            max_n=1,
            concurrency=1024,
            timeout=3600.0,
            total_timeout=7200.0,
            extra={"stop_token_ids": policy.stop_ids},
        )
        self.follow(policy)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        for request in requests:
            check_temperature(request)
        return self.inner.generate(requests)

    def follow(self, policy: Any) -> None:
        """Have the server take over the policy's weights, adapters merged; they go through a file in memory."""
        self.server.load(policy)

    def sleep(self, level: int = 1) -> None:
        """See :meth:`assay.engines.vllm.engine.VLLMEngine.sleep`."""
        if self.server.sleeps:
            self.server.sleep(level)

    def wake(self) -> None:
        """See :meth:`assay.engines.vllm.engine.VLLMEngine.wake`."""
        if self.server.sleeps:
            torch.cuda.empty_cache()
            self.server.wake()

    def close(self) -> None:
        """End the server."""
        self.inner.close()
        self.server.close()


@part("engine", "vllm-server")
def vllm_server_engine(
    model: str | dict[str, Any] | None = None,
    max_rows: int = 256,
    seed: int = 0,
    policy: CausalLM | None = None,
    max_model_len: int | None = None,
    kv_cache_gib: float | None = None,
    gpu_memory_utilization: float | None = None,
    eager: bool | None = None,
    tensor_parallel_size: int = 1,
    patience: float = 900.0,
    extra: dict[str, Any] | None = None,
) -> VLLMServerEngine:
    """Return an engine that starts vLLM's server on this machine, in processes of its own, and asks it.

    It generates while this process computes something else. It tells no entropies and knows no catalogues; for the rest
    it is as :func:`assay.engines.vllm.engine.vllm_engine`. A server that runs already, on any machine, is asked with
    engine ``openai``, but does not follow a policy.

    Args:
        model: a recipe's ``[model]`` table, or its ``source`` alone.
        max_rows: responses decoded together.
        seed: of the weights, where they are made here.
        policy: what is trained, in place of a model; the server follows it.
        max_model_len, kv_cache_gib, gpu_memory_utilization, eager: as for engine ``vllm``.
        tensor_parallel_size: devices of this machine that the weights are divided over; on a Ray cluster each engine
            is given as many. It has to divide the model's attention heads.
        patience: seconds to wait until the server answers.
        extra: further options of ``vllm serve``, by name, ``{"swap-space" = 8}``.

    Raises:
        UsageError: a key or a value that a ``[model]`` table has not; neither a model nor a policy; vLLM is not
            installed, or does not serve this model or divide it so.
    """
    from assay.config import load_config

    if tensor_parallel_size < 1:
        raise UsageError(f"engine vllm-server: tensor_parallel_size = {tensor_parallel_size} must be 1 or more")
    own = policy
    if own is None:
        if model is None:
            raise UsageError('engine vllm-server needs a model: {name = "vllm-server", model = ...}')
        own = CausalLM.load(load_config({"model": model}).model, seed)
    cuda = own.device.type == "cuda"
    cache = cpu_cache(cuda) if kv_cache_gib is None else int(kv_cache_gib * 2**30)
    context = own.context if own.context < 2**31 else None
    if gpu_memory_utilization is None and cuda:
        gpu_memory_utilization = 0.4
    options = {
        "max-num-seqs": max_rows,
        "max-model-len": max_model_len or context,
        "kv-cache-memory-bytes": cache,
        "gpu-memory-utilization": gpu_memory_utilization,
        "enforce-eager": (not cuda if eager is None else eager) or None,
        "enable-sleep-mode": cuda or None,
        "async-scheduling": False,
        "enable-prefix-caching": True,
        "tensor-parallel-size": tensor_parallel_size if tensor_parallel_size > 1 else None,
    }
    if not cuda:
        options |= {k.replace("_", "-"): v for k, v in on_a_cpu(max_model_len or context).items()}
    options |= extra or {}
    server = VLLMServer(own, options, patience)
    try:
        engine = VLLMServerEngine(own, server)
    except BaseException:
        server.close()
        raise
    if policy is None:
        own.module.to("meta")
    return engine
