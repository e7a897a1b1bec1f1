"""A number with its formula: what is shown is what was computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Number = float | np.ndarray

_FUNCTIONS: dict[str, Any] = {
    "max": lambda *x: _fold(np.maximum, x),
    "min": lambda *x: _fold(np.minimum, x),
    "sum": np.sum,
    "ceil": np.ceil,
    "log2": np.log2,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A named number and the arithmetic that gave it.

    Attributes:
        name: what it is.
        value: in ``unit``.
        unit: ``B``, ``s``, ``FLOP``, ``$`` or a word for a count.
        formula: arithmetic over ``inputs`` with ``max``, ``min``, ``sum``, ``ceil`` and ``log2``; a symbol may stand
            for one value per decode step, and ``sum`` is then over the steps.
        inputs: the symbols' values.
    """

    name: str
    value: float
    unit: str
    formula: str
    inputs: dict[str, Number] = field(default_factory=dict)

    def worked(self) -> str:
        """Return the formula's symbols with the numbers put in."""
        return ", ".join(f"{k} = {short(v)}" for k, v in self.inputs.items())


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a step: its seconds, and what bounds it."""

    time: Quantity
    bound: str


def quantity(name: str, unit: str, formula: str, **inputs: Number) -> Quantity:
    """Evaluate ``formula`` and return it with its value."""
    names = {k: v if isinstance(v, np.ndarray) else float(v) for k, v in inputs.items()}
    value = eval(compile(formula, "<formula>", "eval"), {"__builtins__": {}}, {**_FUNCTIONS, **names})
    return Quantity(name, float(value), unit, formula, inputs)


def short(value: Number) -> str:
    """A number as people read it: 3 significant digits, thousands with commas; a series by its ends."""
    if isinstance(value, np.ndarray):
        return f"[{short(float(value[0]))} ... {short(float(value[-1]))}]" if len(value) else "[]"
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.3g}"


def readable(value: float, unit: str) -> str:
    """A value with its unit, scaled: GiB, ms, PFLOP."""
    if unit == "B":
        for size, word in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if abs(value) >= size:
                return f"{value / size:.4g} {word}"
        return f"{value:.4g} B"
    if unit == "s":
        if value >= 7200:
            return f"{value / 3600:,.1f} h"
        if value >= 1:
            return f"{value:,.1f} s" if value >= 100 else f"{value:.3g} s"
        return f"{value * 1e3:.3g} ms" if value >= 1e-3 or value == 0 else f"{value * 1e6:.3g} µs"
    if unit == "FLOP":
        for scale, word in ((1e18, "EFLOP"), (1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP")):
            if abs(value) >= scale:
                return f"{value / scale:.4g} {word}"
        return f"{value:.4g} FLOP"
    if unit == "$":
        return f"${value:,.2f}" if value >= 0.01 or value == 0 else f"${value:.2g}"
    return f"{short(value)} {unit}".rstrip()


def _fold(function: Any, values: tuple[Number, ...]) -> Number:
    out = values[0]
    for value in values[1:]:
        out = function(out, value)
    return out
