"""The processes that train together, and what they say to each other. Nothing else in assay speaks to its peers.

Every rank runs the same program from the same seed, so all that a run decides (what is asked, what a response is worth,
what is left out) is computed on every rank, from the same numbers, and comes out the same. Only what is expensive is
divided: responses, verdicts, passes over rows; what each rank found is gathered, so that every rank has the whole.
Hence the one rule: *every rank makes the same calls of its* :class:`Ranks` *in the same order*.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from assay.errors import RunError, UsageError

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

T = TypeVar("T")
X = TypeVar("X")

RENDEZVOUS = "ASSAY_RENDEZVOUS"
"""Names the file that ranks on one machine find each other through; set by :mod:`assay.scale.launch`."""

TIMEOUT = timedelta(hours=2)
"""How long a rank waits for the others: as long as the slowest share of responses or verdicts may take."""

_TOGETHER: ContextVar[bool] = ContextVar("together", default=False)


@contextmanager
def going(together: bool) -> Iterator[None]:
    """Whether all ranks go through the block together, from the same numbers; see :func:`are_together`."""
    token = _TOGETHER.set(together)
    try:
        yield
    finally:
        _TOGETHER.reset(token)


def are_together() -> bool:
    """Whether the ranks are known to make the same calls just now: within ``going(together=True)``, but neither in a
    thread begun there nor in the work of one rank."""
    return _TOGETHER.get()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process stands among those that train together.

    Attributes:
        rank: its number, from 0.
        size: how many there are.
        local: its number on its machine, which says what GPU it takes.
        meet: how they find each other, as ``torch.distributed`` writes it: ``env://``, ``file:///...``.
    """

    rank: int
    size: int
    local: int
    meet: str = "env://"


class Ranks:
    """The ranks of a run, seen from one of them. This class itself is a process on its own, rank 0 of 1.

    Attributes:
        rank, size, local: see :class:`Place`.
    """

    def __init__(self, rank: int = 0, size: int = 1, local: int = 0) -> None:
        self.rank, self.size, self.local = rank, size, local

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which alone writes to the run's folder and to the screen."""
        return self.rank == 0

    def gather(self, value: T) -> list[T]:
        """Return every rank's value, in the order of ranks, on every rank. Any Python object that can be pickled.

        Raises:
            RunError: a rank has gone.
        """
        return [value]

    def broadcast(self, value: T) -> T:
        """Return rank 0's value on every rank; what the others give is ignored.

        Raises:
            RunError: a rank has gone.
        """
        return value

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.gather(None)

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sums over ranks of some numbers: in float64, in the order of ranks, so the same on every rank."""
        return [float(sum(column)) for column in zip(*self.gather(list(values)), strict=True)]

    def largest(self, value: int) -> int:
        """Return the largest of every rank's numbers."""
        return max(self.gather(value))

    def once(self, work: Callable[[], T]) -> T:
        """Let rank 0 alone do something, such as reading a file; every rank gets its result, or its error."""
        if self.size == 1:
            return work()
        return _value(self.broadcast(_tried(work) if self.first else None))

    def all(self, work: Callable[[], T]) -> list[T]:
        """Let every rank do something of its own and return all results; an error of any rank is raised on every rank.

        ``work`` makes no calls of these ranks itself: where it fails, others would wait.
        """
        return [_value(found) for found in self.gather(_tried(work))]

    def share(self, costs: Sequence[float]) -> list[list[int]]:
        """Divide items of these costs among ranks; return the items' numbers by rank, each in ascending order.

        The costliest go round first, there and back again, so that ranks get about the same cost, and numbers of items
        that differ by one at most.
        """
        out: list[list[int]] = [[] for _ in range(self.size)]
        by_cost = sorted(range(len(costs)), key=lambda i: (-costs[i], i))
        for place, item in enumerate(by_cost):
            lap, seat = divmod(place, self.size)
            out[seat if lap % 2 == 0 else self.size - 1 - seat].append(item)
        return [sorted(items) for items in out]

    def divided(
        self,
        items: Sequence[X],
        work: Callable[[Sequence[X]], Sequence[T]],
        cost: Callable[[X], float] = lambda _: 1.0,
    ) -> list[T]:
        """Return ``work(items)``, each rank doing its share; an error of any rank is raised on every rank.

        Args:
            items: the same on every rank.
            work: gives one result for each item, in order, from its item alone; an empty share is not worked on.
            cost: of an item, in any unit, to balance shares.
        """
        if self.size == 1:
            return list(work(items))
        shares = self.share([cost(x) for x in items])
        mine = shares[self.rank]
        found = self.all(lambda: list(work([items[i] for i in mine])) if mine else [])
        out: dict[int, T] = {}
        for share, results in zip(shares, found, strict=True):
            out.update(zip(share, results, strict=True))
        return [out[i] for i in range(len(items))]

    def apart(self) -> Ranks:
        """Return the same ranks with a line of their own: for a thread, whose calls are then in order with themselves
        alone. Every rank calls this."""
        return self

    def lost(self, error: BaseException) -> bool:
        """Whether an error says that a rank has gone, rather than that this one failed."""
        return isinstance(error, LostRank)

    def close(self) -> None:
        """Part from the others, once all have come to the end."""


Alone = Ranks
"""A process on its own."""


class LostRank(RunError):
    """Another rank has gone, and with it the step in flight."""

    exit_code = 75  # EX_TEMPFAIL; the launcher knows by it who is not to blame

    def __init__(self) -> None:
        super().__init__(
            "lost another process of this run; continue from its last checkpoint with: assay train --resume"
        )


