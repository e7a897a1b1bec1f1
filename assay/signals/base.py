"""The signal seam: what a part must know that only a model can tell, computed once per step for all who need it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError
from assay.policies.base import Policy
from assay.types import Task
from assay.verify.answer.spans import Span
from assay.verify.kind import KindVerifier

T = TypeVar("T")


def plain_adamw(parameters: Iterable[torch.nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """AdamW without decay, over what requires a gradient."""
    return torch.optim.AdamW([p for p in parameters if p.requires_grad], lr=lr, weight_decay=0.0)


@dataclass(slots=True)
class Models:
    """What signals and learners may run.

    Attributes:
        policy: the one that is trained, as it stands.
        reference: as it was when RL began; there if a signal asked for it.
        temperature: of sampling.
        token_budget: tokens of a pass.
        rng: for draws; its state is in the checkpoint.
        encode: prompt to token ids, as the engine does it.
        answer: where a response to a task has its answer, see :class:`assay.verify.base.Locates`: as the run's verifier
            says, or by default that of the task's kind.
        engine: samples from the policy as it is, for parts that speak between updates; ``None`` where there is none.
        partner: engine of the run's second policy, where it has one, see :class:`assay.method.partner.Partner`; for
            that one's own signals, of the first.
        lr: the policy's highest learning rate.
        optimizer: makes the run's kind of optimiser over a learner's parameters, at a learning rate.
    """

    policy: Policy
    reference: Policy | None = None
    temperature: float = 1.0
    token_budget: int = 8192
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    encode: Any = None
    answer: Callable[[Task, str], Span | None] = field(default_factory=lambda: KindVerifier().answer)
    engine: Any = None
    partner: Any = None
    lr: float = 1e-6
    optimizer: Callable[[Iterable[torch.nn.Parameter], float], torch.optim.Optimizer] = plain_adamw

    def once(self, work: Callable[[], T]) -> T:
        """Do something that one process alone is to do, such as asking a service; every process gets the result."""
        return work()

    def together(self) -> AbstractContextManager[None]:
        """Within it every process does the same, and what parts ask an engine is asked by one of them."""
        return nullcontext()

    @torch.no_grad()
    def quantities(self, batch: Batch, names: Collection[str], model: str = "policy") -> dict[str, Tensor]:
        """Return named quantities of a model on a batch, ``(N, T, ...)`` or ``(N,)`` each, from one pass.

        Args:
            batch: its episodes say prompts and tokens.
            names: ``logprobs``, or any of :data:`assay.policies.base.QUANTITIES`.
            model: ``policy`` or ``reference``.

        Raises:
            RunError: there is no such model in this run.
        """
        policy = self._model(model)
        tables: dict[str, Tensor] = {}
        live = set(names) - {"logprobs"}
        for rows in policy.micro_batches(batch, self.token_budget):
            output = policy.forward(batch.rows(rows), live, self.temperature)
            for name in names:
                values = output.logprobs if name == "logprobs" else output.live[name]
                values = values.to(device=batch.logprobs.device, dtype=batch.logprobs.dtype)
                per_token = not name.startswith("next_logprob")
                shape = (len(batch), batch.tokens.shape[1], *values.shape[2:]) if per_token else (len(batch),)
                table = tables.setdefault(name, values.new_zeros(shape))
                if per_token:
                    table[rows[:, None], torch.arange(values.shape[1])] = values
                else:
                    table[rows] = values
        return tables or {name: torch.zeros_like(batch.logprobs) for name in names}

    @torch.no_grad()
    def continuations(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        model: str = "policy",
        temperature: float | None = None,
    ) -> Tensor:
        """Return log-probabilities ``(N, K, A)`` of other texts after prefixes, NaN where there is none.

        Args:
            batch, at, what: as in :meth:`assay.policies.base.Policy.continuations`.
            model: ``policy`` or ``reference``.
            temperature: divides the logits; that of sampling if left out.
        """
        heat = self.temperature if temperature is None else temperature
        return self._probed(batch, at, what, lambda b, a, w: self._model(model).continuations(b, a, w, heat))

    @torch.no_grad()
    def continuation_ranks(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        model: str = "policy",
    ) -> Tensor:
        """Return how many tokens are likelier than each of other texts after prefixes ``(N, K, A)``, NaN where none.

        Args:
            batch, at, what, model: as in :meth:`continuations`.
        """
        return self._probed(batch, at, what, self._model(model).continuation_ranks)

    def _model(self, name: str) -> Policy:
        policy: Policy | None = getattr(self, name)
        if policy is None:
            raise RunError(f"a signal reads the {name} policy, which this run does not keep; name it in 'models'")
        return policy

    def _probed(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        probe: Callable[[Batch, list[Sequence[int]], list[Sequence[np.ndarray]]], Tensor],
    ) -> Tensor:
        """Gather what ``probe`` tells of micro-batches, ``(N, K, A)``, NaN where there is nothing."""
        width = max((len(c) for many in what for c in many), default=0)
        out = torch.full((len(batch), max(map(len, what), default=0), width), torch.nan, dtype=batch.logprobs.dtype)
        there = torch.zeros(out.shape, dtype=torch.bool)
        for i, many in enumerate(what):
            for k, tokens in enumerate(many):
                there[i, k, : len(tokens)] = True
        for rows in self.policy.micro_batches(batch, self.token_budget):
            chosen = rows.tolist()
            points, texts = [at[i] for i in chosen], [what[i] for i in chosen]
            found = probe(batch.rows(rows), points, texts).to(out)
            part = torch.full((len(chosen), *out.shape[1:]), torch.nan, dtype=out.dtype)
            part[:, : found.shape[1], : found.shape[2]] = found
            out[rows] = part
        return torch.where(there, out, torch.nan)


@runtime_checkable
class Signal(Protocol):
    """Computes one quantity of a batch. It is hashable, and listed in the ``needs`` of the parts that read it.

    ``name`` is its key in ``batch.signals``. An attribute ``models`` that holds ``"reference"`` asks for that policy.
    ``whole = True`` says that its second dimension is not that of tokens. A signal, like a part, may be a
    :class:`Learner`.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, batch: Batch, models: Models) -> Tensor:
        """Return the detached quantity; its first dimension is N."""
        ...


@runtime_checkable
class Learner(Protocol):
    """Something with parameters of its own, trained beside the policy and kept in the checkpoint.

    It makes modules and optimiser in :meth:`start`, before the first step, with torch's generator seeded by the run. A
    method ``check(policy)``, if it has one, is called before anything else, to refuse a policy it cannot learn beside.
    One with ``turn = "before"`` learns before the policy; if it is a signal, the policy learns from what it then says:
    it is read anew, and so are the rewards, if they read it, and the advantages. ``trains_model = True`` says that it
    has a whole model of its own.
    """

    def start(self, models: Models) -> None: ...

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Take the step's update, after the policy's or before it; return metrics."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def with_prompts(batch: Batch, prompts: Sequence[np.ndarray]) -> Batch:
    """Return the batch with its responses read under other prompts ``(P_i,)``; its signals are left behind."""
    episodes = [replace(e, prompt=p) for e, p in zip(batch.episodes, prompts, strict=True)]
    return replace(batch, episodes=episodes, signals={}, live={})
