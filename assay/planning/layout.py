"""Who does what: which devices train, which generate, and the links between them."""

from __future__ import annotations

from dataclasses import dataclass

from assay.planning.devices import Device


@dataclass(frozen=True, slots=True)
class Layout:
    """A division of devices.

    Attributes:
        trainers: devices over which parameters, gradients and optimiser are sharded (FSDP2).
        engines: copies of the model that generate.
        tensor_parallel: devices of one engine.
        colocated: engines are on the trainers' devices, and take turns with them.
        per_node: devices of a machine.
        staleness: optimiser steps by which the weights that generate may lag behind; 0 waits for each.
    """

    trainers: int
    engines: int
    tensor_parallel: int = 1
    colocated: bool = False
    per_node: int = 8
    staleness: int = 0

    @property
    def devices(self) -> int:
        return self.trainers if self.colocated else self.trainers + self.engines * self.tensor_parallel

    @property
    def machines_to_reach(self) -> int:
        """Machines with engines, besides the one that new weights come from."""
        if self.devices <= self.per_node:
            return 0
        return -(-self.devices // self.per_node) - max(1, self.trainers // self.per_node)

    def trainer_link(self, device: Device) -> float:
        """Bytes/s per trainer in a collective: across nodes, a node's ports together or its inner links, if slower."""
        if self.trainers <= self.per_node:
            return device.link
        return min(device.link, self.per_node * device.network)

    def words(self) -> str:
        tp = f" of {self.tensor_parallel} devices each" if self.tensor_parallel > 1 else ""
        engines = f"{self.engines} engine{'s' * (self.engines > 1)}{tp}"
        if self.colocated:
            many = self.trainers > 1
            who = f"{self.trainers:,} devices that train and generate" if many else "a device that trains and generates"
            return f"{who} in turn ({engines})"
        return f"{self.trainers} trainer{'s' * (self.trainers > 1)} + {engines}"

    def age(self) -> str:
        """Say how old the weights are that generate; nothing if they are the trainers'."""
        steps = f"{self.staleness} step{'s' * (self.staleness > 1)}"
        return f"weights {steps} old at most" if self.staleness else ""
