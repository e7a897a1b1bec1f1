"""Starts a run's training ranks on the machines of a Ray cluster, and ends them together.

Ray finds the machines, reserves their processors and GPUs and carries signals and exit codes; the ranks themselves are
ordinary processes with torchrun's variables and speak to each other through ``torch.distributed``. Those of this
machine, rank 0 among them, are children of this process, so that what rank 0 says is seen here.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from assay.config import ScaleConfig
from assay.errors import UsageError
from assay.scale.launch import GRACE, SUPERVISED, die_with_parent
from assay.scale.ranks import LostRank
from assay.scale.ray.cluster import PLACE_PATIENCE, connect, import_ray
from assay.scale.ray.gpus import STARTED

SIOCGIFADDR = 0x8915
LOST = LostRank.exit_code


def launch_ranks(command: Sequence[str], scale: ScaleConfig, address: str, gpu: bool) -> int:
    """Run ``command`` as ``scale.trainers`` ranks, as many on each of ``scale.nodes`` machines; return the exit code.

    SIGINT and SIGTERM are passed on to every rank. One that fails or is killed takes the others down. The recipe and
    the run's folder have to be where every machine finds them under the same path.

    Args:
        command: of each rank.
        scale: how many.
        address: of the cluster.
        gpu: whether a rank takes a GPU.

    Raises:
        UsageError: no such cluster; ranks do not divide among machines; it has fewer machines, or less on them.
    """
    each, left = divmod(scale.trainers, scale.nodes)
    if left or not each:
        raise UsageError(f"scale.trainers = {scale.trainers} do not divide among scale.nodes = {scale.nodes} machines")
    ray = import_ray()
    connect(ray, address)
    told: list[int] = []
    hosts: list[Any] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        told.append(number)

    before = {s: signal.signal(s, pass_on) for s in (signal.SIGINT, signal.SIGTERM)}
    here = Host()
    try:
        group = _places(ray, scale.nodes, each, gpu)
        kind = ray.remote(num_cpus=each, num_gpus=each if gpu else 0, max_restarts=0)(Host)
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as Strategy

        hosts = [kind.options(scheduling_strategy=Strategy(group, i)).remote() for i in range(scale.nodes)]
        places = ray.get([host.place.remote() for host in hosts])
        common = {
            "WORLD_SIZE": str(scale.trainers),
            "MASTER_ADDR": places[0]["address"],
            "MASTER_PORT": str(places[0]["port"]),
            "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
            STARTED: "1",
        }
        # The actor of this machine only holds its places; its ranks are this process's own.
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, places[0]["gpus"]))} if gpu else {}
        here.start(list(command), {**os.environ, **common, **visible}, 0, each, None)
        folder = os.getcwd()
        ray.get([h.start.remote(list(command), common, i * each, each, folder) for i, h in enumerate(hosts) if i])
        return _watched(ray, here, hosts[1:], told)
    finally:
        here.kill()
        for host in hosts:
            with suppress(ray.exceptions.RayError):
                ray.get(host.kill.remote(), timeout=5)
        ray.shutdown()
        for number, handler in before.items():
            signal.signal(number, handler)


def _places(ray: Any, nodes: int, each: int, gpu: bool) -> Any:
    """Reserve room for ``each`` ranks on every machine, this one first."""
    from ray.util.placement_group import placement_group

    here = ray.util.get_node_ip_address()
    bundle = {"CPU": float(each), **({"GPU": float(each)} if gpu else {})}
    bundles = [{**bundle, f"node:{here}": 0.001}] + [dict(bundle) for _ in range(nodes - 1)]
    group = placement_group(bundles, strategy="STRICT_SPREAD")
    if not group.wait(PLACE_PATIENCE):
        has = ", ".join(
            f"{node['NodeManagerAddress']} ({resource.get('CPU', 0):g} processors, {resource.get('GPU', 0):g} GPUs)"
            for node in ray.nodes()
            if node["Alive"] and (resource := node["Resources"]) is not None
        )
        raise UsageError(
            f"scale.trainers and scale.nodes ask for {each} processors{f' and {each} GPUs' * gpu} on this and "
            f"{nodes - 1} more machines at once; the cluster has {has}, not all of it free"
        )
    return group


def _watched(ray: Any, here: Host, others: Sequence[Any], told: list[int]) -> int:
    """Wait until all ranks have ended, or one ended badly; say what happened."""
    passed, deadline = 0, float("inf")
    codes: list[int | None] = []
    while True:
        while passed < len(told):
            here.tell(told[passed])
            for host in others:
                host.tell.remote(told[passed])
            passed += 1
        try:
            codes = here.codes() + [
                c for found in ray.get([h.codes.remote() for h in others], timeout=60) for c in found
            ]
        except ray.exceptions.RayError as error:
            print(f"assay: lost a machine of this run ({type(error).__name__}); {_AGAIN}", file=sys.stderr)
            return LOST
        stopped = {128 + number for number in told}
        bad = [i for i, code in enumerate(codes) if code and code not in stopped]
        if all(code is not None for code in codes) and not bad:
            return max(code or 0 for code in codes)
        if bad:
            deadline = min(deadline, time.monotonic() + GRACE)
            # Who only lost the others is not to blame, even where that was noticed first.
            to_blame = [i for i in bad if codes[i] != LOST]
            if to_blame or time.monotonic() > deadline:
                return _told(([*to_blame, *bad])[0], codes)
        time.sleep(0.2)


def _told(rank: int, codes: Sequence[int | None]) -> int:
    code = codes[rank] or 0
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    print(f"assay: rank {rank} of {len(codes)} {how}; {_AGAIN}", file=sys.stderr)
    return LOST if code < 0 else code


_AGAIN = "the run goes on from its last checkpoint: assay train --resume RUN"


class Host:
    """The ranks of one machine. An actor there, or an object of the launching process."""

    def __init__(self) -> None:
        self.ranks: list[subprocess.Popen[bytes]] = []

    def place(self) -> dict[str, Any]:
        """The machine's address, a port that is free there, the GPUs it was given."""
        import ray

        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        return {"address": ray.util.get_node_ip_address(), "port": port, "gpus": ray.get_gpu_ids()}

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], first: int, size: int, folder: str | None
    ) -> None:
        """Start ranks ``first`` to ``first + size - 1``."""
        import ray

        # The ranks of other machines cannot go on without this one, those here may end the step if nobody resumes it.
        orphaned = signal.SIGTERM if folder is None and SUPERVISED not in os.environ else signal.SIGKILL
        device = interface(ray.util.get_node_ip_address())
        speak = {} if device is None else {"GLOO_SOCKET_IFNAME": device, "NCCL_SOCKET_IFNAME": device}
        for local in range(size):
            place = {"RANK": str(first + local), "LOCAL_RANK": str(local)}
            everything = {**os.environ, **speak, **environment, **place}
            cwd = folder if folder is not None and os.path.isdir(folder) else None
            self.ranks.append(
                subprocess.Popen(
                    command,
                    env=everything,
                    cwd=cwd,
                    start_new_session=True,
                    preexec_fn=partial(die_with_parent, orphaned),  # noqa: PLW1509 - one system call
                )
            )

    def codes(self) -> list[int | None]:
        return [rank.poll() for rank in self.ranks]

    def tell(self, number: int) -> None:
        for rank in self.ranks:
            if rank.poll() is None:
                rank.send_signal(number)

    def kill(self) -> None:
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()


def interface(address: str) -> str | None:
    """Name of the network interface that has an address: a machine's name may stand for one that reaches nobody."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                found = fcntl.ioctl(asking.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return None
