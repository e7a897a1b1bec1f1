"""Seconds of generation: prompts, decode steps, and what a response costs outside the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from assay.planning.devices import Device
from assay.planning.efficiency import Efficiency
from assay.planning.layout import Layout
from assay.planning.memory import layer_bytes, live_context, rows_at_once, share_of_rows
from assay.planning.quantity import Number, Phase, quantity
from assay.planning.shapes import Shapes
from assay.planning.workload import Workload

SAMPLING_PASSES = 10
"""How often the logits of a decode step are read or written, in float32, until a token is drawn."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """The decode steps of an engine: of each kind, how many, with how many rows, after how many tokens."""

    steps: Float[np.ndarray, "S"]
    rows: Float[np.ndarray, "S"]
    context: Float[np.ndarray, "S"]


def decoding(shapes: Shapes, work: Workload, layout: Layout, device: Device) -> Decoding:
    """Return the decode steps that one engine takes for its responses.

    A wave of n rows begins together and thins out as responses end: at token t, n S(t) rows are left, and the step is
    taken if any is, which has the chance 1 - (1 - S(t))^n. ``hf`` takes one wave after the other; ``vllm`` keeps all
    places filled until the last wave.
    """
    lengths, own = work.lengths, share_of_rows(work, layout)
    at_once = rows_at_once(shapes, work, layout, device)
    waves = float(np.ceil(own / at_once)) if work.engine == "hf" else 1.0
    wave = own / waves if work.engine == "hf" else min(own, at_once)
    at, width = lengths.grid()
    survival = lengths.survival()
    any_left = 1 - (1 - survival) ** wave
    taken = any_left > 1e-9
    steps, rows = waves * width * any_left[taken], wave * survival[taken] / any_left[taken]
    context = work.prompt_tokens + at[taken]
    if work.engine == "vllm" and own > at_once:
        steps = np.concatenate([[(own - at_once) * lengths.mean / at_once], steps])
        rows = np.concatenate([[at_once], rows])
        context = np.concatenate([[live_context(work)], context])
    return Decoding(steps, rows, context)


def generate(shapes: Shapes, work: Workload, layout: Layout, device: Device, e: Efficiency) -> list[Phase]:
    """Return prefill, decoding, and what a response costs outside the model."""
    p, b, own = layout.tensor_parallel, work.size, share_of_rows(work, layout)
    prompts = max(1.0, work.prompts / layout.engines)
    prefill = quantity(
        "prefill",
        "s",
        "prompts * (2 * active * prompt_tokens + score_flops * prompt_tokens**2 / 2) / (devices * peak * share)",
        prompts=prompts,
        active=shapes.body,
        prompt_tokens=work.prompt_tokens,
        score_flops=shapes.score_flops,
        devices=p,
        peak=device.flops,
        share=e.prefill,
    )
    found = decoding(shapes, work, layout, device)
    inputs: dict[str, Number] = {
        "steps": found.steps,
        "rows": found.rows,
        "context": found.context,
        "layers": shapes.layers,
        "launch": e.launch,
        "active": shapes.body + shapes.head,
        "score_flops": shapes.score_flops,
        "peak": device.flops,
        "share": e.decode,
        "weight_bytes": shapes.touched(found.rows) * b,
        "kv_bytes": shapes.kv_bytes(b),
        "logit_bytes": 4 * SAMPLING_PASSES * shapes.vocabulary,
        "bandwidth": device.bandwidth,
        "bandwidth_share": e.bandwidth,
        "devices": p,
    }
    formula = (
        "sum(steps * (layers * launch + max(rows * (2 * active + score_flops * context) / (peak * share), "
        "(weight_bytes + rows * (kv_bytes * context + logit_bytes)) / (bandwidth * bandwidth_share)) / devices))"
    )
    if e.touch:
        inputs |= {"touch": e.touch, "layer_bytes": layer_bytes(shapes, b)}
        moved = "rows * layer_bytes * touch / (bandwidth * bandwidth_share * devices)"
        formula = formula.replace("layers * launch", f"layers * (launch + {moved})")
    if p > 1:
        # Two sums over the engine's devices per layer, each of which sends all but its own part twice.
        sums = "2 * rows * row_bytes * (devices - 1) / devices / (link * link_share) + latency * log2(devices)"
        formula = formula.replace("sum(steps * (", f"sum(steps * (2 * layers * ({sums}) + ")
        inputs |= {"row_bytes": shapes.hidden * b, "link": device.link, "link_share": e.link, "latency": e.latency}
    decode = quantity("decode", "s", formula, **inputs)
    per_row = quantity("responses", "s", "responses * seconds", responses=own, seconds=e.row)
    return [
        Phase(prefill, "compute"),
        Phase(decode, _decode_bound(found, inputs)),
        Phase(per_row, "Python"),
    ]


def _decode_bound(found: Decoding, x: dict[str, Number]) -> str:
    n, alone = found.rows, found.steps / x["devices"]
    launch = found.steps * x["launch"] * x["layers"]
    compute = alone * n * (2 * x["active"] + x["score_flops"] * found.context) / (x["peak"] * x["share"])
    speed = x["bandwidth"] * x["bandwidth_share"]
    weights = alone * x["weight_bytes"] / speed
    rest = alone * n * (x["kv_bytes"] * found.context + x["logit_bytes"]) / speed
    reading = weights + rest
    sums = {
        "launches": float(launch.sum()),
        "compute": float(np.where(compute >= reading, compute, 0).sum()),
        "reading weights": float(np.where(compute < reading, weights, 0).sum()),
        "reading keys and values": float(np.where(compute < reading, rest, 0).sum()),
    }
    return max(sums, key=lambda k: sums[k])