def tells_of_loss(error: BaseException | None) -> bool:
    """Whether an error, or what it came of, is what ``torch.distributed`` raises when a peer has gone."""
    import torch.distributed as dist

    while error is not None:
        if isinstance(error, LostRank | dist.DistBackendError | dist.DistNetworkError):
            return True
        # gloo raises plain RuntimeErrors that name its source, or the transport's.
        text = str(error).lower()
        if isinstance(error, RuntimeError) and any(
            w in text for w in ("gloo", "nccl", "connection closed by peer", "connection reset by peer")
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


class Group(Ranks):
    """Ranks that speak through ``torch.distributed``.

    Args:
        place: where this process stands.
        device: ``cuda`` gives tensors a group of NCCL, ``cpu`` one of gloo; Python objects go by gloo always.

    Raises:
        RunError: the others were not found.
    """

    def __init__(self, place: Place, device: str = "cpu"):
        import torch
        import torch.distributed as dist

        super().__init__(place.rank, place.size, place.local)
        if device == "cuda":
            torch.cuda.set_device(place.local)
        try:
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo",
                init_method=place.meet,
                rank=place.rank,
                world_size=place.size,
                timeout=TIMEOUT,
            )
            self._objects: ProcessGroup | None = dist.new_group(backend="gloo", timeout=TIMEOUT)
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RunError(f"rank {place.rank} did not find the other {place.size - 1}: {reason}") from error

    def apart(self) -> Ranks:
        import torch.distributed as dist

        other = copy(self)
        other._objects = dist.new_group(backend="gloo", timeout=TIMEOUT)
        return other

    def gather(self, value: T) -> list[T]:
        import torch.distributed as dist

        out: list[Any] = [None] * self.size
        self._spoken(lambda: dist.all_gather_object(out, value, group=self._objects))
        return out

    def broadcast(self, value: T) -> T:
        import torch.distributed as dist

        box = [value if self.first else None]
        self._spoken(lambda: dist.broadcast_object_list(box, src=0, group=self._objects))
        return box[0]  # type: ignore[return-value]

    def lost(self, error: BaseException) -> bool:
        return tells_of_loss(error)

    def _spoken(self, speak: Callable[[], Any]) -> None:
        try:
            speak()
        except RuntimeError as error:
            if self.lost(error):
                raise LostRank from error
            raise

    def close(self) -> None:
        import torch.distributed as dist

        if dist.is_initialized():
            self.barrier()
            dist.destroy_process_group()


def place_of(environment: Mapping[str, str] | None = None) -> Place | None:
    """Return where a launcher put this process, as the environment says it; ``None`` if none did.

    Read are assay's own launcher's variables, torchrun's (``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, with
    ``MASTER_ADDR`` and ``MASTER_PORT`` for torch) and, where there are none of those, those ``srun`` gives each task
    (``SLURM_PROCID``, ``SLURM_STEP_NUM_TASKS``, ``SLURM_LOCALID``), beside which ``MASTER_ADDR`` has to be set.
    """
    given = os.environ if environment is None else environment
    try:
        if "RANK" in given and "WORLD_SIZE" in given:
            rank, size = int(given["RANK"]), int(given["WORLD_SIZE"])
            return Place(rank, size, int(given.get("LOCAL_RANK", rank)), given.get(RENDEZVOUS, "env://"))
        # A batch script, which is no task of any step, has a SLURM_PROCID and a SLURM_NTASKS too.
        if "SLURM_PROCID" in given and "MASTER_ADDR" in given and int(given.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
            rank = int(given["SLURM_PROCID"])
            port = given.get("MASTER_PORT", "29500")
            meet = f"tcp://{given['MASTER_ADDR']}:{port}"
            return Place(rank, int(given["SLURM_STEP_NUM_TASKS"]), int(given.get("SLURM_LOCALID", rank)), meet)
    except ValueError as error:
        raise UsageError(f"RANK, WORLD_SIZE and the like have to be numbers: {error}") from None
    return None


def join(trainers: int, device: str = "cpu", place: Place | None = None) -> Ranks:
    """Return the ranks this process trains with, once all of them are there.

    Args:
        trainers: how many the recipe wants (``scale.trainers``).
        device: ``cpu`` or ``cuda``, where weights and gradients live.
        place: where this process stands; as the environment says if left out.

    Raises:
        UsageError: nobody started the other ranks, or another number of them.
        RunError: they were not found.
    """
    place = place or place_of()
    if trainers == 1 and (place is None or place.size == 1):
        return Alone()
    if place is None:
        raise UsageError(
            f"scale.trainers = {trainers} takes as many processes: start them with the command assay train, with "
            "torchrun or with srun"
        )
    if place.size != trainers:
        raise UsageError(
            f"{place.size} processes were started and scale.trainers = {trainers}; start as many, or set "
            f"scale.trainers={place.size}"
        )
    return Group(place, device)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of some work: its value, or the error it raised."""

    value: Any = None
    error: Exception | None = None


def _tried(work: Callable[[], Any]) -> _Outcome:
    try:
        with going(together=False):
            return _Outcome(work())
    except LostRank:
        raise
    except Exception as error:  # raised again, on every rank
        return _Outcome(error=_portable(error))


def _portable(error: Exception) -> Exception:
    """The error itself if it can be pickled, else one with the same words."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever a foreign error's constructor does
        return RunError(f"{type(error).__name__}: {error}")
    return error


def _value(outcome: Any) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.value
