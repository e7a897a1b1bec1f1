"""Seconds of what follows generation: verdicts, signals, the update, and new weights on their way to the engines."""

from __future__ import annotations

from math import ceil, log2

import numpy as np

from assay.planning.devices import Device
from assay.planning.efficiency import Efficiency
from assay.planning.layout import Layout
from assay.planning.memory import layer_bytes, row_padding, shared_weights, trained
from assay.planning.quantity import Number, Phase, Quantity, quantity
from assay.planning.shapes import Shapes
from assay.planning.workload import Workload

TOKEN_BYTES = 17
"""Of a sampled token on its way to the trainers: id, log-probability, entropy, mask."""


HOST_SPEED = 5e9
"""Bytes/s of one copy from memory that is not pinned, or into new memory, by one process: assumed."""
HOST_COPIES = 5
"""Of each weight on its way to an engine: off the device, into a block, into the store, out of it, onto the device."""
GLOO_COPIES = 3
"""Of each weight that gloo broadcasts: off the device, into a block, onto the device."""
NCCL_COPIES = 1
"""Of each weight that NCCL broadcasts: the one that rank 0 keeps for engines that were not reached."""
SERVED_COPIES = 2
"""More to a server: into the file that it reads, and out of it."""


def verify(work: Workload) -> Phase:
    """Return the verdicts' time."""
    time = quantity(
        "verify",
        "s",
        "responses * seconds / verifiers",
        responses=work.responses,
        seconds=work.verify_seconds,
        verifiers=max(1, work.verify_workers),
    )
    return Phase(time, "verifiers")


def micro_batches(work: Workload, layout: Layout) -> float:
    """Micro-batches of one trainer in one pass over the batch."""
    return max(work.mini_batches, float(np.ceil(work.packed_tokens / layout.trainers / work.token_budget)))


def seen(work: Workload) -> float:
    """Sum over padded rows of half their squared length."""
    rows, _ = row_padding(work)
    longest = work.prompt_tokens + work.lengths.longest_of(rows)
    return max(work.seen_tokens, work.responses * longest**2 / 2)


def _tokens(shapes: Shapes, work: Workload) -> dict[str, Number]:
    return {
        "active": shapes.body,
        "tokens": work.packed_tokens,
        "head": shapes.head,
        "response_tokens": work.response_tokens,
        "score_flops": shapes.score_flops,
        "seen": seen(work),
    }


def signals(shapes: Shapes, work: Workload, layout: Layout, device: Device, e: Efficiency) -> list[Phase]:
    """Return the forward passes that the method's signals take."""
    out = []
    for model in work.readers:
        compute = quantity(
            f"{model} pass",
            "s",
            "(2 * active * tokens + 2 * head * response_tokens + score_flops * seen) / (peak * trainers * share)",
            **_tokens(shapes, work),
            peak=device.flops,
            trainers=layout.trainers,
            share=e.prefill,
        )
        sent = _gathers(f"{model} pass", shapes, work, layout, device, e, gathers=1, reduced=0)
        out.append(Phase(sent, "interconnect") if sent.value > compute.value else Phase(compute, "compute"))
    return out


def update(shapes: Shapes, work: Workload, layout: Layout, device: Device, e: Efficiency) -> list[Phase]:
    """Return passes forward and backward, the optimiser's step, and what a response costs outside the model.

    A frozen matrix takes 4 FLOPs per parameter and token, one that learns 6, and 2 more where a layer is computed
    again; the head 8, since its logits are computed again in blocks; a score three times its forward FLOPs.
    """
    again = 1 if work.checkpointing else 0
    moved, touched = "", {}
    if e.update_touch:
        moved = " + tokens * layers * layer_bytes * touch / (trainers * bandwidth * bandwidth_share)"
        touched = {"layer_bytes": layer_bytes(shapes, work.size), "touch": e.update_touch}
        touched |= {"bandwidth": device.bandwidth, "bandwidth_share": e.bandwidth}
    compute = quantity(
        "passes",
        "s",
        "epochs * ((per_weight * active * tokens + per_head * head * response_tokens + per_score * score_flops * seen)"
        " / (peak * trainers * share) + micro_batches * layers * launch" + moved + ")",
        epochs=work.epochs,
        per_weight=(4 if work.lora else 6) + 2 * again,
        per_head=6 if work.lora else 8,
        per_score=3 + again,
        **_tokens(shapes, work),
        peak=device.flops,
        trainers=layout.trainers,
        share=e.update,
        micro_batches=micro_batches(work, layout),
        layers=shapes.layers,
        launch=e.update_launch,
        **touched,
    )
    learnt, (weight, gradient, state) = trained(shapes, work), work.stored(layout.trainers)
    sent = _gathers("passes", shapes, work, layout, device, e, gathers=2, reduced=learnt)
    optimiser = quantity(
        "optimiser",
        "s",
        "updates * trained * (bytes + gradient + 2 * state) / (trainers * bandwidth * bandwidth_share)",
        updates=work.epochs * work.mini_batches,
        trained=learnt,
        bytes=weight,
        gradient=gradient,
        state=state,
        trainers=layout.trainers,
        bandwidth=device.bandwidth,
        bandwidth_share=e.bandwidth,
    )
    rows = quantity(
        "records",
        "s",
        "epochs * responses * seconds / trainers",
        epochs=work.epochs,
        responses=work.responses,
        seconds=e.update_row,
        trainers=layout.trainers,
    )
    # What is sent for the next layer is sent while this one computes.
    passes = Phase(sent, "interconnect") if sent.value > compute.value else Phase(compute, "compute")
    return [passes, Phase(optimiser, "memory bandwidth"), Phase(rows, "Python")]


