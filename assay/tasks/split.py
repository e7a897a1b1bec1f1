"""Training and evaluation tasks that cannot overlap."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import RunError, UsageError
from assay.tasks.base import TaskSource
from assay.tasks.seeded import check_seed, permutation
from assay.types import Task

MIN_SCAN = 10_000
"""Tasks of an endless source looked at, at least, before it is said to have too few distinct ones."""

MOST_HELD_OUT = 500
"""Tasks that are held out, at most, where nobody says how many."""

SMALL = 1000
"""Tasks from which on no side of a sensible share is empty."""

LOOKED = 32
"""First tasks of an endless source that are to be the same when a run goes on; of a sized one, all are."""


def split(
    source: TaskSource,
    eval_share: float = 0.1,
    eval_size: int | None = 64,
    seed: int = 0,
    key: int | None = None,
) -> tuple[TrainStream, list[Task]]:
    """Divide ``source`` by the content of its tasks.

    A task is held out iff a keyed hash of its prompt and reference, uniform on [0, 1), is below ``eval_share``. Equal
    tasks share their hash, so none is on both sides even where a source repeats itself. Every held-out task is skipped
    in training, also those that evaluation does not use.

    Args:
        source: sized or endless.
        eval_share: share of distinct tasks held out, in [0, 1).
        eval_size: evaluation tasks, all different: of a sized source the held-out ones of lowest hash (an unbiased
            sample), of an endless one the first. ``None`` takes those that there are, at most :data:`MOST_HELD_OUT`;
            where a sized source is so small that the hash leaves one side empty, the share's number of tasks of lowest
            hash are held out, at least one.
        seed: of the order of training, >= 0.
        key: of the hash; ``seed`` unless given.

    Returns:
        The endless stream of training tasks, and the evaluation tasks.

    Raises:
        UsageError: the source is empty or too small for either side.
    """
    check_seed("split", seed)
    if not 0 <= eval_share < 1:
        raise UsageError(f"eval_share {eval_share} must be in [0, 1)")
    if eval_size is not None and (eval_size < 0 or (eval_size > 0 and eval_share == 0)):
        raise UsageError(f"eval_size {eval_size} with eval_share {eval_share}: give both, or set both to 0")
    if source.size == 0:
        raise UsageError("the task source is empty")
    wanted = MOST_HELD_OUT if eval_size is None else eval_size
    key = seed if key is None else key
    held_out = _rule(source, eval_share, key) if eval_size is None and source.size is not None else None
    held_out = held_out or HeldOut(eval_share, key)
    reach = int(20 * wanted / max(eval_share, 1e-9))
    if eval_size is None:  # nobody wants so many of them that the source had to be searched for the last
        reach = min(reach // 10, 10 * MIN_SCAN)
    scan = source.size if source.size is not None else max(MIN_SCAN, reach)
    found: dict[int, Task] = {}
    some_train = False
    digest, looked = hashlib.blake2b(digest_size=16), scan if source.size is not None else LOOKED
    for index in range(scan):
        task = source[index]
        at = held_out.hash(task)
        if index < looked:
            digest.update(_material(task, at))
        if at >= held_out.bound:
            some_train = True
        else:
            found.setdefault(at, task)
        if source.size is None and some_train and len(found) >= wanted:
            for later in (source[i] for i in range(index + 1, looked)):
                digest.update(_material(later, held_out.hash(later)))
            break
    seen = f"{source.size:,} tasks" if source.size is not None else f"the first {scan:,} tasks of the endless source"
    if eval_size is None and not found:
        raise UsageError(f"eval_share {eval_share} of {seen} holds out none; raise it or take a larger source")
    if eval_size is not None and len(found) < eval_size:
        raise UsageError(
            f"eval_size {eval_size} is too large: eval_share {eval_share} of {seen} holds out {len(found)} different "
            "ones; lower eval_size, raise eval_share or take a larger source"
        )
    if not some_train:
        raise UsageError(
            f"eval_share {eval_share} of {seen} leaves no task to train on; lower it or take a larger source"
        )
    chosen = sorted(found)[:wanted] if source.size is not None else list(found)[:wanted]
    return TrainStream(source, held_out, seed, digest.hexdigest()), [found[at] for at in chosen]


def every(source: TaskSource, size: int | None, key: int = 0) -> list[Task]:
    """Return all tasks of a sized source in their order, or the ``size`` ones of lowest hash (see :func:`split`).

    Raises:
        UsageError: the source is empty, endless, or has fewer.
    """
    if source.size is None:
        raise UsageError("an endless source has no last task; give an eval_share below 1")
    if source.size < (size or 1):
        raise UsageError(f"eval_size {size or 1} of a source of {source.size} tasks is too large")
    tasks = [source[index] for index in range(source.size)]
    return tasks if size is None else sorted(tasks, key=HeldOut(1, key).hash)[:size]


def measured(source: TaskSource, size: int | None, key: int = 0) -> list[Task]:
    """Return the tasks that a source of nothing but held-out ones is measured by, all different.

    Of a sized source all, or the ``size`` ones of lowest hash (see :func:`split`), in its order; of an endless one the
    first, :data:`MOST_HELD_OUT` unless ``size`` is given. Where a source has fewer, those that it has.

    Raises:
        UsageError: it has none.
    """
    wanted = size if size is not None else MOST_HELD_OUT
    scan = max(MIN_SCAN, 20 * wanted) if source.size is None else source.size
    rule = HeldOut(1, key)
    found: dict[int, Task] = {}
    for index in range(scan):
        task = source[index]
        found.setdefault(rule.hash(task), task)
        if source.size is None and len(found) == wanted:
            break
    if not found:
        raise UsageError("the source of held-out tasks is empty")
    kept = set(found if size is None else sorted(found)[:size])
    return [task for at, task in found.items() if at in kept]


def without(source: TaskSource, held_out: Iterable[Task], seed: int = 0) -> TrainStream:
    """Return a stream of all tasks of a source but those that are held out, from wherever these are.

    Raises:
        UsageError: the source is empty, or that leaves nothing.
    """
    if source.size == 0:
        raise UsageError("the task source is empty")
    held_out = list(held_out)
    digest = hashlib.blake2b(digest_size=16)
    for task in held_out:
        digest.update(_material(task, HeldOut(0, seed).hash(task)))
    return _stream(source, Among(held_out), seed, digest)


def beside(stream: TrainStream, source: TaskSource) -> TrainStream:
    """Return a stream, at its beginning, of the source of ``stream`` or of another without what its rule holds out.

    Raises:
        UsageError: that leaves nothing.
    """
    if source is stream.source:
        made = TrainStream(source, stream.held_out, stream.seed, stream.digest)
    else:
        made = _stream(source, stream.held_out, stream.seed, hashlib.blake2b(digest_size=16))
    made.fits = stream.fits
    return made


def _stream(source: TaskSource, held_out: Callable[[Task], bool] | None, seed: int, digest: Any) -> TrainStream:
    """Return a stream of what a rule leaves of a source; its tasks' content is added to ``digest``."""
    tasks = [source[i] for i in range(LOOKED if source.size is None else source.size)]
    if all(held_out is not None and held_out(task) for task in tasks):
        how = "train on others" if isinstance(held_out, Among) else "lower tasks.eval_share"
        raise UsageError(f"of {_number(source.size)} all that were looked at are held out; {how}")
    for task in tasks:
        digest.update(_material(task, HeldOut(0, seed).hash(task)))
    return TrainStream(source, held_out, seed, digest.hexdigest())


