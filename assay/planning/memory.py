"""Bytes on a device: what a trainer holds under FSDP2, what an engine holds."""

from __future__ import annotations

from assay.planning.devices import Device
from assay.planning.layout import Layout
from assay.planning.quantity import Quantity, quantity
from assay.planning.shapes import Shapes
from assay.planning.workload import Workload, adapter_parameters
from assay.policies.quantised import WEIGHT_BYTES
from assay.policies.room import SHARE
from assay.scale.ray.gpus import RESERVE

CHUNK_BYTES = 256 * 2**20
"""Largest block of float32 logits, as in assay.policies.logprobs."""
PREFILL_TOKENS = 8192
"""Prompt tokens that an engine with continuous batching computes at once."""

LASTING = ("weights", "gradients", "optimiser", "reference")
"""What a trainer holds all the time; the rest only in the update."""


def trained(shapes: Shapes, work: Workload) -> int:
    """Parameters that the optimiser changes."""
    return adapter_parameters(shapes, work.lora) if work.lora else shapes.parameters


def kept_numbers(shapes: Shapes, size: int) -> tuple[float, float]:
    """Return how many numbers a layer keeps per packed token for the backward pass, and per token of padded rows.

    Kept are: of each of two norms its normalised input and its output (with numbers of 2 bytes also float32 copies),
    the attention's result, the MLP's gate, its activation, its other branch and their product; and in padded rows,
    which attention works on, queries, keys, values and result.
    """
    d, q, kv = shapes.hidden, shapes.heads * shapes.head_dim, shapes.kv_heads * shapes.head_dim
    share = shapes.expert_layers / shapes.layers
    routed = shapes.experts_per_token * (4 * shapes.expert_intermediate + 2 * d) + 4 * shapes.shared_intermediate
    mlp = (1 - share) * (shapes.matrices + 1) * shapes.intermediate + share * routed
    return (4 if size == 4 else 8) * d + q + mlp, 2 * q + 2 * kv


def layer_bytes(shapes: Shapes, size: int) -> float:
    """Bytes of what a layer makes of a token."""
    return size * sum(kept_numbers(shapes, size))


def row_padding(work: Workload) -> tuple[float, float]:
    """Return how many rows a micro-batch has on average, and how many cells these have per packed token."""
    each = work.packed_tokens / work.responses
    rows = max(1.0, min(work.responses, work.token_budget / each))
    return rows, (work.prompt_tokens + work.lengths.longest_of(rows)) / each


def shared_weights(work: Workload, layout: Layout) -> bool:
    """Whether the engine decodes with the very weights that are trained: vLLM has its own, and so has who lags."""
    return layout.colocated and layout.trainers == 1 and work.engine == "hf" and not layout.staleness


def trainer_memory(shapes: Shapes, work: Workload, layout: Layout, device: Device) -> list[Quantity]:
    """Return what one trainer holds at the height of an update."""
    f, b = layout.trainers, work.size
    weight, gradient, state = work.stored(f)
    learnt, tokens = trained(shapes, work), max(work.token_budget, work.longest)
    kept, in_rows = kept_numbers(shapes, b)
    _, padding = row_padding(work)
    out = [
        _four_bits(shapes, weight)
        if work.quantised
        else quantity(
            "weights", "B", "parameters * bytes / trainers", parameters=shapes.parameters, bytes=weight, trainers=f
        ),
        quantity("gradients", "B", "trained * bytes / trainers", trained=learnt, bytes=gradient, trainers=f),
        quantity("optimiser", "B", "trained * bytes / trainers", trained=learnt, bytes=state, trainers=f),
    ]
    # Adapters that add nothing at first are switched off instead.
    if "reference" in work.readers and (work.lora is None or work.lora.start != "lora"):
        size = {"parameters": shapes.parameters, "bytes": weight, "trainers": f}
        out.append(quantity("reference", "B", "parameters * bytes / trainers", **size))
    if f > 1:
        # What is outside of the layers stays whole for the whole pass; layers come one ahead, and with their gradient.
        out.append(
            quantity(
                "gathered",
                "B",
                "(outside + 2 * layer) * bytes + max(outside, layer) * (bytes + gradient)",
                outside=shapes.outside,
                layer=shapes.layer,
                bytes=b,
                gradient=gradient,
            )
        )
    shape = {"tokens": tokens, "bytes": b, "kept": kept, "padding": padding, "in_rows": in_rows}
    if work.checkpointing:
        out.append(
            quantity(
                "activations",
                "B",
                "tokens * bytes * (layers * hidden + kept + padding * in_rows)",
                **shape,
                layers=shapes.layers,
                hidden=shapes.hidden,
            )
        )
    else:
        out.append(
            quantity(
                "activations",
                "B",
                "tokens * bytes * layers * (kept + padding * in_rows)",
                **shape,
                layers=shapes.layers,
            )
        )
    out.append(
        quantity(
            "logits in blocks",
            "B",
            "3 * min(block, 4 * tokens * vocabulary)",
            block=CHUNK_BYTES,
            tokens=tokens,
            vocabulary=shapes.vocabulary,
        )
    )
    return [*out, reserve(device)]


