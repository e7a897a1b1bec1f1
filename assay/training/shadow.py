"""An engine that decodes with weights of its own, given to it now and then, so that it can go on during an update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from assay.engines.base import Engine, Request
from assay.policies.base import Policy
from assay.training.beside import Cancelled
from assay.types import Episode, Prompt


class Shadow:
    """Generates with a copy of a policy's weights: a :class:`~assay.engines.base.Follower` on the same device.

    What is not trained (the model beneath low-rank adapters) is shared, not copied. On a GPU the copy computes in a
    stream of its own. ``close`` ends a generation under way at its next token.

    Args:
        policy: what is trained, a :class:`~assay.policies.causal_lm.CausalLM`.
        make: an engine that decodes with the very weights of the policy it is given.
    """

    def __init__(self, policy: Policy, make: Callable[[Policy], Engine]):
        copy: Any = policy.twin()
        copy.tokenizer = deepcopy(copy.tokenizer)  # the other thread has the policy's
        copy.module.requires_grad_(False).eval()
        self._shared = [not p.requires_grad for p in policy.module.parameters()]
        for mine, theirs, shared in zip(
            copy.module.parameters(), policy.module.parameters(), self._shared, strict=True
        ):
            if shared:
                mine.data = theirs.data
        self.policy, self.engine = copy, make(copy)
        self._closed = False
        self._device = next(copy.module.parameters()).device
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        copy.model.base_model.register_forward_pre_hook(self._go_on)

    def follow(self, policy: Policy) -> None:
        """Copy the policy's weights; nothing may be under way."""
        self._closed = False
        with torch.no_grad():
            pairs = zip(self.policy.module.parameters(), policy.module.parameters(), self._shared, strict=True)
            for mine, theirs, shared in pairs:
                if not shared:
                    mine.copy_(theirs)
            for own, other in zip(self.policy.module.buffers(), policy.module.buffers(), strict=True):
                own.copy_(other)
        if self._stream is not None:
            torch.cuda.current_stream(self._device).synchronize()

    def close(self) -> None:
        """End what is being generated."""
        self._closed = True

    def _go_on(self, *_: Any) -> None:
        if self._closed:
            raise Cancelled

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.engine.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.engine.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.engine.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        with ExitStack() as stack:
            if self._stream is not None:
                contexts: list[AbstractContextManager[Any]] = [
                    torch.cuda.device(self._device),
                    torch.cuda.stream(self._stream),
                ]
                for context in contexts:
                    stack.enter_context(context)
            return self.engine.generate(requests)
