"""Which GPUs of a cluster are the engines', and which the trainers', where Ray did not start those itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.config import RunConfig
from assay.errors import UsageError

STARTED = "ASSAY_RAY_RANKS"
"""Set for ranks that Ray started, whose GPUs are in its accounts already."""

RESERVE = 0.08
"""Share of an accelerator's memory for its runtime, communication buffers and gaps."""


@dataclass(frozen=True, slots=True)
class GPUs:
    """What a run takes of a cluster's GPUs.

    Attributes:
        own: names, as ``CUDA_VISIBLE_DEVICES`` has them, of those of this machine that trainers use unknown to Ray.
        reserved: how many Ray has set aside for trainers that it started.
        engine: how many one engine spans.
    """

    own: tuple[str, ...] = ()
    reserved: int = 0
    engine: int = 1

    def share(self, total: float, here: float, engines: int) -> tuple[float, bool]:
        """Return the GPUs of each engine, and whether nobody else uses them.

        So it is where there are enough. With fewer, engines share all GPUs, with each other and with trainers.

        Args:
            total: GPUs of the cluster.
            here: GPUs of this machine that the cluster counts.
            engines: how many.

        Raises:
            UsageError: engines that span several GPUs cannot have them; trainers have them all.
        """
        mine = min(len(self.own), int(here))
        free = int(total) - self.reserved
        if free >= engines * self.engine + mine:
            return float(self.engine), True
        taken = self.reserved + mine
        has = f"the Ray cluster has {total:g} GPUs, of which trainers take {taken}"
        if self.engine > 1:
            raise UsageError(
                f"{engines} engines of tensor_parallel_size = {self.engine} take {engines * self.engine} GPUs; {has}"
            )
        if free < 1:
            raise UsageError(f"{has}, and leave none to engines; ask for fewer trainers, or start Ray on more machines")
        return int(100 / -(-engines // free)) / 100, False


def gpus_of(config: RunConfig, device: str, trainers: int, environment: Mapping[str, str] | None = None) -> GPUs:
    """Return what a run takes.

    Args:
        config: the run's.
        device: ``cpu`` or ``cuda``, where the policy is trained.
        trainers: how many ranks there are.
        environment: of this process.
    """
    given = os.environ if environment is None else environment
    options = config.engine.options
    engine = int(options.get("tensor_parallel_size") or 1) if config.engine.name == "vllm-server" else 1
    if device != "cuda":
        return GPUs(engine=engine)
    if STARTED in given:
        return GPUs(reserved=trainers, engine=engine)
    if config.scale.nodes > 1 and trainers > 1:
        # torchrun or srun started them; nobody here knows what they have on other machines.
        return GPUs(engine=engine)
    first = int(config.model.device.partition(":")[2] or 0)
    visible = given.get("CUDA_VISIBLE_DEVICES")
    names = [n.strip() for n in visible.split(",")] if visible else [str(i) for i in range(first + trainers)]
    return GPUs(own=tuple(names[first : first + trainers]), engine=engine)


def keep(ray: Any, names: Sequence[str], here: int, patience: float) -> list[Any]:
    """Keep GPUs of this machine from being given to engines; return the actors that hold them.

    Ray lets nobody choose a GPU, so it is asked for as many as are wanted, and where those are others, for all that it
    has here, of which the wanted ones are kept.

    Args:
        ray: joined to the cluster.
        names: see :attr:`GPUs.own`.
        here: GPUs of this machine that the cluster counts.
        patience: seconds to wait for them.

    Raises:
        UsageError: somebody else has one of them.
    """
    if here >= len(names):
        together = _seat(ray, len(names))
        if set(_held(ray, [together], patience).get(0, ())) == set(names):
            return [together]
        ray.kill(together)
    seats = [_seat(ray, 1) for _ in range(here)]
    held = _held(ray, seats, patience)
    found = {name for ids in held.values() for name in ids}
    wanted = [i for i, ids in held.items() if set(ids) & set(names)]
    whole, known = set(names) <= found, len(held) == here
    for i, seat in enumerate(seats):
        if i not in wanted or not whole:
            ray.kill(seat)
    if whole:
        return [seats[i] for i in wanted]
    if known and not wanted:
        return []  # Ray was told of other GPUs than the trainers'
    missing = ", ".join(name for name in names if name not in found)
    raise UsageError(
        f"the policy trains on GPU {missing} of this machine, which Ray does not have or has given away; "
        "set CUDA_VISIBLE_DEVICES to GPUs that are free"
    )


def _seat(ray: Any, count: int) -> Any:
    here = {f"node:{ray.util.get_node_ip_address()}": 0.001}
    return ray.remote(num_cpus=0, num_gpus=count, resources=here)(Seat).remote()


def _held(ray: Any, seats: Sequence[Any], patience: float) -> dict[int, list[str]]:
    """Names of the GPUs that each seat has, of those that have got any in time."""
    asked = {seat.gpus.remote(): i for i, seat in enumerate(seats)}
    ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=patience)
    return {asked[ref]: [str(name) for name in ray.get(ref)] for ref in ready}


class Seat:
    """Holds GPUs that processes outside of Ray's accounts use."""

    def gpus(self) -> list[int | str]:
        import ray

        return list(ray.get_gpu_ids())
