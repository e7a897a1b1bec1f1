"""Weights that a strategy trains on one task at a time: lent, told to the engine, and put back after each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from assay.batch import Batch
from assay.engines.base import Engine, Follower
from assay.errors import UsageError
from assay.policies.base import Policy
from assay.policies.borrowed import Borrowed, borrowed


class Adapted:
    """A policy whose weights are a strategy's to train, task by task.

    Args:
        engine: samples from the policy, or has a copy of its weights.
        policy: whose they are.
        held: the weights.
        how: all that says, beside what is learned from, what a step makes of the weights.
    """

    def __init__(self, engine: Engine, policy: Policy, held: Borrowed, how: tuple[object, ...]):
        self.engine, self.policy, self.held, self._how = engine, policy, held, how
        self._past: hashlib.blake2b | None = None

    @contextmanager
    def to_a_task(self) -> Iterator[None]:
        """Put the weights back where the task ends, however it does."""
        self._past = None
        try:
            yield
        finally:
            self.held.restore()
            self.tell()

    def learned(self, batch: Batch) -> None:
        """Note that a step was taken on a batch; from now on the engine answers by the new weights."""
        self._past = self._past or hashlib.blake2b(repr(self._how).encode(), digest_size=7)
        self._past.update(batch.tokens.numpy().tobytes() + batch.advantages.numpy().tobytes())
        self.tell()

    def seed(self, drawn: int) -> int:
        """Return the seed of a request: ``drawn`` itself before the first step, and after it another for other weights.

        An engine may remember what it was asked with this seed when its weights were others.
        """
        return drawn if self._past is None else drawn ^ int.from_bytes(self._past.digest())

    def tell(self) -> None:
        """Have an engine with a copy of the weights take over those there are now."""
        if isinstance(self.engine, Follower):
            self.engine.follow(self.policy)


def trainable(strategy: str, engine: Engine) -> Policy:
    """Return the policy that an engine samples from.

    Raises:
        UsageError: the engine has no weights here that ``strategy`` could train.
    """
    policy = getattr(engine, "policy", None)
    if not isinstance(policy, Policy):
        raise UsageError(
            f"strategy {strategy!r} trains the model on each task, and this engine has no weights here; name a run, a "
            "checkpoint or a model in place of an endpoint"
        )
    return policy


@contextmanager
def adapted(
    engine: Engine, policy: Policy, rank: int, rng: np.random.Generator, how: tuple[object, ...]
) -> Iterator[Adapted]:
    """Lend the weights of a policy, see :func:`~assay.policies.borrowed.borrowed`.

    Args:
        engine, policy, how: see :class:`Adapted`.
        rank: of adapters that are put on.
        rng: for these.
    """
    with borrowed(policy, rank, int(rng.integers(2**63))) as held:
        found = Adapted(engine, policy, held, how)
        yield found
    found.tell()
