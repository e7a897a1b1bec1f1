"""Words that are values: all real numbers, no solution, infinity."""

from __future__ import annotations

import functools

from assay.verify.math import tables
from assay.verify.math.expressions.realset import REALS
from assay.verify.math.expressions.values import RealSet, Text, Value

_VALUES: dict[str, Value] = {
    "reals": REALS, "empty": RealSet(()), "infinity": Text("∞"), "minus_infinity": Text("-∞"),
    "infinitely_many": Text("infinitely many"), "undefined": Text("undefined"),
}  # fmt: skip


def known(text: str) -> Value | None:
    """Return the value that the whole of ``text`` is called, ``None`` if it is no such name."""
    return _table().get(text.casefold().removeprefix("the ").replace(" ", ""))


@functools.cache
def _table() -> dict[str, Value]:
    names = tables.load("known_values")
    return {"".join(name.split()).casefold(): v for key, v in _VALUES.items() for name in names[key].split(",")}
