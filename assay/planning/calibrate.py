"""Fits what phases reach of a device's peaks to finished runs on it.

Every step of a run tells its seconds of generation and of update, and its rollouts the length of each response. The
parts of the model of :mod:`assay.planning.generation` and :mod:`assay.planning.learning` are computed for these very
lengths with the shares assumed so far; each part gets the factor, 0 or more, that explains the measured seconds best
(least squares of relative errors). The factors are drawn weakly towards 1, so that what the runs do not tell apart
stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.config import RunConfig, load_config
from assay.errors import UsageError
from assay.planning import efficiency as efficiencies
from assay.planning.devices import Device
from assay.planning.efficiency import Efficiency
from assay.planning.generation import SAMPLING_PASSES, generate
from assay.planning.layout import Layout
from assay.planning.learning import update
from assay.planning.lengths import Lengths
from assay.planning.memory import layer_bytes, rows_at_once
from assay.planning.models import shapes_of
from assay.planning.shapes import Shapes
from assay.planning.workload import SIZES, Workload, mean_prompt
from assay.records.checkpoints import check_run

PULL = 0.03
"""Weight of the pull towards the assumed factors: a step counts 1."""
ALONE = Layout(1, 1, colocated=True)
PARTS = {
    "generate": ("prefill", "decode", "launch", "touch", "row"),
    "update": ("update", "update_launch", "update_touch", "update_row"),
}
"""The parts that each measured time is made of, by what they depend on in :class:`Efficiency`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A phase of a run's typical step.

    Attributes:
        run: its folder.
        phase: ``generate`` or ``update``.
        seconds: of the median step.
        parts: seconds of each part by the efficiencies assumed so far, mean over steps.
        rows: steps x parts, and their measured seconds.
    """

    run: str
    phase: str
    seconds: float
    parts: Float[np.ndarray, "steps parts"]
    measured: Float[np.ndarray, "steps"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was fitted, and how far it explains the runs it was fitted to."""

    efficiency: Efficiency
    fits: list[tuple[Measured, float]]

    def plain(self) -> dict[str, Any]:
        rows = [
            {"run": m.run, "phase": m.phase, "measured": m.seconds, "fitted": f, "ratio": f / m.seconds}
            for m, f in self.fits
        ]
        return {"efficiency": asdict(self.efficiency), "fits": rows}


def calibrate(runs: Sequence[Path], device: Device) -> Calibration:
    """Return the efficiencies that explain the runs best.

    Args:
        runs: folders of runs of one process with the ``hf`` engine on ``device``, with stored rollouts.
        device: its peaks.

    Raises:
        UsageError: a folder is no such run, or has no finished RL step with its rollouts.
    """
    start = replace(
        efficiencies.assumed(device.name, "hf"), touch=efficiencies.TOUCH, update_touch=efficiencies.UPDATE_TOUCH
    )
    found = [m for run in runs for m in measure(run, device, start)]
    factors: dict[str, float] = {}
    for phase, names in PARTS.items():
        mine = [m for m in found if m.phase == phase]
        factors |= dict(zip(names, fitted(mine), strict=True))
    shares = {k: getattr(start, k) / factors[k] for k in ("prefill", "decode", "update") if factors[k] > 0}
    seconds = {k: getattr(start, k) * factors[k] for k in ("launch", "row", "update_launch", "update_row")}
    # The roofline's two sides are not told apart by runs that are on one of them.
    shares["bandwidth"] = start.bandwidth / factors["decode"] if factors["decode"] > 0 else start.bandwidth
    slower = shares["bandwidth"] / start.bandwidth
    seconds |= {k: getattr(start, k) * factors[k] * slower for k in ("touch", "update_touch")}
    found_efficiency = replace(start, **shares, **seconds, source=f"fitted to {', '.join(map(str, runs))}")
    fits = []
    for m in found:
        weights = np.array([factors[k] for k in PARTS[m.phase]])
        fits.append((m, float(np.median(m.parts @ weights))))
    return Calibration(found_efficiency, fits)


def fitted(measured: Sequence[Measured]) -> Float[np.ndarray, "parts"]:
    """Return the parts' factors: least squares of relative errors, each run with the same weight."""
    from scipy.optimize import nnls

    rows, ones = [], []
    for m in measured:
        share = 1 / np.sqrt(len(m.measured))
        rows.append(share * m.parts / m.measured[:, None])
        ones.append(np.full(len(m.measured), share))
    count = measured[0].parts.shape[1]
    rows.append(PULL * np.eye(count))
    ones.append(np.full(count, PULL))
    return nnls(np.concatenate(rows), np.concatenate(ones))[0]


def report(found: Calibration) -> list[tuple[str, ...]]:
    """Return a row per run and phase: measured and fitted seconds of the median step, and their ratio."""
    return [(m.run, m.phase, f"{m.seconds:.4f} s", f"{f:.4f} s", f"{f / m.seconds:.2f}") for m, f in found.fits]


