"""Weights that learn for a while and are then, bit by bit, what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch

from assay.policies.base import Policy
from assay.policies.loading import LoraConfig


class Borrowed:
    """Parameters that may be changed until they are put back.

    Args:
        parameters: as they are to be again; copied.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter]):
        self.parameters = list(parameters)
        self._kept = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def restore(self) -> None:
        """Put every parameter back, and drop its gradient."""
        for parameter, kept in zip(self.parameters, self._kept, strict=True):
            parameter.copy_(kept)
            parameter.grad = None


@contextmanager
def borrowed(policy: Policy, rank: int = 16, seed: int = 0) -> Iterator[Borrowed]:
    """Let a policy's weights be trained inside this context; after it, however it is left, they are as before.

    What may be trained, and alone has a gradient meanwhile: the policy's own low-rank adapters where it has some; else
    adapters that are put on for the time, which start by changing nothing; else all of its weights. The copy that is
    kept is of these, so that of a model with adapters it is small.

    Args:
        policy: on any device, frozen or not.
        rank: of adapters put on for the time (alpha is twice that); 0 for none. A policy that is no language model
            takes none, and without PEFT there are none.
        seed: of those adapters; the global generators are left as they were.
    """
    flags = [(p, p.requires_grad) for p in policy.module.parameters()]
    training = policy.module.training
    own = [p for name, p in policy.module.named_parameters() if ".lora_" in name]
    adapter: Any = None
    held: Borrowed | None = None
    try:
        if not own and rank and hasattr(policy, "adapter") and find_spec("peft") is not None:
            adapter = _put_on(policy, rank, seed)
            own = [p for name, p in policy.module.named_parameters() if ".lora_" in name]
        held = Borrowed(own or [p for p in policy.module.parameters() if p.is_floating_point()])
        policy.module.requires_grad_(False)
        for parameter in held.parameters:
            parameter.requires_grad_(True)
        policy.module.train()
        yield held
    finally:
        if held is not None:
            held.restore()
        if adapter is not None:
            # The layers are the very ones that were there; PEFT leaves only a note on the model.
            vars(adapter.unload()).pop("peft_config", None)
        for parameter, flag in flags:
            parameter.requires_grad_(flag)
        policy.module.train(training)


def _put_on(policy: Any, rank: int, seed: int) -> Any:
    """Put adapters on a language model's linear layers, in place."""
    from assay.policies.causal_lm import _adapt

    where = policy.device
    with torch.random.fork_rng([where] if where.type == "cuda" else []):
        torch.manual_seed(seed)
        return _adapt(policy.model, LoraConfig(rank=rank, alpha=2 * rank))
