"""An engine that decodes with weights of its own, given to it now and then, so that it can go on during an update."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import deepcopy
from typing import Any

import torch

from assay.engines.base import Engine, Request
from assay.engines.speaking import Speaking
from assay.learning.worker import Cancelled
from assay.policies.base import Policy
from assay.types import Episode


class Shadow(Speaking):
    """Generates with a copy of a policy's weights: a :class:`~assay.engines.base.Follower` on the same device.

    What is not trained (the model beneath low-rank adapters) is shared, not copied. On a GPU the copy computes in a
    stream of its own. ``close`` ends a generation under way at its next token, where the engine tells of tokens.

    Args:
        policy: what is trained.
        make: an engine that decodes with the very weights of the policy it is given; that tells of tokens which has
            ``observe``, see :meth:`assay.engines.hf.HFEngine.observe`.
    """

    def __init__(self, policy: Policy, make: Callable[[Policy], Engine]):
        copy: Any = policy.twin()
        if hasattr(copy, "tokenizer"):
            copy.tokenizer = deepcopy(copy.tokenizer)  # the other thread has the policy's
        copy.module.requires_grad_(False).eval()
        self._shared = [not p.requires_grad for p in policy.module.parameters()]
        for mine, theirs, shared in zip(
            copy.module.parameters(), policy.module.parameters(), self._shared, strict=True
        ):
            if shared:
                mine.data = theirs.data
        engine: Any = make(copy)
        self.policy, self.engine = copy, engine
        self._closed = False
        self._device = next(copy.module.parameters()).device
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        # At every token, and not by a hook on the model, with which an engine could not compute it in a way of its own.
        if hasattr(engine, "observe"):
            self._observe = engine.observe
            engine.observe = self._go_on

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

    def _go_on(self, *drawn: Any) -> None:
        if self._closed:
            raise Cancelled
        self._observe(*drawn)

    def end_sessions(self, sessions: Iterable[str]) -> None:
        """See :class:`assay.engines.base.Keeping`."""
        if hasattr(self.engine, "end_sessions"):
            self.engine.end_sessions(sessions)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        if self._closed:
            raise Cancelled
        with ExitStack() as stack:
            if self._stream is not None:
                contexts: list[AbstractContextManager[Any]] = [
                    torch.cuda.device(self._device),
                    torch.cuda.stream(self._stream),
                ]
                for context in contexts:
                    stack.enter_context(context)
            return self.engine.generate(requests)
