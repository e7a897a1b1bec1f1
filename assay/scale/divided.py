"""The expensive parts of a step, each rank doing its share of them; what comes back is the whole, on every rank."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Engine, Follower, Request
from assay.engines.ended import listening
from assay.method import Method
from assay.policies.base import Policy
from assay.registry import held
from assay.scale.ranks import Ranks, are_together, going
from assay.signals.base import Models
from assay.types import Episode, Prompt, Task, Verdict
from assay.verify.answer.spans import Span
from assay.verify.base import Verifier, answer_place
from assay.verify.guard import judge

T = TypeVar("T")
X = TypeVar("X")


class DividedEngine:
    """An engine on every rank, which together answer the requests that each of them is given.

    A request's seed is its own, so who answers it makes no difference. Whatever a rollout does, in however many rounds,
    is thereby what it would do in one process.

    Args:
        engine: this rank's.
        ranks: that share requests.
        policy: whose weights ``engine`` generates with, where those have to be gathered for it.
    """

    def __init__(self, engine: Engine, ranks: Ranks, policy: Policy | None = None):
        self.engine, self.ranks, self.policy = engine, ranks, policy

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.engine.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.engine.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.engine.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`; an error of any rank's engine is raised on every rank.

        Nobody hears of responses as they end: each rank would hear of its own alone, and they judge together.
        """
        return self.divided(requests, lambda share, own: own.generate(share), lambda r: r.n * r.sampling.max_tokens)

    def divided(
        self,
        items: Sequence[X],
        work: Callable[[Sequence[X], Engine], Sequence[T]],
        cost: Callable[[X], float] = lambda _: 1.0,
    ) -> list[T]:
        """See :class:`assay.engines.base.Dividing`."""
        if not items:
            return []
        whole = getattr(self.policy, "whole", nullcontext)
        with whole(), listening(None):
            return self.ranks.divided(items, lambda share: work(share, self.engine), cost)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


class DividedFollower(DividedEngine):
    """Of engines that are given the policy's weights, one on every rank."""

    engine: Any

    def follow(self, policy: Policy) -> None:
        """Give every rank's engine the weights; all ranks go through them together."""
        self.engine.follow(policy)

    def close(self) -> None:
        self.engine.close()


class AskedTogether(DividedEngine):
    """Of engines that parts of a method ask, such as judges, one on every rank.

    Where ranks go through a step together they ask the same, and each has a share of it answered: nothing is asked
    twice, and all are told the same. Elsewhere a rank asks by itself.
    """

    def divided(
        self,
        items: Sequence[X],
        work: Callable[[Sequence[X], Engine], Sequence[T]],
        cost: Callable[[X], float] = lambda _: 1.0,
    ) -> list[T]:
        """See :class:`assay.engines.base.Dividing`."""
        return super().divided(items, work, cost) if are_together() else list(work(items, self.engine))


def asked_together(value: Any, ranks: Ranks, depth: int = 4) -> Any:
    """Return an engine as one that is asked together; of anything else, change those that it holds, ``depth`` deep."""
    if isinstance(value, DividedEngine | str | bytes | Tensor | type):
        return value
    if isinstance(value, Engine):
        return AskedTogether(value, ranks)
    if not depth:
        return value
    if type(value) in (list, tuple):
        found = [asked_together(one, ranks, depth - 1) for one in value]
        changed = any(a is not b for a, b in zip(found, value, strict=True))
        return type(value)(found) if changed else value
    if type(value) is dict:
        value.update({key: asked_together(one, ranks, depth - 1) for key, one in value.items()})
        return value
    for name, old in held(value).items():
        if (new := asked_together(old, ranks, depth - 1)) is not old:
            object.__setattr__(value, name, new)
    return value


def divided_engine(engine: Engine, policy: Policy, ranks: Ranks) -> Engine:
    """Return ``engine`` as one of ``ranks``; a process on its own keeps it as it is."""
    if ranks.size == 1:
        return engine
    if isinstance(engine, Follower):
        return DividedFollower(engine, ranks.apart())
    return DividedEngine(engine, ranks, policy)