def measure(run: Path, device: Device, e: Efficiency) -> list[Measured]:
    """Return a run's generation and update, step by step, with what the model says of each part.

    The first step is left out: it pays for what later ones find ready.

    Raises:
        UsageError: see :func:`calibrate`.
    """
    check_run(run)
    config = load_config(run / "config.toml")
    if config.engine.name != "hf" or config.scale.trainers > 1 or config.scale.engines:
        raise UsageError(f"{run}: only runs of one process with the hf engine can be calibrated on")
    shapes, prompt = shapes_of(config.model), mean_prompt(config)
    steps = [s for s in _steps(run) if s[0] > 1] or _steps(run)
    if not steps:
        raise UsageError(f"{run} has no finished RL step with its rollouts; a run with run.rollouts_every=1 has")
    out = []
    for phase in PARTS:
        parts, seconds = [], []
        for _, metrics, lengths in steps:
            if f"time/{phase}" not in metrics:
                continue
            work = workload(config, prompt, lengths)
            make = {"generate": _generation, "update": _update}[phase]
            parts.append(make(shapes, work, lengths, device, e))
            seconds.append(metrics[f"time/{phase}"])
        if not seconds:
            raise UsageError(f"{run} tells no time/{phase}, so it cannot be calibrated on")
        out.append(Measured(str(run), phase, float(np.median(seconds)), np.array(parts), np.array(seconds)))
    return out


def workload(config: RunConfig, prompt: float, lengths: Float[np.ndarray, "N"]) -> Workload:
    """Return the work of a step whose responses had these lengths."""
    size = SIZES[config.model.dtype]
    groups = max(1, round(len(lengths) / config.rollout.group))
    return Workload(
        prompts=groups,
        group=max(1, len(lengths) // groups),
        prompt_tokens=prompt,
        lengths=Lengths(float(lengths.mean()), int(lengths.max())),
        token_budget=config.train.token_budget,
        epochs=config.train.epochs,
        mini_batches=config.train.mini_batches,
        size=size,
        optimizer=config.train.optimizer,
        lora=config.model.lora,
        quantised=config.model.quantise is not None,
        checkpointing=config.model.gradient_checkpointing,
        engine="hf",
        max_rows=config.rollout.max_rows,
        steps=config.train.steps,
    )


def _generation(
    shapes: Shapes, work: Workload, lengths: Float[np.ndarray, "N"], device: Device, e: Efficiency
) -> list[float]:
    """Return seconds of prefill, decode roofline, launches and responses, decoded as these lengths say."""
    phases = {p.time.name: p.time.value for p in generate(shapes, work, ALONE, device, e)}
    waves = np.array_split(lengths, int(np.ceil(len(lengths) / rows_at_once(shapes, work, ALONE, device))))
    roofline = launches = moved = 0.0
    speed, each = device.bandwidth * e.bandwidth, layer_bytes(shapes, work.size)
    for wave in waves:
        at = np.arange(int(wave.max()))
        rows = (wave[:, None] > at).sum(0)
        context = work.prompt_tokens + at
        compute = rows * (2 * (shapes.body + shapes.head) + shapes.score_flops * context) / (device.flops * e.decode)
        reading = shapes.touched(rows) * work.size + rows * (
            shapes.kv_bytes(work.size) * context + 4 * SAMPLING_PASSES * shapes.vocabulary
        )
        roofline += float(np.maximum(compute, reading / speed).sum())
        moved += float(rows.sum()) * shapes.layers * each * e.touch / speed
        launches += len(at) * shapes.layers * e.launch
    return [phases["prefill"], roofline, launches, moved, phases["responses"]]


def _update(
    shapes: Shapes, work: Workload, lengths: Float[np.ndarray, "N"], device: Device, e: Efficiency
) -> list[float]:
    """Return seconds of the passes with the optimiser's step, of launches, and of responses."""
    phases = {p.time.name: p.time for p in update(shapes, work, ALONE, device, e)}
    passes = phases["passes"].value
    x = phases["passes"].inputs
    launches = float(x["epochs"] * x["micro_batches"] * x["layers"] * x["launch"])
    moved = work.epochs * work.packed_tokens * shapes.layers * layer_bytes(shapes, work.size) * e.update_touch
    moved /= device.bandwidth * e.bandwidth
    return [passes - launches - moved + phases["optimiser"].value, launches, moved, phases["records"].value]


def _steps(run: Path) -> list[tuple[int, dict[str, float], Float[np.ndarray, "N"]]]:
    """Return the RL steps of a run with their metrics and response lengths, of those whose rollouts are stored."""
    import json

    import pyarrow.parquet as pq

    out = []
    log = run / "metrics.jsonl"
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:  # the last line of a run that was killed
            continue
        file = run / "rollouts" / f"step-{row.get('step', 0):06d}.parquet"
        if row.get("stage") == "rl" and file.is_file():
            lengths = np.array(pq.read_table(file, columns=["length"])["length"].to_pylist(), dtype=float)
            if len(lengths) and lengths.max() >= 1:
                out.append((row["step"], row, np.maximum(lengths, 1)))
    return out
