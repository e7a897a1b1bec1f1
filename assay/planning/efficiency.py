"""Which share of a device's peaks a phase reaches, and what it costs beside: assumed, or fitted to finished runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from assay.errors import RunError, UsageError


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What is reached of the peaks.

    Attributes:
        prefill: share of peak FLOP/s in forward passes over many tokens (prompts, references).
        decode: share of peak FLOP/s in a decode step that computing bounds.
        bandwidth: share of the memory's bandwidth in a decode step that reading bounds, and in the optimiser's step.
        update: share of peak FLOP/s in the forward and backward pass.
        link: share of the bandwidth of links and network.
        launch: seconds per layer and decode step that neither computing nor reading explains.
        row: seconds per response of generation outside the model (text, records).
        update_launch: seconds per layer and micro-batch that computing does not explain.
        update_row: seconds per response of an update outside the model.
        touch, update_touch: how often each number that a layer makes of a token passes through memory, in a decode step
            and in an update, where the shares of peak do not stand for that too.
        latency: seconds per doubling of ranks of one collective operation.
        source: where the numbers are from.
    """

    prefill: float = 0.5
    decode: float = 0.4
    bandwidth: float = 0.7
    update: float = 0.4
    link: float = 0.7
    launch: float = 10e-6
    row: float = 100e-6
    update_launch: float = 300e-6
    update_row: float = 100e-6
    latency: float = 10e-6
    touch: float = 0.0
    update_touch: float = 0.0
    source: str = "assumed"


TOUCH, UPDATE_TOUCH = 2.0, 6.0
"""Where matrices are narrow, as on a CPU they are, what is done to each number takes as long as their products."""


def assumed(device: str, engine: str) -> Efficiency:
    """Return defaults that nobody measured here for ``device``.

    Dense training on H100s and A100s is reported at 0.35 to 0.55 of peak, forward passes a little above; decoding at
    0.6 to 0.8 of the memory's bandwidth. An engine that launches each kernel from Python (``hf``) takes some 150
    microseconds per layer and step whatever it computes; one with recorded graphs (``vllm``) some 10.
    """
    if device == "cpu":
        return Efficiency(
            prefill=0.6,
            decode=0.4,
            bandwidth=0.5,
            update=0.5,
            launch=250e-6,
            update_launch=1e-3,
            touch=TOUCH,
            update_touch=UPDATE_TOUCH,
        )
    return Efficiency(launch=150e-6 if engine == "hf" else 10e-6)


def load(file: Path, device: str) -> Efficiency:
    """Read what :func:`save` wrote.

    Raises:
        UsageError: there is no such file, it is of another device, or no record of efficiencies.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        of, values = data.pop("device"), data
    except FileNotFoundError:
        raise UsageError(f"no efficiencies {file}; make them with: assay plan --calibrate RUN --out {file}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no record of efficiencies: {error}") from None
    if of != device:
        raise UsageError(f"{file} holds the efficiencies of {of}, not of {device}; calibrate on runs there")
    names = {f.name for f in fields(Efficiency)}
    if set(values) != names or any(
        isinstance(v, bool) or not isinstance(v, (int, float)) or v < 0 for k, v in values.items() if k != "source"
    ):
        raise UsageError(f"{file} is no record of efficiencies: it should hold {', '.join(sorted(names))}")
    return Efficiency(**values)


def save(file: Path, device: str, found: Efficiency) -> None:
    """Write efficiencies as JSON."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"device": device, **asdict(found)}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"could not write {file}: {error.strerror or error}") from None
