"""Verification on Ray actors, each with a pool of processes that can be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from assay.errors import UsageError
from assay.scale.ray.cluster import Cluster
from assay.scale.ray.crew import Crew
from assay.scale.ray.parts import outside, register
from assay.types import Task, Verdict
from assay.verify.answer.spans import Span
from assay.verify.base import answer_place
from assay.verify.isolate.pool import VerifierPool, check_verifier
from assay.verify.make import make_verifier

Pair = tuple[Task, str]

TRIES = 3
"""Actors that may die over a response alone, after one over several, before its verdict is an abstention."""
PIECE = 64
"""Most responses that an actor is given at a time."""


class RayVerifier:
    """A verifier on ``scale.verifiers`` actors, see :class:`~assay.verify.isolate.pool.VerifierPool` for what each is.

    A check that hangs or crashes costs that check alone, in the actor's pool; an actor that dies costs its responses
    another try elsewhere. What cannot be judged abstains with the reason; nothing is ever called wrong for it.

    Args:
        cluster: joined before the first call; the actors start when it is.
        spec: as a recipe's ``tasks.verify``.
        processes: of each actor's pool.

    Raises:
        UsageError: the verifier cannot be made.
    """

    def __init__(self, cluster: Cluster, spec: str | Mapping[str, Any] | None = None, processes: int = 1):
        self.cluster = cluster
        self.verifier = make_verifier(spec)
        described = dict(spec) if isinstance(spec, Mapping) else spec
        made_here = outside("verify")
        scale = cluster.scale
        self.crew = Crew(
            cluster,
            "verifier",
            VerifierActor,
            lambda: (described, processes, made_here),
            scale.engines,
            scale.verifiers,
        )
        cluster.when_joined.append(self.crew.start)

    def __call__(self, task: Task, response: str) -> Verdict:
        return next(self.map([(task, response)]))

    def map(self, pairs: Iterable[Pair]) -> Iterator[Verdict]:
        """Yield a verdict for each pair, in order. As many are read ahead as keep every actor busy."""
        waiting = iter(pairs)
        while some := list(islice(waiting, PIECE * self.crew.size * 4)):
            size = min(PIECE, max(1, -(-len(some) // (2 * self.crew.size))))
            pieces = [some[i : i + size] for i in range(0, len(some), size)]
            yield from self._judged(pieces)

    def _judged(self, pieces: list[list[Pair]]) -> Iterator[Verdict]:
        """Verdicts on pieces. What cannot be judged together is judged one by one, so that the culprit alone fails."""
        found = self.crew.run(pieces, _ask, lambda piece, why: None, tries=1)
        alone = [[pair] for verdicts, piece in zip(found, pieces, strict=True) if verdicts is None for pair in piece]
        again = chain.from_iterable(self.crew.run(alone, _ask, _abstain, TRIES))
        for verdicts, piece in zip(found, pieces, strict=True):
            yield from islice(again, len(piece)) if verdicts is None else verdicts

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`; told here, in this process."""
        return answer_place(self.verifier, task, response)

    def ready(self) -> None:
        """See :func:`assay.verify.kind.check_ready`; what this machine lacks, the actors' may lack as well."""
        check_verifier(self.verifier, ())

    def check(self, tasks: Iterable[Task]) -> None:
        """See :meth:`assay.verify.isolate.pool.VerifierPool.check`."""
        check_verifier(self.verifier, tasks)

    def close(self) -> None:
        """End the actors, and leave the cluster if there are no engines, which do that."""
        self.crew.close()
        if not self.cluster.scale.engines:
            self.cluster.close()


def _ask(actor: Any, piece: Sequence[Pair]) -> Any:
    return actor.judge.remote([(_fields(task), response) for task, response in piece])


def _fields(task: Task) -> tuple[Any, ...]:
    return task.id, task.prompt, task.reference, task.kind, task.solution, task.hints, dict(task.meta)


def _abstain(piece: Sequence[Pair], why: str) -> list[Verdict]:
    return [
        Verdict.abstain(f"the check failed: its worker failed {TRIES} times or more, the last time: {why}")
        for _ in piece
    ]


class VerifierActor:
    """Judges responses in a pool of its own."""

    def __init__(self, spec: str | dict[str, Any] | None, processes: int, parts: Mapping[str, Callable[..., Any]]):
        self.spec, self.processes, self.parts = spec, processes, parts
        self.pool: VerifierPool | None = None

    def start(self) -> None:
        """Make the pool. Not in the constructor, whose errors Ray takes for deaths.

        Raises:
            UsageError: this machine lacks what the verifier needs.
        """
        register("verify", self.parts)
        self.pool = VerifierPool(self.spec, self.processes)
        self.pool.check(())

    def judge(self, pairs: Sequence[tuple[tuple[Any, ...], str]]) -> list[Verdict]:
        if self.pool is None:
            raise UsageError("a verifier was asked before it was started")
        return list(self.pool.map((Task(*fields), response) for fields, response in pairs))
