"""Generation and verification beside the update: batches that are asked ahead, and judged while others are made.

One thread generates, batch after batch; another one judges what has been generated. The main thread, which draws,
values and learns, takes batches out in the order in which it asked for them::

    generation     | batch 1      | batch 2      | batch 3      |
    verification   |              | batch 1      | batch 2      |
    update         | batch 0      | batch 1      | batch 2      |

An engine that tells of responses as they end has each judged while the others of its batch are still generated, so that
of a batch's verification only that of its last responses comes after its generation.

Nothing here decides what is asked or which weights answer; see ``Trainer.launch``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from assay.engines.ended import listening
from assay.learning.ahead import Ahead
from assay.learning.beside import in_parts
from assay.learning.worker import Cancelled, Worker
from assay.training.ahead.in_flight import pack, unpack
from assay.types import Ask, Group


@dataclass(eq=False, slots=True)
class Flight:
    """A batch that is asked for, and perhaps generated, and perhaps judged.

    Attributes:
        step: RL step (0-based) that learns from it.
        asks: what is asked.
        version: RL steps that the weights which answer had behind them; -1 before the launch.
        generated: done when all groups are made; ``None`` before the launch.
        made, judged: groups without and with verdicts, by parts; filled by the threads.
        metrics: what the rollout says of it.
        seconds: ``generate`` and ``verify``.
    """

    step: int
    asks: list[Ask]
    version: int = -1
    generated: Future[None] | None = None
    made: list[list[Group]] = field(default_factory=list)
    judged: list[Future[list[Group]]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch that came back.

    Attributes:
        groups: judged.
        version: see :class:`Flight`.
        metrics: what the rollout says of it.
        seconds: ``generate`` and ``verify``, what each took in its thread; ``waiting``, the main thread's for either
            since the batch before; ``verify_hidden``, what of ``verify`` nobody waited for.
    """

    groups: list[Group]
    version: int
    metrics: dict[str, float]
    seconds: dict[str, float]


class Pipeline:
    """Batches in flight, oldest first.

    Args:
        collect: what a rollout does; called in one thread, one call at a time.
        judge: groups with verdicts of groups without; called in another thread, one call at a time.
        parts: pieces a batch is generated in; each is judged as soon as it is there, or as its responses end.
        whole: judge all that is there in one call (a pool does it side by side) instead of one group after another.
        metrics: what the rollout says of its last call.
    """

    def __init__(
        self,
        collect: Callable[[Sequence[Ask], np.random.Generator], list[Group]],
        judge: Callable[[Sequence[Group]], list[Group]],
        parts: int = 1,
        whole: bool = False,
        metrics: Callable[[], Mapping[str, float]] = dict,
    ):
        self.collect, self.judge, self.parts, self.whole, self.metrics = collect, judge, parts, whole, metrics
        self.flights: list[Flight] = []
        self._generator, self._verifier = Worker("generate"), Worker("verify")
        self._waited = 0.0
        self._storable = False

    def launch(self, flight: Flight, rng: np.random.Generator, version: int) -> None:
        """Have the asks of ``flight`` answered, after those launched before; ``rng`` is the flight's alone."""
        flight.version = version
        flight.generated = self._generator.submit(lambda: self._generate(flight, rng))

    def idle(self, verdicts: bool = False) -> None:
        """Wait until nothing is being generated, and with ``verdicts`` nothing judged; errors wait for :meth:`take`."""
        start = time.perf_counter()
        for flight in self.flights:
            if flight.generated is not None:
                flight.generated.exception()
            for future in flight.judged if verdicts else ():
                future.exception()
        self._waited += time.perf_counter() - start

    def take(self) -> Taken:
        """Wait for the oldest flight and take it out.

        Raises:
            UsageError: the first one cannot be stored, see :func:`assay.training.ahead.in_flight.pack`.
            Exception: what went wrong with the flight, the very error.
        """
        flight, start = self.flights.pop(0), time.perf_counter()
        assert flight.generated is not None, f"the batch of step {flight.step} was not launched"
        flight.generated.result()
        generated = time.perf_counter()
        groups = [group for future in flight.judged for group in future.result()]
        end = time.perf_counter()
        if not self._storable:
            pack(groups)  # better now than at a checkpoint much later
            self._storable = True
        verified = flight.seconds.get("verify", 0.0)
        hidden = max(0.0, verified - (end - generated))
        waited, self._waited = self._waited + end - start, 0.0
        seconds = {**flight.seconds, "verify_hidden": hidden, "waiting": waited}
        return Taken(groups, flight.version, flight.metrics, seconds)

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        self.idle(verdicts=True)
        self.flights = []

    def close(self) -> None:
        """Begin nothing more; whoever is to end a generation under way has done so."""
        for worker in (self._generator, self._verifier):
            worker.close()

    # In the threads

    def _generate(self, flight: Flight, rng: np.random.Generator) -> None:
        start = time.perf_counter()
        for part in in_parts(flight.asks, self.parts):
            if self._generator.closed:
                raise Cancelled
            ahead = Ahead(part, partial(self._judge, flight), self._verifier, self.whole)
            with listening(ahead.hear):
                groups = self.collect(part, rng)
            self._to_judge(flight, groups, ahead)
        flight.metrics = dict(self.metrics())
        flight.seconds["generate"] = time.perf_counter() - start

    def _to_judge(self, flight: Flight, groups: list[Group], ahead: Ahead) -> None:
        flight.made.append(groups)
        flight.judged.append(self._verifier.submit(partial(ahead.finish, groups)))

    def _judge(self, flight: Flight, groups: Sequence[Group]) -> list[Group]:
        start = time.perf_counter()
        out = self.judge(groups)
        flight.seconds["verify"] = flight.seconds.get("verify", 0.0) + time.perf_counter() - start
        return out

    # In checkpoints

    def state_dict(self) -> list[dict[str, Any]]:
        """Wait for all that is in flight and return it as plain data.

        Of a flight whose generation failed there are the asks, to be asked again; what could not be judged is there
        without verdicts, to be judged again.

        Raises:
            UsageError: something cannot be stored, see :func:`assay.training.ahead.in_flight.pack`.
        """
        out = []
        for flight in self.flights:
            whole = flight.generated is not None and flight.generated.exception() is None
            kept = [
                made if judged.exception() is not None else judged.result()
                for made, judged in zip(flight.made, flight.judged, strict=True)
            ]
            out.append(
                {
                    "step": flight.step,
                    "version": flight.version if whole else -1,
                    "asks": pack([] if whole else flight.asks),
                    "groups": pack([group for groups in kept for group in groups] if whole else None),
                    "metrics": dict(flight.metrics),
                }
            )
        return out

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Take back what :meth:`state_dict` gave; flights with asks alone are to be launched."""
        self.flights = []
        for saved in state:
            flight = Flight(saved["step"], unpack(saved["asks"]), saved["version"], metrics=dict(saved["metrics"]))
            groups = unpack(saved["groups"])
            if groups is not None:
                flight.generated = Future()
                flight.generated.set_result(None)
                self._to_judge(flight, groups, Ahead([], partial(self._judge, flight), self._verifier, self.whole))
            self.flights.append(flight)
