"""Weights from the trainer to all engines at once: by a process group of rank 0 and the engines' actors.

The group stands beside any other that these processes have (that of the ranks, vLLM's own) and is none of
``torch.distributed``'s default one, so that whoever comes or goes takes nothing else along. It is made anew when other
engines than before are ready for weights. Nothing here replaces an engine, nor waits for long for one: whom a broadcast
did not reach takes the same weights from Ray's object store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from assay.scale.ray.cluster import Cluster
from assay.scale.ray.weights import What, nbytes, unpacked

PATIENCE = timedelta(seconds=60)
"""How long the others may take to meet, or to be done with a block, before they count as gone."""

c10d: Any = dist
"""Its process groups and stores, which its types leave out."""
STORE = "those that lack them take them from the object store"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the members of a group find each other.

    Attributes:
        host, port: of rank 0's store.
        name: of this meeting there.
        size: how many come.
        device: ``cuda`` for a group of NCCL, ``cpu`` for one of gloo.
    """

    host: str
    port: int
    name: str
    size: int
    device: str


class Group:
    """The members of a meeting, of which rank 0 speaks and the others listen.

    Args:
        meeting: where they meet.
        rank: this one's.
        store: rank 0's own; the others reach it.

    Raises:
        RuntimeError: the others did not come, or do not hear each other.
    """

    def __init__(self, meeting: Meeting, rank: int, store: Any = None):
        if store is None:
            store = c10d.TCPStore(meeting.host, meeting.port, timeout=PATIENCE, wait_for_workers=False)
        apart = c10d.PrefixStore(meeting.name, store)
        make = _nccl if meeting.device == "cuda" else _gloo
        self._group: Any = make(apart, rank, meeting.size)
        self.device = meeting.device
        try:
            # NCCL finds the others at the first call.
            self.broadcast(torch.zeros(1, dtype=torch.uint8, device=self.device))
        except RuntimeError:
            self.close()
            raise

    def broadcast(self, data: Tensor) -> None:
        """Send ``data`` from rank 0, or put what it sent into it; return when that is done.

        Raises:
            RuntimeError: somebody has gone; the group is of no use any more.
        """
        self._group.broadcast(data, 0).wait()

    def close(self) -> None:
        """Leave. Whoever still waits for something here gets an error instead."""
        group, self._group = self._group, None
        if group is not None:
            group.abort()


def _gloo(store: Any, rank: int, size: int) -> Any:
    from assay.scale.ray.ranks import interface

    options = c10d.ProcessGroupGloo._Options()
    options._timeout = PATIENCE
    # The machine's own name may stand for an address that nobody else reaches.
    options._devices = [c10d.ProcessGroupGloo.create_device(interface=interface(_address()) or "")]
    return c10d.ProcessGroupGloo(store, rank, size, options)


def _nccl(store: Any, rank: int, size: int) -> Any:
    options = c10d.ProcessGroupNCCL.Options()
    options._timeout = PATIENCE
    # Left to itself NCCL ends the process when somebody is late; so it raises an error where it is waited for.
    with _set("TORCH_NCCL_BLOCKING_WAIT", "1"):
        return c10d.ProcessGroupNCCL(store, rank, size, options)


@contextmanager
def _set(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())


