"""A plan as tables, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from assay.planning.ask import Answer
from assay.planning.plan import Plan
from assay.planning.quantity import Quantity, readable, short


def tables(found: Answer, explain: bool = False) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Return titled tables: columns and rows. ``explain`` adds the numbers that the formulas' symbols stand for."""
    plan = found.plan
    more = ("numbers",) if explain else ()

    def row(q: Quantity, *between: str) -> tuple[str, ...]:
        return (q.name, readable(q.value, q.unit), *between, q.formula, *([q.worked()] if explain else []))

    out = []
    ways = {"trainer": plan.trainer, "engine": plan.engine}
    for i, (kind, parts) in enumerate(ways.items()):
        where = "a device" if plan.layout.colocated else f"{'an' if kind == 'engine' else 'a'} {kind}'s device"
        doing = {"trainer": " while it trains", "engine": " while it generates"}[kind] if plan.layout.colocated else ""
        rows = [row(q) for q in parts]
        if not plan.layout.colocated:
            rows.append(("in all", readable(plan.peaks[i], "B"), "the sum", *([""] if explain else [])))
        out.append((f"memory of {where}{doing}", ("part", "bytes", "formula", *more), rows))
    if plan.layout.colocated:
        height = readable(plan.peaks[0], "B")
        words = "what lasts + the larger of the rest"
        out[-1][2].append(("at most, of both", height, words, *([""] if explain else [])))
    rows = []
    for name, phases in plan.phases.items():
        for phase in phases:
            if phase.time.value > 0:
                q = phase.time
                label = q.name if q.name.startswith(name) or name in ("verify", "sync") else f"{name}: {q.name}"
                rows.append(row(Quantity(label, q.value, q.unit, q.formula, q.inputs), phase.bound))
    rows.append(row(plan.step, ""))
    out.append(("time of a step", ("part", "time", "bound by", "formula", *more), rows))
    travels = [row(q) for q in plan.travels if q.value > 0]
    if travels:
        out.append(("what travels in a step", ("what", "bytes", "formula", *more), travels))
    out.append(("in all", ("what", "value", "formula", *more), [row(q) for q in plan.totals]))
    if found.rivals:
        out.append(
            ("other divisions", ("devices", "step", "memory", "cost per step"), [_rival(p) for p in found.rivals])
        )
    return out


def head(found: Answer) -> list[str]:
    """Return the lines above the tables: what is planned, on what, and whether it fits."""
    plan, shapes, work = found.plan, found.plan.shapes, found.plan.work
    size = (
        f"{shapes.parameters / 1e9:,.3g} billion"
        if shapes.parameters >= 1e9
        else f"{shapes.parameters / 1e6:,.3g} million"
    )
    if shapes.expert_layers:
        size += f" ({shapes.active_parameters / 1e9:,.3g} billion active)"
    lines = [
        f"{shapes.name}: {size} parameters, {shapes.kv_bytes(work.size):,} bytes of keys and values per token",
        f"a step: {work.prompts:,} prompts x {work.group} responses, {short(work.prompt_tokens)} + "
        f"{short(work.lengths.mean)} tokens on average, at most {work.lengths.longest:,} sampled; engine {work.engine}",
        f"{plan.layout.devices:,} x {plan.device.name}: {plan.layout.words()}"
        + (f"; {plan.layout.age()}" if plan.layout.staleness else ""),
    ]
    if plan.fits:
        lines.append(f"estimate: {readable(plan.step.value, 's')} a step, {_cost(plan)}")
    else:
        lacking = readable(max(plan.peaks), "B")
        lines.append(
            f"it does NOT fit: {lacking} on a device of {readable(plan.device.memory, 'B')}, at best. "
            + (f"What would do: {'; or '.join(found.advice)}" if found.advice else "Take more or larger devices")
        )
    return lines


def to_json(found: Answer) -> dict[str, Any]:
    """Return everything as plain data; a series over decode steps is told by its ends."""
    plan = found.plan
    shapes = {**asdict(plan.shapes), "parameters": plan.shapes.parameters, "active": plan.shapes.active_parameters}
    return {
        "model": shapes,
        "device": asdict(plan.device),
        "layout": {**asdict(plan.layout), "devices": plan.layout.devices},
        "fits": plan.fits,
        "memory": {
            "trainer": [_plain(q) for q in plan.trainer],
            "engine": [_plain(q) for q in plan.engine],
            "peak": {"trainer": plan.peaks[0], "engine": plan.peaks[1], "device": plan.device.memory},
        },
        "time": {
            name: {
                "seconds": plan.seconds[name],
                "bound": plan.bounds.get(name),
                "parts": [_plain(p.time) for p in part],
            }
            for name, part in plan.phases.items()
        },
        "step": _plain(plan.step),
        "travels": [_plain(q) for q in plan.travels],
        "totals": [_plain(q) for q in plan.totals],
        "efficiency": asdict(plan.efficiency),
        "rivals": [
            {**asdict(p.layout), "fits": p.fits, "step": p.step.value, "peak": max(p.peaks)} for p in found.rivals
        ],
        "advice": found.advice,
        "notes": found.notes,
    }


def _plain(q: Quantity) -> dict[str, Any]:
    inputs = {
        k: {"first": float(v[0]), "last": float(v[-1]), "count": len(v)} if isinstance(v, np.ndarray) else float(v)
        for k, v in q.inputs.items()
    }
    return {"name": q.name, "value": q.value, "unit": q.unit, "formula": q.formula, "inputs": inputs}


def _cost(plan: Plan) -> str:
    steps, totals = plan.work.steps, {q.name: q for q in plan.totals}
    hours = totals["time of the run"].value / 3600
    words = f"{hours:,.1f} hours" if hours >= 1 else f"{hours * 60:,.1f} minutes"
    paid = f" and {readable(totals['cost of the run'].value, '$')}" if plan.device.price else ""
    return f"{words}{paid} for {steps:,} steps"


def _rival(plan: Plan) -> tuple[str, ...]:
    cost = next(q for q in plan.totals if q.name == "cost per step")
    old = f", {plan.layout.age()}" if plan.layout.staleness else ""
    step = readable(plan.step.value, "s") if plan.fits else "does not fit"
    return f"{plan.layout.words()}{old}", step, readable(max(plan.peaks), "B"), readable(cost.value, "$")
