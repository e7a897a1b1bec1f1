"""Decoding with the logits of a model and the shift that training has made in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from assay.engines.base import Engine, Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.lean import Hidden
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.policies.attention.packed import KeyValueCache
from assay.policies.causal_lm import CausalLM
from assay.policies.combined.logit_sum import LogitSum, logit_sum
from assay.policies.logprobs import Head
from assay.policies.tabular import TabularPolicy
from assay.types import Episode


def shifted_engine(engine: Engine, tuned: Any, base: Any, weight: float) -> Engine:
    """Return an engine that samples from z + weight (z_tuned - z_base), z the logits of the engine's own policy.

    All three read what has been sampled so far. A token that the smaller models lack is shifted by 0.

    Args:
        engine: one that samples from a policy of this process.
        tuned, base: policies.
        weight: lambda; 0 for the policy as it is.

    Raises:
        UsageError: the engine has no such policy, or tokens of the three are not the same.
    """
    if getattr(engine, "divided", None) is not None:
        return DividedShift(engine, tuned, base, weight)
    policy = getattr(engine, "policy", None)
    if not isinstance(policy, CausalLM | TabularPolicy):
        raise UsageError("logits can be shifted of models of this process only: set engine.name = hf")
    if isinstance(policy, CausalLM):
        for other in (tuned, base):
            check_tokens(policy, other)
    made: Any = logit_sum([(policy, 1.0), (tuned, weight), (base, -weight)])
    return ShiftedEngine(made) if isinstance(made, LogitSum) else TabularEngine(made)


class DividedShift:
    """A shifted engine in each of several processes, which share the requests as they do without a shift."""

    def __init__(self, engine: Any, tuned: Any, base: Any, weight: float):
        self.engine, self.shift = engine, (tuned, base, weight)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""

        def work(share: Sequence[Request], own: Engine) -> list[list[Episode]]:
            return shifted_engine(own, *self.shift).generate(share)

        found: list[list[Episode]] = self.engine.divided(requests, work, lambda r: r.n * r.sampling.max_tokens)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def check_tokens(policy: CausalLM, other: Any) -> None:
    """Raise UsageError unless every token of ``other`` is one of ``policy`` with the same number."""
    mine = policy.tokenizer.get_vocab()
    tokenizer = getattr(other, "tokenizer", None)
    if tokenizer is None:
        raise UsageError(f"logits of a language model cannot be shifted by a {type(other).__name__}")
    for token, index in tokenizer.get_vocab().items():
        if mine.get(token) != index:
            raise UsageError(
                f"the models do not share their tokens: {token!r} is number {index} of one and {mine.get(token)} of "
                "the other; take models of one family"
            )


class ShiftedEngine(HFEngine):
    """The decode loop of :class:`HFEngine` over several models side by side; conversations are read anew each turn."""

    policy: LogitSum

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        modules = [policy.module for policy, _ in self.policy.terms]
        training = [module.training for module in modules]
        for module in modules:
            module.eval()
        self._head = self.policy.head
        try:
            return super().generate([replace(request, session=None) for request in requests])
        finally:
            del self._head
            for module, was in zip(modules, training, strict=True):
                module.train(was)

    def _states(self, work: int) -> Hidden:
        return SideBySide(self.policy)

    def _logits(self, hidden: Tensor, sampling: Sampling) -> Iterator[tuple[int, Tensor]]:
        start, head = 0, self._head
        for h in hidden.split(head.rows()):
            yield start, head.logits(h, sampling.temperature or 1.0)
            start += len(h)

    _head: Head


class SideBySide:
    """Hidden states of several models, each with keys and values of its own."""

    def __init__(self, policy: LogitSum):
        self.policies = [term for term, _ in policy.terms]

    def cache(self) -> Caches:
        return Caches(len(self.policies))

    def __call__(self, tokens: Int[Tensor, "S"], layout: Any) -> Tensor:
        found = []
        for policy, cache in zip(self.policies, layout.cache.each, strict=True):
            own = copy(layout)
            own.cache = cache
            if hasattr(own, "_cells"):  # which go by the shape of a model's keys
                own._cells = {}
            found.append(policy.hidden(tokens, own))
        return torch.cat([h.to(found[0]) for h in found], -1)


class Caches(KeyValueCache):
    """Key-value caches of several models for the same rows."""

    def __init__(self, models: int):
        super().__init__()
        self.each = [KeyValueCache() for _ in range(models)]

    def start(self, *arguments: Any) -> None:
        for cache in self.each:
            cache.start(*arguments)

    def reserve(self, column: int) -> None:
        for cache in self.each:
            cache.reserve(column)

    def move(self, source: Tensor, target: Tensor, column: int) -> None:
        for cache in self.each:
            cache.move(source, target, column)