def _gathers(
    name: str, shapes: Shapes, work: Workload, layout: Layout, device: Device, e: Efficiency, gathers: int, reduced: int
) -> Quantity:
    """Return the seconds that parameters take to be gathered and gradients to be reduced, per step."""
    epochs = work.epochs if reduced else 1
    return quantity(
        name,
        "s",
        "epochs * micro_batches * ((trainers - 1) / trainers * (gathers * parameters * bytes + reduced * gradient)"
        " / (link * link_share) + (gathers + 1) * layers * latency * log2(trainers))",
        epochs=epochs,
        micro_batches=micro_batches(work, layout),
        trainers=layout.trainers,
        gathers=gathers,
        parameters=shapes.parameters,
        reduced=reduced,
        bytes=work.size,
        gradient=work.stored(layout.trainers)[1],
        link=layout.trainer_link(device),
        link_share=e.link,
        layers=shapes.layers,
        latency=e.latency,
    )


def travels(shapes: Shapes, work: Workload, layout: Layout) -> list[Quantity]:
    """Return the bytes that travel in a step: within the trainers per device, from trainers to engines, and back."""
    f = layout.trainers
    out = [
        quantity(
            "gathered and reduced, per trainer",
            "B",
            "epochs * micro_batches * (trainers - 1) / trainers * (2 * parameters * bytes + trained * gradient)",
            epochs=work.epochs,
            micro_batches=micro_batches(work, layout),
            trainers=f,
            parameters=shapes.parameters,
            trained=trained(shapes, work),
            bytes=work.size,
            gradient=work.stored(layout.trainers)[1],
        )
    ]
    if not shared_weights(work, layout):
        out.append(
            quantity(
                "weights, to each engine", "B", "parameters * bytes", parameters=shapes.parameters, bytes=work.size
            )
        )
        out.append(
            quantity(
                "groups, to the trainers",
                "B",
                "token_bytes * response_tokens + 8 * prompts * prompt_tokens",
                token_bytes=TOKEN_BYTES,
                response_tokens=work.response_tokens,
                prompts=work.prompts,
                prompt_tokens=work.prompt_tokens,
            )
        )
    return out


def sync(shapes: Shapes, work: Workload, layout: Layout, device: Device, e: Efficiency) -> Phase:
    """Return the time that new weights take to the engines.

    Engines on the trainers' devices take each weight once it is gathered. To others one process sends them. By way of
    the store: through its machine's memory, from where every other machine fetches a copy, all at once from the same
    port. By a broadcast of NCCL: block by block from device to device, each engine handing on to the next what it gets,
    which takes as long as the slowest hop takes for all of it. By one of gloo, where there is no GPU or a server reads
    what came: from memory to memory, in as many rounds as doubling who has it takes.
    """
    size: dict[str, Number] = {"parameters": shapes.parameters, "bytes": work.size}
    if shared_weights(work, layout):
        return Phase(quantity("weights to engines", "s", "0"), "")
    if layout.colocated and layout.trainers == 1:
        formula = "2 * parameters * bytes / (bandwidth * bandwidth_share)"
        speed = {"bandwidth": device.bandwidth, "bandwidth_share": e.bandwidth}
        return Phase(quantity("weights to engines", "s", formula, **size, **speed), "memory bandwidth")
    gathering: dict[str, Number] = {
        "trainers": layout.trainers,
        "link": layout.trainer_link(device),
        "link_share": e.link,
    }
    gathered = "(trainers - 1) / trainers / (link * link_share)"
    if layout.colocated:
        whole = quantity("weights to engines", "s", f"parameters * bytes * {gathered}", **size, **gathering)
        return Phase(whole, "interconnect")
    served = SERVED_COPIES if layout.tensor_parallel > 1 else 0
    name, hop = "weights to engines", device.network if layout.machines_to_reach else device.link
    if work.weights == "store":
        copies, times = HOST_COPIES + served, layout.machines_to_reach
        # Whoever shares the memory that the store is in copies nothing further.
        sending, sent = {"machines": times, "network": device.network}, "machines / (network * link_share)"
        hop = device.network
    elif device.name == "cpu" or served:
        copies, times = GLOO_COPIES + served, ceil(log2(layout.engines + 1))
        sending, sent = {"rounds": times, "hop": hop}, "rounds / (hop * link_share)"
    else:
        copies, times = NCCL_COPIES, 1
        sending, sent = {"hop": hop}, "1 / (hop * link_share)"
    formula = f"parameters * bytes * ({gathered} + copies / host + {sent})"
    time = quantity(name, "s", formula, **size, **gathering, copies=copies, host=HOST_SPEED, **sending)
    travelling, copying = times / (hop * e.link), copies / HOST_SPEED
    link = "network" if layout.machines_to_reach else "interconnect"
    return Phase(time, link if travelling > copying else "copies in memory")
