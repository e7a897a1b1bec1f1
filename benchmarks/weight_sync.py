"""Seconds that new weights take to engines: through Ray's object store, and by one broadcast of gloo.

    python benchmarks/weight_sync.py [--millions 135] [--engines 2] [--rounds 5]

Engines are actors that keep a copy of a model of the Llama family in float32 and answer nothing. Rounds of the two
ways take turns. Printed are the median and the best seconds from the call until the last engine has the weights, and
of these the seconds during which the trainer waits; then the same as GB/s of one copy.

Without ``RAY_ADDRESS`` all is on this machine, where the store is memory that engines share. With it, engines are
spread over the machines of that cluster.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from assay.config import ScaleConfig, load_config
from assay.policies.causal_lm import CausalLM
from assay.scale.faults import Faults
from assay.scale.ray.cluster import Cluster, import_ray
from assay.scale.ray.engine import RayEngine


def shape(millions: float) -> dict[str, Any]:
    """A model of about so many parameters, 12 a layer and squared width, as deep as models of its size are."""
    layers = max(1, round(30 * (millions / 135) ** (1 / 3)))
    hidden = max(64, 64 * round((millions * 1e6 / (12 * layers)) ** 0.5 / 64))
    return {"hidden": hidden, "layers": layers, "heads": hidden // 64, "context": 64}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=135, help="parameters of the model")
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ray, address = import_ray(), os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {} if address else {"num_cpus": 2 * options.engines, "include_dashboard": False}
    ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
    config = load_config({"model": {"nano": shape(options.millions), "device": "cpu"}}).model
    policy = CausalLM.load(config)
    size = sum(weight.nbytes for _, weight in policy.merged_state())
    engines = {}
    for way in ("store", "broadcast"):
        scale = ScaleConfig(engines=options.engines, nodes=len(ray.nodes()), weights=way)
        cluster = Cluster(scale, Faults(Path(tempfile.gettempdir()) / "none", print))
        cluster.join()
        engines[way] = RayEngine(policy, cluster, "hf", config, max_rows=1)
        engines[way].follow(policy)
        arrived(engines[way])
    waited: dict[str, list[float]] = {way: [] for way in engines}
    taken: dict[str, list[float]] = {way: [] for way in engines}
    for _ in range(options.rounds + 1):
        for way, engine in engines.items():
            start = time.perf_counter()
            engine.follow(policy)
            waited[way].append(time.perf_counter() - start)
            arrived(engine)
            taken[way].append(time.perf_counter() - start)
    print(f"{size / 1e9:.2f} GB to {options.engines} engines on {len(ray.nodes())} machines")
    print(f"{'':10} {'median':>8} {'best':>8} {'waited':>8} {'GB/s':>6}")
    for way in engines:
        # In the first round the engines met.
        all_, median = taken[way][1:], statistics.median(taken[way][1:])
        wait = statistics.median(waited[way][1:])
        print(f"{way:10} {median:6.3f} s {min(all_):6.3f} s {wait:6.3f} s {size / median / 1e9:6.2f}")
    for engine in engines.values():
        engine.close()


def arrived(engine: RayEngine) -> None:
    """Wait until every engine has the latest weights."""
    engine.crew.start()
    engine.cluster.ray.get([member.preparing for member in engine.crew.members if member.preparing is not None])


if __name__ == "__main__":
    main()
