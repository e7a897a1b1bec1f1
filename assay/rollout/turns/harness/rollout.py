"""The rollout that lets a program of one's own play."""

from __future__ import annotations

import json
import os
import queue
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Conversing, Engine, Keeping, Sampling, can
from assay.environments.base import EnvironmentFailure, Foldered
from assay.environments.played import Played
from assay.environments.tools import judged
from assay.errors import UsageError
from assay.registry import build, part
from assay.rollout.single_turn import full_prompt
from assay.rollout.turns.harness import programs
from assay.rollout.turns.harness.endpoint import Endpoint, Waiting
from assay.rollout.turns.harness.folder import put, taken
from assay.rollout.turns.harness.recording import Recording, Unasked
from assay.rollout.turns.noting import measured
from assay.tasks.workspaces.service import Served, Service
from assay.types import Ask, Episode, Group, Task, Verdict

OURS = ("bare", "react", "planned")
"""Programs that stand in :mod:`assay.rollout.turns.harness.programs`."""
LULL = 0.02
"""Seconds that requests are waited for, so that those which come together are answered together."""


@part("rollout", "harness")
class Harness:
    """Runs ``command`` once for each response to a task, and learns from what it asked the model meanwhile.

    The program finds the task on its standard input, ``{"id", "prompt", "meta"}`` as JSON, and a chat endpoint by the
    variables that OpenAI's client reads: ``OPENAI_BASE_URL``, and in ``OPENAI_API_KEY`` a key which says that a request
    is this episode's. Requests are answered as the run samples, whatever temperature they ask for. What it writes to
    its standard output is judged by the verifier of the task's kind. It works in a folder of its own, which goes with
    it.

    With an ``environment`` whose state is a folder (:class:`~assay.environments.base.Foldered`, as ``workspace`` is)
    it begins in that folder, may ask the service at ``SERVICE_URL`` if there is one, and the folder that it leaves is
    judged, whatever it writes; one that takes longer than ``seconds`` is ended and judged too.

    What is recorded are the tokens that were sampled (:class:`~assay.rollout.turns.harness.recording.Recording`): a
    request that goes on with a conversation goes on from its tokens, any other is a fork. A program that fails or takes
    longer than ``seconds`` is nobody's wrong answer: the episode abstains. One that was told that its ``turns`` or the
    context are spent is judged, whatever it then does.

    Args:
        command: as a shell would split it, or a list; run without a shell. Or one of ours, see
            :mod:`assay.rollout.turns.harness.programs`: ``bare``, ``react`` or ``planned``.
        sampling: of one answer.
        environment: whose folder it works in: a part's name, or a table with ``name`` and options.
        turns: answers an episode may have.
        seconds: a program may take.
        beside: programs that run at a time.
        trace: keep the last conversation, ``meta["trace"]``, and not only what it took: ``meta`` of an episode has the
            ``requests`` that were made of the model, those ``refused``, tokens ``read`` and ``written``, the program's
            ``seconds``, and how many files of an environment's folder it ``changed``.

    Raises:
        UsageError: no command, a limit below 1, or an environment that is no folder.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        sampling: Sampling,
        environment: str | dict[str, Any] | None = None,
        turns: int = 32,
        seconds: float = 600.0,
        beside: int = 32,
        trace: bool = False,
    ):
        self.own = command in OURS
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        if self.own:
            self.command = [sys.executable, "-P", "-m", f"{programs.__name__}.{command}"]
        if not self.command:
            raise UsageError("rollout 'harness' needs a command, such as command = \"python agent.py\"")
        if min(turns, beside) < 1 or seconds <= 0:
            raise UsageError(f"rollout 'harness': turns {turns}, beside {beside} and seconds {seconds:g} must be >= 1")
        if environment is not None and not isinstance(build("environment", environment), Foldered):
            raise UsageError(f"rollout 'harness': environment {environment!r} is no folder to work in; workspace is")
        self.sampling, self.turns, self.seconds, self.beside = sampling, turns, seconds, beside
        self.environment, self.trace = environment, trace
        self._metrics: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        """Means over the trajectories of the last collection."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return self.play(asks, rng.integers(2**63, size=len(asks)).tolist(), engine)

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return a judged group per ask.

        An engine that is asked by messages (``openai`` by chat) plays too: such episodes can be judged, and not trained
        on.

        Raises:
            UsageError: the engine cannot go on from tokens of its own.
        """
        if not can(engine, Conversing):
            raise UsageError(
                f"rollout 'harness': {type(engine).__name__} cannot go on from its own tokens; take hf or vllm"
            )
        asked = list(zip(asks, seeds, strict=True))
        divided = getattr(engine, "divided", None)
        groups = self._played(asked, engine) if divided is None else divided(asked, self._played, lambda x: x[0].n)
        self._metrics = measured([e for group in groups for e in group.episodes])
        return groups

    def _played(self, asked: Sequence[tuple[Ask, int]], engine: Engine) -> list[Group]:
        runs = {secrets.token_hex(16): (ask, seed, i) for ask, seed in asked for i in range(ask.n)}
        recordings = {
            key: Recording(f"{seed}/{i}", self.sampling, self.turns, np.random.default_rng([seed, i]))
            for key, (_, seed, i) in runs.items()
        }
        endpoint = Endpoint()
        endpoint.keys.update(runs)
        try:
            with ThreadPoolExecutor(self.beside, "harness") as pool:
                ends = {
                    key: pool.submit(self._worked, ask, seed, key, endpoint.url) for key, (ask, seed, _) in runs.items()
                }
                try:
                    _serve(endpoint, recordings, list(ends.values()), engine)
                finally:
                    # Where generation fails nobody is to wait for programs that wait for it.
                    endpoint.close()
                    for end in ends.values():
                        end.cancel()
        finally:
            if can(engine, Keeping):
                engine.end_sessions([r.key for r in recordings.values()])  # type: ignore[attr-defined]
        rest = iter(
            [
                _judged(recordings[key], ends[key].result(), ask.task, engine, self.trace)
                for key, (ask, *_) in runs.items()
            ]
        )
        groups = []
        for ask, _ in asked:
            mine = [next(rest) for _ in range(ask.n)]
            groups.append(Group(ask, tuple(e for e, _ in mine), tuple(v for _, v in mine)))
        return groups

    def _worked(self, ask: Ask, seed: int, key: str, url: str) -> Ended:
        """Run the program, in the environment's folder if there is one, and have that judged."""
        with tempfile.TemporaryDirectory(prefix="assay-harness-", ignore_cleanup_errors=True) as folder:
            if self.environment is None:
                return self._run(ask, key, url, Path(folder), None)
            spec = self.environment
            played = Played(lambda: build("environment", spec), ask.task, seed, attempts=1)
            try:
                played.reset()
                world: Any = played.world
                put(world.folder().entries, Path(folder))
                ended = self._run(ask, key, url, Path(folder), getattr(world, "service", None))
                space = world.folder()
                before = space.digests()
                try:
                    space.entries = taken(Path(folder), space.limits.disk)
                except UsageError as error:
                    return replace(ended, verdict=Verdict.wrong(str(error)))
                changed = len(dict(before.items() ^ space.digests().items()))
                return replace(ended, verdict=played.verdict(), changed=changed)
            except EnvironmentFailure as error:
                return Ended("", str(error), 0.0)
            finally:
                played.close()

    def _run(self, ask: Ask, key: str, url: str, folder: Path, service: Service | None) -> Ended:
        prompt = full_prompt(ask)
        told = json.dumps({"id": ask.task.id, "prompt": prompt, "meta": dict(ask.task.meta)}, default=str)
        environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": key, "NO_PROXY": "127.0.0.1"}
        if self.own:
            # What is run is this package, wherever the program is started.
            path = [str(Path(__file__).parents[4]), os.environ.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        with nullcontext() if service is None else Served(service) as served:
            if served is not None:
                environment["SERVICE_URL"] = served.url
            began = time.monotonic()
            out, error, late = self._ran(told, environment, folder)
            return Ended(out, error, time.monotonic() - began, late)

    def _ran(self, told: str, environment: dict[str, str], folder: Path) -> tuple[str, str, bool]:
        """Return what the program wrote, what went wrong, and whether that was its time."""
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"rollout 'harness': {self.command[0]} cannot be run: {error.strerror}") from None
        with process:
            try:
                out, errors = process.communicate(told, timeout=self.seconds)
            except subprocess.TimeoutExpired:
                return "", f"the program took longer than {self.seconds:g} seconds", True
            finally:
                # It, and whatever it has started.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            last = (errors.strip().splitlines() or ["it said nothing"])[-1]
            return out, f"the program ended with {process.returncode}: {last[:300]}", False
        return out, "", False


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program wrote, what went wrong with it, how long it took, whether too long, and where its folder is judged
    what that is worth and how many files in it differ from before."""

    out: str
    error: str
    seconds: float
    late: bool = False
    verdict: Verdict | None = None
    changed: int = 0


def _serve(endpoint: Endpoint, recordings: dict[str, Recording], ends: Sequence[Future[Any]], engine: Any) -> None:
    """Answer what programs ask, together what comes together, until all have ended."""
    while not all(end.done() for end in ends):
        came: list[Waiting] = []
        try:
            came.append(endpoint.waiting.get(timeout=LULL))
            while True:
                came.append(endpoint.waiting.get(timeout=LULL))
        except queue.Empty:
            pass
        asked = []
        for waiting in came:
            try:
                asked.append((waiting, *recordings[waiting.key].request(waiting.body, engine)))
            except (Unasked, UsageError) as error:
                recordings[waiting.key].usage.refused += 1
                waiting.refuse(getattr(error, "status", 400), str(error))
        if not asked:
            continue
        try:
            made = engine.generate([request for _, _, request in asked])
        except BaseException:
            for waiting, *_ in asked:
                waiting.refuse(503, "generation failed")
            raise
        for (waiting, thread, _), [episode] in zip(asked, made, strict=True):
            if episode.stop == "error":
                recordings[waiting.key].usage.refused += 1
                waiting.refuse(503, str(episode.meta.get("error", "generation failed")))
            else:
                read = len(thread.prompt) + thread.length
                waiting.tell(recordings[waiting.key].answer(thread, episode), read, len(episode.tokens))


def _judged(recording: Recording, ended: Ended, task: Task, engine: Engine, trace: bool) -> tuple[Episode, Verdict]:
    out = ended.out.strip()
    if recording.stop is None and ended.late and ended.verdict is not None:
        recording.stop = "limit"
    failed = recording.stop is None and bool(ended.error)
    if failed:
        recording.stop = "error"
    took = {**asdict(recording.usage), "seconds": ended.seconds, "changed": ended.changed}
    said = {"trace": tuple(recording.heard)} if trace else {}
    episode = replace(recording.episode(engine, out), meta=took | said)
    if failed:
        return episode, Verdict.abstain(ended.error, "infrastructure")
    return episode, judged(task, out) if ended.verdict is None else ended.verdict
