"""Accelerators as plans see them: peak compute, memory, links, price.

Compute, memory and links are the vendors' published peaks (source at each row): dense bfloat16 with float32
accumulation, links one way. What a run reaches of them is another matter: :mod:`assay.planning.efficiency`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from assay.errors import UsageError, nearest

PRICES_OF = "mid-2026"
"""When the default prices were looked at: on-demand rates of specialised clouds, which differ by a factor of 2.5."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator.

    Attributes:
        flops: dense bfloat16 FLOP/s at peak.
        memory: bytes.
        bandwidth: bytes/s between memory and cores.
        link: bytes/s one way to the other accelerators of the node.
        network: bytes/s one way to other nodes, per accelerator.
        price: US dollars per hour.
    """

    name: str
    flops: float
    memory: float
    bandwidth: float
    link: float
    network: float
    price: float


DEVICES = {
    d.name: d
    for d in (
        # NVIDIA A100 data sheet (SXM4): 312 TFLOP/s, 2,039 GB/s (80 GB) and 1,555 GB/s (40 GB), NVLink 600 GB/s both
        # ways; DGX A100: one 200 Gb/s port per GPU.
        Device("a100", 312e12, 80e9, 2.039e12, 300e9, 25e9, 1.5),
        Device("a100-40", 312e12, 40e9, 1.555e12, 300e9, 25e9, 1.2),
        # NVIDIA H100 data sheet (SXM5): 1,979 TFLOP/s with sparsity, so 989.5 dense; 80 GB at 3.35 TB/s, NVLink
        # 900 GB/s both ways; DGX H100: one 400 Gb/s port per GPU.
        Device("h100", 989.5e12, 80e9, 3.35e12, 450e9, 50e9, 3.0),
        # NVIDIA H200 data sheet: as the H100, with 141 GB at 4.8 TB/s.
        Device("h200", 989.5e12, 141e9, 4.8e12, 450e9, 50e9, 4.0),
        # NVIDIA DGX B200 data sheet, an eighth of it: 2.25 PFLOP/s dense, 180 GB at 8 TB/s, NVLink 1.8 TB/s both ways.
        Device("b200", 2.25e15, 180e9, 8.0e12, 900e9, 50e9, 5.5),
        # NVIDIA L40S data sheet: 362 TFLOP/s, 48 GB at 864 GB/s, PCIe 4.0 x16 64 GB/s both ways.
        Device("l40s", 362e12, 48e9, 0.864e12, 32e9, 12.5e9, 1.0),
        # NVIDIA L4 data sheet: 242 TFLOP/s with sparsity, 24 GB at 300 GB/s, PCIe 4.0 x16.
        Device("l4", 121e12, 24e9, 0.3e12, 32e9, 6.25e9, 0.6),
        # NVIDIA A10 data sheet: 125 TFLOP/s, 24 GB at 600 GB/s, PCIe 4.0 x16.
        Device("a10", 125e12, 24e9, 0.6e12, 32e9, 6.25e9, 0.7),
        # NVIDIA Ada architecture white paper: GeForce RTX 4090, 165.2 TFLOP/s with float32 accumulation, 24 GB at 1,008
        # GB/s; PCIe 4.0 x16, no NVLink.
        Device("rtx4090", 165.2e12, 24e9, 1.008e12, 32e9, 3.125e9, 0.5),
        # AMD Instinct MI300X data sheet: 1,307.4 TFLOP/s, 192 GB at 5.3 TB/s, seven Infinity Fabric links of 128 GB/s
        # both ways.
        Device("mi300x", 1307.4e12, 192e9, 5.3e12, 448e9, 50e9, 2.5),
    )
}


def device_of(name: str) -> Device:
    """Return the accelerator called ``name``; ``cpu`` is this machine's processor, measured on the spot.

    Raises:
        UsageError: there is none of that name.
    """
    key = name.lower().replace("_", "-")
    if key == "cpu":
        return measured_cpu()
    if key not in DEVICES:
        raise UsageError(f"no accelerator {name!r} is known{nearest(key, [*DEVICES, 'cpu'])}")
    return DEVICES[key]


def measured_cpu(repeats: int = 5) -> Device:
    """Measure this machine: float32 FLOP/s of a matrix product, bytes/s of reading a large tensor; the best of some."""
    import torch

    a, b = torch.randn(768, 768), torch.randn(768, 768)
    large = torch.ones(16 * 2**20)
    flops = bandwidth = 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        a @ b
        flops = max(flops, 2 * 768**3 / (time.perf_counter() - start))
        start = time.perf_counter()
        large.sum()
        bandwidth = max(bandwidth, 4 * len(large) / (time.perf_counter() - start))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Device("cpu", flops, memory, bandwidth, bandwidth, 1.25e9, 0.0)
