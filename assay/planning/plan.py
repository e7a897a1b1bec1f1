"""A plan: memory per device, seconds of a step by part, cost, and the division of devices that takes least time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.errors import UsageError
from assay.planning.devices import Device
from assay.planning.efficiency import Efficiency
from assay.planning.generation import generate
from assay.planning.layout import Layout
from assay.planning.learning import signals, sync, travels, update, verify
from assay.planning.memory import engine_memory, peak, trainer_memory
from assay.planning.quantity import Phase, Quantity, quantity
from assay.planning.shapes import Shapes
from assay.planning.workload import Workload
from assay.policies.loading import LoraConfig

SPLITS = 64
"""Divisions into trainers and engines that are looked at, at most, per size of an engine."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step takes on one division of devices.

    Attributes:
        trainer, engine: what stands in the memory of a device of each kind.
        peaks: bytes at the height of a step, on a trainer's device and on an engine's.
        phases: parts of the step by what they belong to: generate, verify, signals, update, sync.
        travels: bytes that go between devices in a step.
        step: seconds of a step.
        totals: tokens per second, utilisation, cost.
    """

    shapes: Shapes
    work: Workload
    device: Device
    layout: Layout
    efficiency: Efficiency
    trainer: list[Quantity]
    engine: list[Quantity]
    peaks: tuple[float, float]
    phases: dict[str, list[Phase]]
    travels: list[Quantity]
    step: Quantity
    totals: list[Quantity]

    @property
    def fits(self) -> bool:
        return max(self.peaks) <= self.device.memory

    @property
    def seconds(self) -> dict[str, float]:
        """Of each part of the step."""
        return {name: sum(p.time.value for p in phases) for name, phases in self.phases.items()}

    @property
    def bounds(self) -> dict[str, str]:
        """What bounds each part of the step that takes any time."""
        longest = {name: max(phases, key=lambda p: p.time.value) for name, phases in self.phases.items() if phases}
        return {name: p.bound for name, p in longest.items() if p.time.value > 0}


def make_plan(shapes: Shapes, work: Workload, layout: Layout, device: Device, efficiency: Efficiency) -> Plan:
    """Return the plan of a step on one division of devices."""
    given = (shapes, work, layout, device)
    phases = {
        "generate": generate(*given, efficiency),
        "verify": [verify(work)],
        "signals": signals(*given, efficiency),
        "update": update(*given, efficiency),
        "sync": [sync(*given, efficiency)],
    }
    seconds = {name: sum(p.time.value for p in part) for name, part in phases.items()}
    step = quantity("step", "s", _schedule(layout), **seconds, staleness=layout.staleness)
    tokens = {"active": shapes.body, "head": shapes.head, "response_tokens": work.response_tokens}
    flops = quantity(
        "useful FLOPs",
        "FLOP",
        "(2 + 6 * epochs + 2 * readers) * "
        "((active + head) * response_tokens + active * prompts * prompt_tokens + score_flops * seen / 2)",
        **tokens,
        epochs=work.epochs,
        readers=len(work.readers),
        prompts=work.prompts,
        prompt_tokens=work.prompt_tokens,
        score_flops=shapes.score_flops,
        seen=work.seen_tokens,
    )
    use = quantity(
        "utilisation",
        "",
        "useful_flops / (step * devices * peak)",
        useful_flops=flops.value,
        step=step.value,
        devices=layout.devices,
        peak=device.flops,
    )
    rate = quantity(
        "response tokens per second",
        "",
        "response_tokens / step",
        response_tokens=work.response_tokens,
        step=step.value,
    )
    cost = quantity(
        "cost per step",
        "$",
        "devices * price * step / 3600",
        devices=layout.devices,
        price=device.price,
        step=step.value,
    )
    run = quantity("cost of the run", "$", "steps * cost", steps=work.steps, cost=cost.value)
    million = quantity(
        "cost per million response tokens",
        "$",
        "cost / response_tokens * 1e6",
        cost=cost.value,
        response_tokens=work.response_tokens,
    )
    wall = quantity("time of the run", "s", "steps * step", steps=work.steps, step=step.value)
    return Plan(
        *given[:2],
        device,
        layout,
        efficiency,
        trainer_memory(*given),
        engine_memory(*given),
        peak(*given),
        phases,
        travels(shapes, work, layout),
        step,
        [rate, flops, use, wall, cost, run, million],
    )


def _schedule(layout: Layout) -> str:
    """Return how the parts make up a step.

    With weights at most k steps old, k + 1 batches are on their way at once, so that a step takes at least the
    (k + 1)-th part of what one batch takes, and as long as any device is busy with one.
    """
    one = "generate + verify + signals + update + sync"
    if layout.staleness == 0:
        return one
    if layout.colocated:
        return f"max(verify, generate + signals + update + sync, ({one}) / (staleness + 1))"
    return f"max(generate + sync, verify, signals + update + sync, ({one}) / (staleness + 1))"


def layouts(
    gpus: int,
    work: Workload,
    shapes: Shapes,
    per_node: int = 8,
    staleness: int = 0,
    tensor_parallel: int | None = None,
) -> Iterator[Layout]:
    """Yield divisions of ``gpus`` devices: all in turn, and trainers beside engines; of many, by whole machines.

    An engine of several devices is a server on one machine, with devices that are not the trainers'. The engine ``hf``
    lags behind where a single process trains, as it then has a copy of the whole model.
    """
    sizes = [tensor_parallel] if tensor_parallel else [1] if work.engine == "hf" else [1, 2, 4, 8, 16]
    for size in sizes:
        if size > min(gpus, per_node) or shapes.heads % size:
            continue
        if size == 1 and not (work.engine == "hf" and staleness and gpus > 1):
            yield Layout(gpus, gpus, 1, True, per_node, staleness)
        unit = per_node if gpus >= 4 * per_node else 1
        trainers = [f for f in range(unit, gpus, unit) if (gpus - f) % size == 0 and gpus > f]
        step = max(1, -(-len(trainers) // SPLITS))
        for f in trainers[::step]:
            yield Layout(f, (gpus - f) // size, size, False, per_node, staleness)


def search(
    shapes: Shapes, work: Workload, device: Device, efficiency: Efficiency, candidates: Sequence[Layout]
) -> list[Plan]:
    """Return a plan for every layout, those that fit first, the quickest step first.

    Raises:
        UsageError: there is no layout to look at.
    """
    if not candidates:
        raise UsageError(
            f"no division of the devices suits: an engine's devices must divide the model's {shapes.heads} attention "
            "heads, be of one machine and fewer than all"
        )
    plans = [make_plan(shapes, work, layout, device, efficiency) for layout in candidates]
    # Of those that do not fit, the one that lacks least.
    return sorted(plans, key=lambda p: (not p.fits, p.step.value if p.fits else max(p.peaks)))


def advice(plan: Plan, candidates: Sequence[Layout]) -> list[str]:
    """Say what to change when nothing fits: each single change that makes it fit, else the first pair that does."""
    work = plan.work
    changes: dict[str, Workload] = {}
    if not work.checkpointing:
        changes["model.gradient_checkpointing=true"] = replace(work, checkpointing=True)
    if work.size == 4:
        changes["model.dtype=bfloat16"] = replace(work, size=2)
    if work.token_budget > work.longest:
        budget = max(int(work.longest), work.token_budget // 4)
        changes[f"train.token_budget={budget}"] = replace(work, token_budget=budget)
    if work.engine == "hf" and work.max_rows > 32:
        changes["rollout.max_rows=32"] = replace(work, max_rows=32)
    if work.lora is None:
        changes["model.lora.rank=16"] = replace(work, lora=LoraConfig(rank=16))
    elif not work.quantised:
        changes["model.quantise=nf4"] = replace(work, quantised=True)
    if work.optimizer == "adamw":
        changes["train.optimizer=adamw8bit"] = replace(work, optimizer="adamw8bit")

    def fits(changed: Workload) -> bool:
        given = (plan.shapes, changed)
        able = [c for c in candidates if c.trainers == 1] if changed.quantised else candidates
        return any(max(peak(*given, layout, plan.device)) <= plan.device.memory for layout in able)

    single = [words for words, changed in changes.items() if fits(changed)]
    if single:
        return single
    together = work
    for words in changes:
        together = _merged(together, changes[words], work)
        if fits(together):
            return [" with ".join(list(changes)[: list(changes).index(words) + 1])]
    return []


def _merged(together: Workload, change: Workload, origin: Workload) -> Workload:
    names = ("checkpointing", "size", "optimizer", "token_budget", "max_rows", "lora", "quantised")
    return replace(together, **{n: getattr(change, n) for n in names if getattr(change, n) != getattr(origin, n)})