class DividedVerifier:
    """A verifier on every rank; together they judge what each of them is given.

    Single calls are rank 0's to answer, so that a check which sometimes fails says the same everywhere.
    """

    def __init__(self, verifier: Verifier, ranks: Ranks):
        self.verifier, self.ranks = verifier, ranks

    def __call__(self, task: Task, response: str) -> Verdict:
        return self.ranks.once(lambda: judge(self.verifier, task, response))

    def map(self, pairs: Iterable[tuple[Task, str]]) -> Iterator[Verdict]:
        """Yield a verdict for each pair, in order."""
        together = getattr(self.verifier, "map", None)

        def judged(share: Sequence[tuple[Task, str]]) -> list[Verdict]:
            return list(together(share)) if together is not None else [judge(self.verifier, *pair) for pair in share]

        return iter(self.ranks.divided(list(pairs), judged, lambda pair: len(pair[1])))

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`."""
        return answer_place(self.verifier, task, response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.verifier, name)


@dataclass(slots=True)
class DividedModels(Models):
    """Models whose quantities are computed for some rows on each rank.

    Only :meth:`quantities` is divided; what signals compute otherwise, every rank computes.
    """

    ranks: Ranks = field(default_factory=Ranks)

    def once(self, work: Callable[[], T]) -> T:
        """See :meth:`assay.signals.base.Models.once`."""
        return self.ranks.once(work)

    def together(self) -> AbstractContextManager[None]:
        """See :meth:`assay.signals.base.Models.together`."""
        return going(together=self.ranks.size > 1)

    @torch.no_grad()
    def quantities(self, batch: Batch, names: Collection[str], model: str = "policy") -> dict[str, Tensor]:
        """See :meth:`assay.signals.base.Models.quantities`."""
        # With slots, super() of no arguments would look for the class as it was before.
        alone = super(DividedModels, self).quantities
        if self.ranks.size == 1 or not len(batch):
            return alone(batch, names, model)
        shares = shared_rows(batch, self.ranks)
        mine = batch.rows(shares[self.ranks.rank])
        policy = self._model(model)
        # A pass is one of all ranks, so each makes as many as the busiest; whoever has nothing to do reads one row.
        passes = len(policy.micro_batches(mine, self.token_budget)) if len(mine) else 0
        found = alone(mine, names, model) if len(mine) else {}
        shortest = batch.rows(torch.tensor([min(range(len(batch)), key=lambda i: len(batch.episodes[i].tokens))]))
        for _ in range(self.ranks.largest(passes) - passes):
            policy.forward(shortest, set(names) - {"logprobs"}, self.temperature)
        tables: dict[str, Tensor] = {}
        for rows, part in zip(shares, self.ranks.gather(found), strict=True):
            for name, values in part.items():
                per_token = not name.startswith("next_logprob")
                shape = (len(batch), batch.tokens.shape[1], *values.shape[2:]) if per_token else (len(batch),)
                table = tables.setdefault(name, values.new_zeros(shape))
                if per_token:
                    table[rows[:, None], torch.arange(values.shape[1])] = values
                else:
                    table[rows] = values
        return tables


def shared_rows(batch: Batch, ranks: Ranks) -> list[Tensor]:
    """Divide the rows of a batch among ranks, about as many tokens to each; whole prompt groups where there are enough,
    since those share a pass over their prompt."""
    groups: dict[int, list[int]] = {}
    for row, group in enumerate(batch.prompt_group.tolist()):
        groups.setdefault(group, []).append(row)
    units = list(groups.values()) if len(groups) >= ranks.size else [[row] for row in range(len(batch))]
    costs = [sum(len(batch.episodes[i].tokens) for i in unit) + len(batch.episodes[unit[0]].prompt) for unit in units]
    return [
        torch.tensor(sorted(row for unit in share for row in units[unit]), dtype=torch.int64)
        for share in ranks.share(costs)
    ]


@dataclass(frozen=True, slots=True)
class AgreedMethod(Method):
    """A method whose rewards, weights and advantages are rank 0's on every rank.

    Every rank computes them, so that parts with a memory remember the same; but a sum that a GPU adds up in another
    order may come out differently, and ranks must not disagree about what to do next. What parts ask an engine they ask
    together, see :class:`AskedTogether`.
    """

    ranks: Ranks = field(default_factory=Ranks)

    @classmethod
    def of(cls, method: Method, ranks: Ranks) -> Method:
        """Return ``method`` as ranks share it; the very same for a process on its own."""
        if ranks.size == 1:
            return method
        for part in method.parts.values():
            asked_together(part, ranks)
        return cls(**{f.name: getattr(method, f.name) for f in fields(Method)}, ranks=ranks)

    def worth(self, batch: Batch) -> Batch:
        """See :meth:`assay.method.Method.worth`."""
        with going(together=True):
            super(AgreedMethod, self).worth(batch)
        return self._agreed(batch, "rewards", "token_rewards", "reward_terms", "valid")

    def compare(self, batch: Batch) -> Batch:
        """See :meth:`assay.method.Method.compare`."""
        with going(together=True):
            super(AgreedMethod, self).compare(batch)
        self._agreed(batch, "weights", "advantages", "valid")
        batch.totals = batch.count()
        return batch

    def revalue(self, batch: Batch, signals: Collection[str]) -> Batch:
        """See :meth:`assay.method.Method.revalue`."""
        with going(together=True):
            super(AgreedMethod, self).revalue(batch, signals)
        self._agreed(batch, "advantages", "valid")
        batch.totals = batch.count()
        return batch

    def _agreed(self, batch: Batch, *names: str) -> Batch:
        for name, value in self.ranks.broadcast({name: getattr(batch, name) for name in names}).items():
            setattr(batch, name, value)
        return batch