def _four_bits(shapes: Shapes, weight: int) -> Quantity:
    """Bytes of weights of which linear layers are in four bits, and of one matrix that is taken back from them."""
    return quantity(
        "weights",
        "B",
        "(parameters - linear) * bytes + linear * four_bits + largest * bytes",
        parameters=shapes.parameters,
        linear=shapes.always,
        bytes=weight,
        four_bits=WEIGHT_BYTES,
        largest=shapes.hidden * max(shapes.intermediate, shapes.heads * shapes.head_dim),
    )


def engine_memory(shapes: Shapes, work: Workload, layout: Layout, device: Device) -> list[Quantity]:
    """Return what one device of an engine holds, with as many rows as :func:`rows_at_once` says."""
    p, b, rows = layout.tensor_parallel, work.size, rows_at_once(shapes, work, layout, device)
    kv = shapes.kv_bytes(b)
    out = (
        []
        if shared_weights(work, layout)
        else [
            quantity("weights", "B", "parameters * bytes / devices", parameters=shapes.parameters, bytes=b, devices=p)
        ]
    )
    if work.engine == "hf":
        # A block for all rows, as long as the longest; when it is full a half is added, and both exist for a moment.
        out.append(
            quantity(
                "keys, values",
                "B",
                "rows * longest * kv_bytes * 5 / 3 / devices",
                rows=rows,
                longest=work.longest,
                kv_bytes=kv,
                devices=p,
            )
        )
        tokens = rows / work.group * work.prompt_tokens
    else:
        out.append(
            quantity(
                "keys, values",
                "B",
                "rows * context * kv_bytes / devices",
                rows=rows,
                context=live_context(work),
                kv_bytes=kv,
                devices=p,
            )
        )
        tokens = min(PREFILL_TOKENS, work.responses * work.prompt_tokens)
    width = prefill_width(shapes)
    out.append(
        quantity("prefill", "B", "tokens * width * bytes / devices", tokens=tokens, width=width, bytes=b, devices=p)
    )
    out.append(
        quantity(
            "logits in blocks",
            "B",
            "3 * min(block, 4 * rows * vocabulary)",
            block=CHUNK_BYTES,
            rows=rows,
            vocabulary=shapes.vocabulary,
        )
    )
    return [*out, reserve(device)]


def prefill_width(shapes: Shapes) -> int:
    """Numbers that a prompt token has in memory at once while a layer computes."""
    dense = shapes.intermediate * (shapes.expert_layers < shapes.layers)
    return 6 * shapes.hidden + 3 * max(dense, shapes.experts_per_token * shapes.expert_intermediate)


def live_context(work: Workload) -> float:
    """Tokens behind a response that is being written, on average: its prompt, and E[T^2] / 2 E[T] of its own."""
    return work.prompt_tokens + work.lengths.square() / (2 * work.lengths.mean)


def share_of_rows(work: Workload, layout: Layout) -> float:
    """Responses of a step that one engine writes."""
    return max(1.0, work.responses / layout.engines)


def rows_at_once(shapes: Shapes, work: Workload, layout: Layout, device: Device) -> float:
    """Responses that one engine writes side by side: as many as there are, are allowed, and fit into memory."""
    wanted = min(share_of_rows(work, layout), work.max_rows)
    if work.engine == "hf":
        return max(1.0, min(wanted, SHARE * device.memory // (work.longest * shapes.kv_bytes(work.size))))
    fixed = shapes.parameters * work.size / layout.tensor_parallel + 3 * CHUNK_BYTES
    if layout.colocated:
        # With older weights it writes while the other trains, and finds all of that in memory.
        rest = {q.name: q.value for q in trainer_memory(shapes, work, layout, device) if q.name != "runtime"}
        fixed += sum(v for name, v in rest.items() if layout.staleness or name in LASTING)
    free = (
        (1 - RESERVE) * device.memory
        - fixed
        - PREFILL_TOKENS * prefill_width(shapes) * work.size / layout.tensor_parallel
    )
    each = live_context(work) * shapes.kv_bytes(work.size) / layout.tensor_parallel
    # One response must fit whole; less than that is no engine, and engine_memory says so.
    return max(1.0, min(wanted, free / each))


def reserve(device: Device) -> Quantity:
    share = 0.0 if device.name == "cpu" else RESERVE
    return quantity("runtime", "B", "share * memory", share=share, memory=device.memory)


def peak(shapes: Shapes, work: Workload, layout: Layout, device: Device) -> tuple[float, float]:
    """Return the bytes at the height of a step on a trainer's and on an engine's device, which may be the same."""
    train = {q.name: q.value for q in trainer_memory(shapes, work, layout, device)}
    engine = {q.name: q.value for q in engine_memory(shapes, work, layout, device)}
    if not layout.colocated:
        return sum(train.values()), sum(engine.values())
    runtime, copy = engine.pop("runtime"), engine.pop("weights", 0.0)
    train.pop("runtime")
    lasting = sum(train.pop(name, 0.0) for name in LASTING)
    while_training, while_writing = sum(train.values()), sum(engine.values())
    either = while_training + while_writing if layout.staleness else max(while_training, while_writing)
    both = runtime + copy + lasting + either
    return both, both
