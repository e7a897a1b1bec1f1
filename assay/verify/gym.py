"""reasoning-gym's own scorers, run in a process of their own."""

from __future__ import annotations

import atexit
import importlib.util
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.extract import Fallback, Rule, extract

MAX_WORKERS = min(8, os.cpu_count() or 1)


@part("verify", "gym")
@dataclass(frozen=True, slots=True)
class Gym:
    """The score that the task's reasoning-gym data set gives to the answer.

    ``task.reference`` is ``{"dataset": name, "config": {...}, "entry": {...}}``, as the ``gym`` task source makes it.
    Abstains where the scorer raises, is killed for time or memory, or returns no number.

    Args:
        threshold: passed iff score >= threshold.
        rules, fallback: where the answer stands, see :func:`~assay.verify.extract.extract`.
        seconds: longest time one answer may take.
        max_chars: a longer answer is wrong without asking the scorer.

    Raises:
        UsageError: when made, if reasoning-gym is not installed.
    """

    threshold: float = 1.0
    rules: tuple[Rule, ...] = ("answer_tag",)
    fallback: Fallback = "whole"
    seconds: float = 10.0
    max_chars: int = 20_000

    def __post_init__(self) -> None:
        if importlib.util.find_spec("reasoning_gym") is None:
            raise UsageError("verifier 'gym' needs reasoning-gym: pip install assay[gym]")
        if not (0 < self.threshold <= 1 and self.seconds > 0):
            raise UsageError(
                f"verifier 'gym': threshold {self.threshold} must be in (0, 1] and seconds {self.seconds} above 0"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            dataset, entry = task.reference["dataset"], task.reference["entry"]
            config = json.dumps(task.reference.get("config") or {}, sort_keys=True)
        except (TypeError, KeyError, AttributeError, ValueError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'dataset': name, 'entry': {{...}}}}")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"the answer is longer than {self.max_chars} characters")
        result = POOL.score(dataset, config, entry, answer, self.seconds)
        score = result.get("score")
        if not isinstance(score, int | float) or not math.isfinite(score):
            return Verdict.abstain(f"reasoning-gym {dataset}: {result.get('error', f'scored {score}')}")
        score = min(max(float(score), 0.0), 1.0)
        passed = score >= self.threshold
        return Verdict(score, passed, {}, "" if passed else f"{dataset} scored {score:g}")


class Worker:
    """One running :mod:`assay.verify.gym_worker`."""

    def __init__(self) -> None:
        # The file with -P and not -m: neither assay nor the modules beside the file are importable by mistake.
        script = os.path.join(os.path.dirname(__file__), "gym_worker.py")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self.output = os.fdopen(self.process.stdout.fileno(), "rb", closefd=False)  # type: ignore[union-attr]
        self.output.readline()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def score(self, request: bytes) -> dict[str, Any] | None:
        """Return the worker's reply to a pickled request, ``None`` if it ended without one."""
        try:
            _write(self.process.stdin.fileno(), request)  # type: ignore[union-attr]
        except BrokenPipeError:
            return None
        line = self.output.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def end(self) -> int:
        """Kill the process and return its exit status (its own, if it had already ended)."""
        self.process.kill()
        code = self.process.wait()
        self.forget()
        return code

    def forget(self) -> None:
        """Close this process's ends of the pipes; the worker ends when nobody holds them."""
        self.output.close()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()  # type: ignore[union-attr]


class Pool:
    """At most ``size`` workers, started when first needed and kept; safe to use from any thread and after a fork."""

    def __init__(self, size: int):
        self.size = size
        self.idle: list[Worker] = []
        self.slots = threading.BoundedSemaphore(size)

    def score(self, dataset: str, config: str, entry: Any, answer: str, seconds: float) -> dict[str, Any]:
        """Return ``{"score": x}`` or ``{"error": reason}``."""
        try:
            request = pickle.dumps((dataset, config, entry, answer, seconds))
        except Exception as error:
            return {"error": f"the entry cannot be sent to the scorer: {error}"}
        with self.slots:
            worker = self._worker()
            result = None
            try:
                result = worker.score(request)
            finally:
                if result is None:
                    code = worker.end()
                else:
                    self.idle.append(worker)
        if result is not None:
            return result
        if code == -signal.SIGALRM:
            return {"error": f"the scorer took longer than {seconds:g} s"}
        return {"error": f"the scorer's process ended with status {code}"}

    def _worker(self) -> Worker:
        while True:
            try:
                worker = self.idle.pop()
            except IndexError:
                return Worker()
            if worker.alive:
                return worker
            worker.end()

    def close(self) -> None:
        while self.idle:
            self.idle.pop().end()

    def after_fork(self) -> None:
        """Leave the parent's workers to the parent."""
        for worker in self.idle:
            worker.forget()
        self.__init__(self.size)  # type: ignore[misc]


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


POOL = Pool(MAX_WORKERS)
os.register_at_fork(after_in_child=POOL.after_fork)
atexit.register(POOL.close)
