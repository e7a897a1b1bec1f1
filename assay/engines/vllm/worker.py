"""What runs inside vLLM's workers: taking over weights, from memory or from a file that a server is told of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor


def take(worker: Any, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Load weights, named as in the model's files, into a worker of vLLM's, in place."""
    worker.reload_weights(weights_iterator=weights)
    for layer in worker.get_model().modules():
        # On a CPU layers compute with a packed copy of their weight, made anew where something is loaded into them. An
        # output layer that shares the input embedding is loaded into by nobody.
        if hasattr(layer, "cpu_linear") and layer.weight.numel():
            layer.quant_method.process_weights_after_loading(layer)


class Extension:
    """Mixed into a server's workers: ``--worker-extension-cls assay.engines.vllm.worker.Extension``."""

    def take_file(self, path: str) -> None:
        """Load the weights of a safetensors file."""
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            take(self, ((name, file.get_tensor(name)) for name in file.keys()))  # noqa: SIM118
