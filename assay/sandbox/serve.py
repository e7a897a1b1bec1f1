"""One job on one zygote: its descriptors, the conversation if there is one, and what became of it."""

from __future__ import annotations

import functools
import marshal
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from assay.sandbox.dialogue import Dialogue, pipes
from assay.sandbox.inside import messages
from assay.sandbox.judge import judge, read_answer
from assay.sandbox.types import Limits, Outcome
from assay.sandbox.worker import Lost, Worker, contents, memory_file


def serve(
    worker: Worker,
    job: dict[str, Any],
    stdin: bytes,
    limits: Limits,
    interactor: Callable[[Dialogue], None] | None = None,
    total: float = 0.0,
) -> tuple[Outcome, bytes]:
    """Run a job; ``total`` are the processor seconds it may have where ``interactor`` renews those of ``limits``."""
    patience = 4 * (limits.wall_seconds + limits.cpu_seconds) + 20
    talks = interactor is not None
    message = messages.JOB.pack(
        limits.cpu_seconds, limits.wall_seconds, limits.memory, patience, talks, bool(job.get("tree"))
    )
    opened: list[int] = []
    dialogue: Dialogue | None = None
    raised: BaseException | None = None
    try:
        opened.append(memory_file(marshal.dumps(job)))
        if interactor is not None:
            dialogue, theirs = pipes(limits.output)
            budget = messages.BUDGET.pack(limits.cpu_seconds, limits.wall_seconds, patience)
            # A program that has ended needs none.
            dialogue.on_renewal = functools.partial(_send, worker, budget) if total else None
            opened += theirs
        else:
            opened += [memory_file(stdin)]
            opened += [memory_file()]
        opened += [memory_file()]
        opened += [memory_file()]
        worker.limit(limits)
        worker.send(message, opened)
        if interactor is not None and dialogue is not None:
            for index in (1, 2):
                os.close(opened[index])
                opened[index] = -1
            try:
                interactor(dialogue)
            except BaseException as error:
                raised = error
            dialogue.close()
        answer = read_answer(worker.receive(patience + 30))
        if answer.failed:
            return Outcome("infrastructure", reason=answer.failed), b""
        if worker.ran_out() and not answer.cause:
            answer = answer._replace(cause="memory")
        texts = [
            (b"", dialogue.flooded) if one < 0 and dialogue else contents(one, limits.output) for one in opened[2:]
        ]
        if raised is not None:
            raise raised
        if dialogue is not None and dialogue.renewed and answer.cause != "cpu":
            # Its time was limited piece by piece; what it all took says nothing but where the kernel ended it.
            limits = replace(limits, cpu_seconds=total)
        outcome = judge(answer, texts, limits, job["mode"] == "start")
        if job.get("tree"):
            outcome = replace(outcome, files={}, tree=outcome.files if "" in outcome.files else None)  # type: ignore[arg-type]
        return outcome, texts[2][0]
    finally:
        if dialogue is not None:
            dialogue.on_renewal = None
            dialogue.close()
        for one in opened:
            if one >= 0:
                os.close(one)


def _send(worker: Worker, message: bytes) -> None:
    with suppress(Lost):
        worker.send(message, [])
