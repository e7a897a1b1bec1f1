"""Ranks of a run for the tests: real processes that speak by gloo, or threads of this one."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import running

from assay.scale.ranks import Ranks

T = TypeVar("T")

PRELOADED = [
    *running.PRELOADED,
    "assay.training.build",
    "assay.scale.sharding",
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
]


def as_rank(rank: int, size: int, folder: str, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """In a child: what the launcher tells a rank, then ``target(*arguments)``."""
    from assay.scale.launch import _environment

    os.environ.update(_environment(rank, size, Path(folder)))
    del os.environ["ASSAY_REPORTS"]
    import torch

    torch.set_num_threads(1)
    target(*arguments)


def ranked(size: int, target: Callable[..., Any], *arguments: Any) -> list[int]:
    """Call ``target(*arguments)`` in ``size`` ranks; return their exit codes, minus the signal where one was killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=as_rank, args=(i, size, folder, target, arguments)) for i in range(size)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(900)  # only where something hangs
        over = [rank.exitcode for rank in ranks]
        for rank in ranks:
            rank.kill()
    assert None not in over, "a rank did not end"
    return over  # type: ignore[return-value]


class Seat(Ranks):
    """One of two ranks, in threads of one process."""

    def __init__(self, rank: int, table: list[Any], barrier: threading.Barrier):
        super().__init__(rank, 2)
        self.table, self.barrier = table, barrier

    def gather(self, value: Any) -> list[Any]:
        self.table[self.rank] = value
        self.barrier.wait(60)
        found = list(self.table)
        self.barrier.wait(60)
        return found

    def broadcast(self, value: T) -> T:
        found: T = self.gather(value)[0]
        return found


def seated(work: Callable[[Seat], T]) -> list[T]:
    """Return what ``work`` gives on each of two seats."""
    table, barrier = [None, None], threading.Barrier(2)
    with ThreadPoolExecutor(2) as beside:
        return list(beside.map(lambda i: work(Seat(i, table, barrier)), range(2)))


def train(log: Path, *arguments: str) -> None:
    """In a rank: ``assay train``, the rank's output in a file of its own."""
    running.command(log.with_name(f"{log.name}.{os.environ['RANK']}"), "train", *arguments)