def _rule(source: TaskSource, share: float, key: int) -> HeldOut | None:
    """Return the rule for a source so small that the share's own would leave one side empty, else ``None``."""
    assert source.size is not None
    rule = HeldOut(share, key)
    keys = sorted({rule.hash(source[index]) for index in range(min(source.size, SMALL))})
    if source.size >= SMALL or len(keys) < 2 or keys[0] < rule.bound <= keys[-1]:
        return None
    return HeldOut(share, key, keys[min(len(keys) - 1, max(1, round(share * len(keys))))])


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The rule of :func:`split`: says of a task, by its content alone, whether it is held out."""

    share: float
    key: int
    limit: int | None = None
    """The bound itself, in place of the share's."""

    @property
    def bound(self) -> int:
        return int(self.share * 2**64) if self.limit is None else self.limit

    def hash(self, task: Task) -> int:
        """Return 64 bits of the keyed BLAKE2b of the task's prompt and reference."""
        return int.from_bytes(hashlib.blake2b(content(task), digest_size=8, key=str(self.key).encode()[:64]).digest())

    def __call__(self, task: Task) -> bool:
        return self.hash(task) < self.bound


class Among:
    """The rule of :func:`without`: holds out tasks that are equal by content to one of a list."""

    def __init__(self, tasks: Iterable[Task]):
        self._hash = HeldOut(1, 0).hash
        self._found = {self._hash(task) for task in tasks}

    def __call__(self, task: Task) -> bool:
        return self._hash(task) in self._found


