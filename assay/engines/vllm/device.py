"""Which of several GPUs vLLM takes: the policy's, where vLLM left to itself would take the first that it sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def executor_at(device: int) -> Any:
    """Return a class for ``distributed_executor_backend``: vLLM's executor in this process, on the GPU of this number.

    Training ranks on one machine see all of its GPUs, each uses one, and each has an engine of its own.
    """
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    class Placed(UniProcExecutor):  # type: ignore[misc, unused-ignore]
        def _distributed_args(self) -> tuple[str, int, int]:
            method, rank, _ = super()._distributed_args()
            return method, rank, device

    return Placed


def visible_from(device: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a child process whose first GPU is this process's number ``device``."""
    if not device:
        return {}
    seen = environment.get("CUDA_VISIBLE_DEVICES")
    if seen is None:
        import torch

        seen = ",".join(map(str, range(torch.cuda.device_count())))
    return {"CUDA_VISIBLE_DEVICES": ",".join(seen.split(",")[device:])}