class Sender:
    """Rank 0's side: has those engines that are ready meet it, and speaks to them.

    Args:
        cluster: joined.
        device: where the policy is, ``cpu`` or ``cuda``.

    Attributes:
        device: where blocks are best made.
    """

    def __init__(self, cluster: Cluster, device: str):
        self.cluster, self.device = cluster, device
        self.engines: list[Any] = []
        self.group: Group | None = None
        self._given_up = False
        self._store: Any = None
        self._meetings = 0
        self._receipts: dict[Any, Any] = {}

    def begin(self, engines: Sequence[Any], version: int, layout: Sequence[What]) -> None:
        """Have engines listen for the blocks of weights ``version``; :meth:`send` gives them these.

        Args:
            engines: actors that are idle.
            version: see :class:`assay.scale.ray.engine.EngineActor`.
            layout: what is in each block.
        """
        self._receipts = {}
        if self._given_up or not engines:
            return
        if list(engines) != self.engines:
            self.close()
        if self.group is None and not self._meet(engines):
            return
        self._receipts = {engine: engine.receive.remote(version, layout) for engine in self.engines}

    def send(self, data: Tensor) -> None:
        """Send the next block ``(B,)`` uint8; nothing is done once somebody has gone."""
        if self.group is None or not self._receipts:
            return
        try:
            self.group.broadcast(data.to(self.group.device))
        except RuntimeError as error:
            self._failed(_reason(error), STORE)

    def end(self) -> list[Any]:
        """Return the engines that have the weights whole."""
        receipts, self._receipts = self._receipts, {}
        answers = self._answers(list(receipts.values()))
        reached = [engine for engine, ref in receipts.items() if answers.get(ref)]
        if self.group is not None and len(reached) < len(receipts):
            self._failed(f"{len(receipts) - len(reached)} of {len(receipts)} did not say that they have them", STORE)
        return reached

    def close(self) -> None:
        """Leave the group, if there is one."""
        if self.group is not None:
            self.group.close()
        self.group, self.engines = None, []

    def _meet(self, engines: Sequence[Any]) -> bool:
        """Make a group of this process and these engines, of those that answer."""
        asked = {engine: engine.receives_on.remote() for engine in engines}
        answers = self._answers(list(asked.values()))
        there = [engine for engine in engines if asked[engine] in answers]
        if not there:
            return False
        devices = {self.device, *(answers[asked[engine]] for engine in there)}
        # Two members of a group of NCCL cannot have one GPU.
        device = "cuda" if devices == {"cuda"} and self.cluster.own_gpus else "cpu"
        if self._store is None:
            self._store = c10d.TCPStore(_address(), 0, is_master=True, timeout=PATIENCE, wait_for_workers=False)
        self._meetings += 1
        meeting = Meeting(_address(), self._store.port, f"weights/{self._meetings}", len(there) + 1, device)
        joining = {engine: engine.meet.remote(meeting, i + 1) for i, engine in enumerate(there)}
        try:
            self.group = Group(meeting, 0, self._store)
        except RuntimeError as error:
            # With everybody alive it would be no better the next time.
            self._given_up = len(self._answers(list(joining.values()))) == len(there)
            self._failed(_reason(error), f"all take them from the object store{' from here on' * self._given_up}")
            return False
        self.engines, self.device = there, device
        return True

    def _answers(self, refs: list[Any]) -> dict[Any, Any]:
        """What the calls returned, of those that did in time; an actor that died or failed gives no answer."""
        found: dict[Any, Any] = {}
        left = list(refs)
        while left:
            ready = self.cluster.wait(left, PATIENCE.total_seconds())
            if not ready:
                break
            for ref in ready:
                left.remove(ref)
                try:
                    found[ref] = self.cluster.ray.get(ref)
                except self.cluster.ray.exceptions.RayError:
                    continue
        return found

    def _failed(self, why: str, then: str) -> None:
        self.close()
        self.cluster.faults.tell(f"the broadcast of weights to engines failed ({why}); {then}")
        self.cluster.faults.note("the broadcast of weights to engines", why, then)


def _reason(error: RuntimeError) -> str:
    """What an error says first, without the place in torch's source before it and the advice behind it."""
    first = str(error).strip().splitlines()[0]
    return (first.partition(".cc:")[2].partition("] ")[2] or first).partition(". ")[0]


class Arriving:
    """Weights as rank 0 sends them, for an engine to follow as it would follow the policy itself.

    Where they break off, ones stand for the rest: vLLM, for one, cannot be given weights again after it was left in the
    middle of some.

    Args:
        layout: what is in each block that will come.
        group: this actor is in.

    Attributes:
        lost: whether they did not come whole.
    """

    def __init__(self, layout: Sequence[What], group: Group):
        self.layout, self.group = layout, group
        self.lost = False

    def merged_state(self) -> Iterator[tuple[str, Tensor]]:
        """See :class:`assay.scale.ray.weights.Sent`; a tensor is on the group's device."""
        device = self.group.device
        for what in self.layout:
            data = torch.empty(0 if self.lost else nbytes(what), dtype=torch.uint8, device=device)
            try:
                if not self.lost:
                    self.group.broadcast(data)
            except RuntimeError:
                self.lost = True
                # The others get an error as well, instead of waiting for this one.
                self.group.close()
            if self.lost:
                for name, dtype, shape in what:
                    yield name, torch.ones(shape, dtype=getattr(torch, dtype), device=device)
            else:
                yield from unpacked(what, partial(_copied, data))


def _copied(data: Tensor, start: int, end: int) -> Tensor:
    return data[start:end].clone()
