"""The Ray cluster of a run: found or started, its places reserved, watched, left behind clean.

``RAY_ADDRESS`` names a cluster that runs already; ``ray job submit`` sets it for its job. Without it a cluster of this
machine alone is started, which ends with this process however that ends. A cluster found by chance is never joined.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from assay.config import ScaleConfig
from assay.errors import RunError, UsageError
from assay.scale.faults import Faults
from assay.scale.ray.gpus import GPUs, keep

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # What Ray says of dead workers on standard output: of its lines, skip those that match.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",
    # Left to itself Ray ends a process that has lost the head within a minute, in the middle of an optimiser step and
    # without a word. The watch below is quicker, and lets the step end.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",
}
STORE = 2 << 30
"""Most bytes that the object store of a cluster started here takes of ``/dev/shm``; used as needed."""
PLACE_PATIENCE = 60.0
"""Seconds to wait for places that others occupy."""
START_PATIENCE = 180.0
"""Seconds for Ray to start or to be joined. Where its server dies as it starts, Ray itself waits for ever."""
MISSES = 3
"""Seconds in a row without the head after which it counts as gone."""

MOURNING = 10.0
"""Seconds to wait for Ray to end where its head has gone."""
T = TypeVar("T")


class LostCluster(RunError):
    """The cluster has gone, or its part on this machine, and with it every actor; or it never came up. Going on anew
    may work."""

    exit_code = 75  # EX_TEMPFAIL, as for a lost rank


def import_ray() -> Any:
    """Return Ray, told to be quiet.

    Raises:
        UsageError: it is not installed.
    """
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError("scale.engines and scale.verifiers need Ray: pip install assay[ray]") from error
    return ray


def connect(ray: Any, address: str | None, processors: int = 1) -> None:
    """Join the cluster at ``address``, or start one of this machine with at least so many processors.

    Raises:
        UsageError: none answers at ``address``.
        LostCluster: none could be started.
    """
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        store = min(STORE, shutil.disk_usage("/dev/shm").free // 2) if os.path.isdir("/dev/shm") else STORE
        options |= {
            "num_cpus": max(os.cpu_count() or 1, processors),
            "include_dashboard": False,
            "object_store_memory": max(store, 80 << 20),
        }
    watch = threading.Timer(START_PATIENCE, _give_up, [address])
    watch.daemon = True
    watch.start()
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if address is not None:
            raise UsageError(f"no Ray cluster answers at RAY_ADDRESS = {address}: {reason}") from error
        # A busy machine may be too slow for Ray's patience, so another try may do.
        raise LostCluster(f"a local Ray cluster did not start: {reason}") from error
    finally:
        watch.cancel()


def _give_up(address: str | None) -> NoReturn:
    """End this process: nothing else wakes a call that waits for a server which has died."""
    what = "a local Ray cluster did not start" if address is None else f"the Ray cluster at {address} did not answer"
    with suppress(OSError):
        os.write(2, f"assay: {what} within {START_PATIENCE:g} s; nothing has been computed meanwhile\n".encode())
    os._exit(LostCluster.exit_code)


class Cluster:
    """Places for a run's actors. One that this process has joined already is used, and left as it was.

    Args:
        scale: how many of what.
        faults: told what dies.
        gpus: what trainers and an engine take of them.
    """

    def __init__(self, scale: ScaleConfig, faults: Faults, gpus: GPUs | None = None):
        self.scale, self.faults, self.gpus = scale, faults, gpus or GPUs()
        self.ray = import_ray()
        self.lost: str | None = None
        self._owned = self._joined = False
        self._group: Any = None
        self._share = 0.0
        self.own_gpus = False
        """Whether each engine has GPUs to itself."""
        self._seats: list[Any] = []
        self._here = ("", 0)
        self._over = threading.Event()
        self.when_joined: list[Callable[[], None]] = []
        """What is to begin as soon as there are places."""

    def join(self) -> None:
        """Find or start the cluster and reserve every place. Nothing happens the second time.

        Raises:
            UsageError: no such cluster; it has less than is asked of it.
            LostCluster: it ends meanwhile.
        """
        if self._joined:
            return
        if not self.ray.is_initialized():
            self._owned = True
            connect(self.ray, os.environ.get("RAY_ADDRESS"), self.wanted)
        atexit.register(self.close)
        self.context = self.ray.get_runtime_context()
        self.address = self.context.gcs_address
        mine = next(node for node in self.ray.nodes() if node["NodeID"] == self.context.get_node_id())
        self._here = mine["NodeManagerAddress"], int(mine["NodeManagerPort"])
        self._joined = True
        try:
            self._reserve()
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._watch, name="cluster watch", daemon=True).start()
        for begin in self.when_joined:
            begin()

    @property
    def wanted(self) -> int:
        """Processors asked for, one to an actor."""
        return self.scale.engines + self.scale.verifiers

    def _reserve(self) -> None:
        """Set the actors' places aside, all or none."""
        ray = self.ray
        from ray.util.placement_group import placement_group

        nodes = [node for node in ray.nodes() if node["Alive"]]
        total = ray.cluster_resources()
        cpus, gpus = int(total.get("CPU", 0)), total.get("GPU", 0.0)
        has = f"the Ray cluster at {self.address} has {cpus} processors and {gpus:g} GPUs on {len(nodes)} machines"
        if len(nodes) < self.scale.nodes:
            raise UsageError(f"scale.nodes = {self.scale.nodes}, and {has}; start Ray on more, or ask for fewer")
        if cpus < self.wanted:
            raise UsageError(
                f"scale.engines = {self.scale.engines} and scale.verifiers = {self.scale.verifiers} take a processor "
                f"each, and {has}; ask for fewer, or start Ray on more machines"
            )
        if gpus and self.scale.engines:
            mine = next(node for node in nodes if node["NodeID"] == self.context.get_node_id())
            here = int(mine["Resources"].get("GPU", 0))
            self._share, self.own_gpus = self.gpus.share(gpus, here, self.scale.engines)
            if self.own_gpus and self.gpus.own and here:
                self._seats = keep(ray, self.gpus.own, here, PLACE_PATIENCE)
        engine = {"CPU": 1.0, **({"GPU": self._share} if self._share else {})}
        bundles = [engine] * self.scale.engines + [{"CPU": 1.0}] * self.scale.verifiers
        self._group = placement_group(bundles, strategy="SPREAD" if len(nodes) > 1 else "PACK")
        if not self._group.wait(PLACE_PATIENCE):
            free = ray.available_resources()
            spans = f" of {self._share:g} GPUs of one machine each" if self._share > 1 else ""
            raise UsageError(
                f"{has}, of which {free.get('CPU', 0):g} and {free.get('GPU', 0):g} are free: too few for "
                f"{self.scale.engines} engines{spans} and {self.scale.verifiers} verifiers; wait for the others to end"
            )

    def hire(self, kind: type, index: int, *arguments: Any) -> Any:
        """Return a new actor in place ``index``: engines come first, then verifiers. It may not run yet."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index)
        gpus = self._share if index < self.scale.engines else 0
        actor = self.ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)(kind)
        return self.reach(lambda: actor.options(scheduling_strategy=strategy).remote(*arguments))

    def dismiss(self, actor: Any) -> None:
        """End an actor, dead or alive."""
        self.reach(lambda: self.ray.kill(actor))

    def reach(self, work: Callable[[], T]) -> T:
        """Return ``work()``, which asks the head for something: Ray waits without end for one that has gone.

        Raises:
            LostCluster: the cluster has gone meanwhile.
        """
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # raised where it is waited for
                done.set_exception(error)

        threading.Thread(target=run, name="asking the head", daemon=True).start()
        while True:
            try:
                return done.result(0.5)
            except TimeoutError:
                if done.done():
                    raise
                self.check()

    def check(self) -> None:
        """Raise :class:`LostCluster` if the cluster has gone."""
        if self.lost is not None:
            again = f"assay train --resume {self.faults.folder}"
            raise LostCluster(f"{self.lost} has gone; continue from the last checkpoint with: {again}")

    def look(self) -> None:
        """See at once whether this machine's part of the cluster is there; raise :class:`LostCluster` if it has gone.

        It takes calls as long as it lives. Ray itself would find out later, and then end this process on the spot.
        """
        try:
            socket.create_connection(self._here, timeout=2.0).close()
        except ConnectionRefusedError:
            self._gone(f"this machine's part of the Ray cluster at {self.address}")
        except OSError:  # it may be busy; others tell if it does not come back
            pass
        self.check()

    def blame(self, error: Exception) -> NoReturn:
        """Raise what an error of Ray's means, once the watch has had time to see whether the cluster has gone."""
        end = time.monotonic() + MISSES + 3
        while time.monotonic() < end and not self._over.is_set():
            self.check()
            time.sleep(0.1)
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RunError(f"the Ray cluster at {self.address} failed: {reason}") from error

    def _watch(self) -> None:
        """See whether the head takes calls, and whether it still knows this machine."""
        host, _, port = self.address.rpartition(":")
        here, misses = self.context.get_node_id(), 0
        while not self._over.wait(1.0):
            try:
                socket.create_connection((host, int(port)), timeout=2.0).close()
                misses = 0
            except OSError:
                misses += 1
                if misses >= MISSES:
                    self._gone(f"the head of the Ray cluster at {self.address}")
                    return
                continue
            try:
                self.look()
            except LostCluster:
                return
            with suppress(Exception):  # the head may end between the two calls; the next round tells
                if not any(node["Alive"] for node in self.ray.nodes() if node["NodeID"] == here):
                    self._gone(f"this machine's part of the Ray cluster at {self.address}")
                    return

    def _gone(self, what: str) -> None:
        if not self._over.is_set() and self.lost is None:
            self.lost = what
            self.faults.note(what, "it does not answer", "the run stops")

    def close(self) -> None:
        """Give every place back; end the cluster if it was started here, leave it otherwise."""
        if not self._joined or self._over.is_set():
            return
        self._over.set()
        atexit.unregister(self.close)
        if self.lost is not None:
            # Ray would wait for the head; what it started here ends with this process.
            atexit.unregister(self.ray.shutdown)
            if self._owned:
                ending = threading.Thread(target=self.ray.shutdown, daemon=True)
                ending.start()
                ending.join(MOURNING)
        elif self._owned:
            self.ray.shutdown()
        elif self.ray.is_initialized():
            for seat in self._seats:
                self.ray.kill(seat)
            if self._group is not None:
                self.ray.util.remove_placement_group(self._group)

    def wait(self, refs: list[Any], seconds: float) -> list[Any]:
        """Return those of ``refs`` that are ready, after the first is or ``seconds`` have passed.

        Raises:
            LostCluster: the cluster has gone.
            RunError: Ray fails otherwise.
        """
        end = time.monotonic() + seconds
        while True:
            self.check()
            try:
                ready, _ = self.ray.wait(refs, num_returns=1, timeout=min(1.0, max(0.0, end - time.monotonic())))
            except (self.ray.exceptions.RayError, OSError) as error:
                self.blame(error)
            if ready or time.monotonic() >= end:
                return list(ready)