class TrainStream:
    """The endless stream of a source's tasks without the held-out ones; where it stands is two integers.

    An endless source is read in order. A sized one is read in a random order, another in each epoch, given by
    ``(seed, epoch)``.

    Args:
        source: where tasks come from.
        held_out: tasks to skip; ``None`` skips none.
        seed: of the order, >= 0.
        digest: hash of the tasks' content, by which changed ones are known; ``None`` looks at their number alone.

    Attributes:
        fits: says of a task whether it can be asked, of those that are not held out; all can unless it is set.
        described: lines on what was found in the files that it, and what is held out beside it, are from.
    """

    def __init__(
        self,
        source: TaskSource,
        held_out: Callable[[Task], bool] | None = None,
        seed: int = 0,
        digest: str | None = None,
    ):
        self.source = source
        self.digest = digest
        self.held_out = held_out
        self.seed = seed
        self.position = 0
        self.epoch = 0
        self.fits: Callable[[Task], bool] = lambda task: True
        self.described: list[str] = []

    def next(self, n: int) -> list[Task]:
        """Return the next ``n`` tasks.

        Raises:
            RunError: none of the next tasks may be trained on, for so long that there seems to be none left.
        """
        return [self._next() for _ in range(n)]

    def all(self) -> list[Task]:
        """Return every task of a sized source that is asked, in the source's order, wherever the stream stands.

        Raises:
            UsageError: the source is endless.
        """
        if self.source.size is None:
            raise UsageError("an endless source has no last task; say how many are looked at")
        tasks = (self.source[i] for i in range(self.source.size))
        return [task for task in tasks if self.has(task)]

    def has(self, task: Task) -> bool:
        """Whether a task of the source is asked: it is not held out, and fits."""
        return (self.held_out is None or not self.held_out(task)) and self.fits(task)

    def _next(self) -> Task:
        patience = 2 * self.source.size if self.source.size is not None else 100 * MIN_SCAN
        for _ in range(patience):
            task = self.source[self._index()]
            if self.has(task):
                return task
        raise RunError(
            f"the last {patience:,} tasks of the source are all held out for evaluation, or too long; lower "
            "tasks.eval_share, or raise tasks.max_prompt"
        )

    def _index(self) -> int:
        position, size = self.position, self.source.size
        self.position += 1
        if size is None:
            return position
        index = int(permutation(size, self.seed, self.epoch)[position])
        if self.position == size:
            self.position, self.epoch = 0, self.epoch + 1
        return index

    def state_dict(self) -> dict[str, Any]:
        """Return where the stream stands, and of which tasks."""
        return {
            "position": self.position,
            "epoch": self.epoch,
            "size": self.source.size,
            "seed": self.seed,
            "digest": self.digest,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``; raise UsageError if it belongs to other tasks or to another seed."""
        for key, mine in (("size", self.source.size), ("seed", self.seed)):
            if state[key] != mine:
                raise UsageError(
                    f"the checkpoint's task stream has {key} {state[key]}, this run's has {mine}; "
                    "resume with the same tasks"
                )
        if changed := self.changed(state):
            raise UsageError(f"the checkpoint's task stream is of other tasks: {changed}; resume with the same tasks")
        self.position, self.epoch = int(state["position"]), int(state["epoch"])

    def changed(self, state: Mapping[str, Any]) -> str | None:
        """Say how the tasks differ from those of ``state``; ``None`` if they are the same as far as is known."""
        if state["size"] != self.source.size:
            return f"{_number(state['size'])} then, {_number(self.source.size)} now"
        if None not in (known := state.get("digest"), self.digest) and known != self.digest:
            return f"of {_number(self.source.size)}, some have another content or place"
        return None

    def adapted(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``state`` for these tasks: in the same place, or where their number differs, in the next epoch."""
        mine = {"size": self.source.size, "digest": self.digest}
        begun = {"position": 0, "epoch": int(state["epoch"]) + 1} if state["size"] != self.source.size else {}
        return {**state, **mine, **begun}


def _number(size: int | None) -> str:
    return "endless tasks" if size is None else f"{size:,} tasks"


def _material(task: Task, key: int) -> bytes:
    """What of a task a change would make another run: ``key``, hash of its prompt and reference, and all else."""
    return key.to_bytes(8) + _canonical([task.solution, task.kind, task.hints, task.meta])


def content(task: Task) -> bytes:
    """Return the canonical JSON of the task's prompt and reference: equal for equal tasks, in any process."""
    return _canonical([task.prompt, task.reference])


def _canonical(value: Any) -> bytes:
    try:
        text = json.dumps(value, sort_keys=True)
    except (TypeError, ValueError):
        text = json.dumps(_plain(value))
    return text.encode()


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _plain(value: Any) -> Any:
    """Return ``value`` as what JSON can write, in an order that does not depend on hashes or memory addresses."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return ["mapping", sorted(([_plain(k), _plain(v)] for k, v in value.items()), key=json.dumps)]
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return ["set", sorted((_plain(v) for v in value), key=json.dumps)]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return _ADDRESS.sub("", repr(value))
