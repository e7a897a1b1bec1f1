"""Values of Gymnasium's spaces as text: shown to a policy, and read from what it says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.errors import UsageError

LARGEST = 1024
"""Numbers of a value that are still shown as text."""


class Unread(ValueError):
    """What was said is no value of the space; the message says what is."""


def size(space: Any) -> int:
    """Return how many numbers or texts a value holds, at least.

    Raises:
        UsageError: its values have no text.
    """
    kind = _kind(space)
    if kind in ("Box", "MultiDiscrete", "MultiBinary"):
        return math.prod(space.shape)
    if kind == "Tuple":
        return sum(size(inner) for inner in space.spaces)
    if kind == "Dict":
        return sum(size(inner) for inner in space.spaces.values())
    if kind == "OneOf":
        return 1 + max(size(inner) for inner in space.spaces)
    if kind == "Sequence":
        if space.stack:
            raise UsageError("a stacked Sequence has no text here; wrap the environment")
        return size(space.feature_space)
    if kind in ("Discrete", "Text"):
        return 1
    raise UsageError(f"a {kind} has no text here; wrap the environment, or show it by a function of your own")


def plain(space: Any, value: Any, digits: int) -> Any:
    """Return a value as JSON has it, its numbers with so many significant digits."""
    kind = _kind(space)
    if kind == "Tuple":
        return [plain(inner, item, digits) for inner, item in zip(space.spaces, value, strict=True)]
    if kind == "Sequence":
        return [plain(space.feature_space, item, digits) for item in value]
    if kind == "Dict":
        return {key: plain(inner, value[key], digits) for key, inner in space.spaces.items()}
    if kind == "OneOf":
        return [int(value[0]), plain(space.spaces[int(value[0])], value[1], digits)]
    if kind == "Text":
        return str(value)
    return _rounded(np.asarray(value).tolist(), digits)


def shown(space: Any, value: Any, digits: int = 4) -> str:
    """Return a value as text: a text as it is, anything else as JSON."""
    made = plain(space, value, digits)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def described(space: Any, names: Sequence[str] = ()) -> str:
    """Return in words what a value of the space is."""
    kind = _kind(space)
    if kind == "Discrete":
        if names:
            return f"one of {', '.join(names)}"
        first, last = int(space.start), int(space.start) + int(space.n) - 1
        return f"a whole number from {first} to {last}"
    if kind == "Text":
        return f"a text of {space.min_length} to {space.max_length} characters"
    if kind in ("MultiDiscrete", "MultiBinary"):
        low = np.zeros(space.shape, int) if kind == "MultiBinary" else space.start
        high = np.ones(space.shape, int) if kind == "MultiBinary" else space.start + space.nvec - 1
        return f"{_many(space.shape, 'whole number')} {_within(low, high)}"
    if kind == "Box":
        number = "whole number" if np.issubdtype(space.dtype, np.integer) else "number"
        return f"{_many(space.shape, number)} {_within(space.low, space.high)}".strip()
    if kind == "Dict":
        inside = "; ".join(f"{json.dumps(key)}: {described(inner)}" for key, inner in space.spaces.items())
        return f"a JSON object of {inside}"
    if kind == "Sequence":
        return f"a JSON list, each of it {described(space.feature_space)}"
    parts = "; ".join(described(inner) for inner in space.spaces)
    if kind == "OneOf":
        return f"a JSON list of a place and a value, the value at place 0, 1, ... being: {parts}"
    return f"a JSON list of {parts}"


def read(space: Any, text: str, names: Sequence[str] = ()) -> Any:
    """Return the value of the space that a text says.

    A text of a ``Text`` is itself; a name, or a number, stands for a discrete action; anything else is JSON, where a
    list of numbers needs no brackets.

    Raises:
        Unread: it says none; the reason is for who said it.
    """
    if _kind(space) == "Text":
        return _value(space, text)
    if names:
        by_name = {name.casefold(): i for i, name in enumerate(names)}
        if text.casefold() not in by_name:
            raise Unread(f"{text[:60]!r} is not {described(space, names)}")
        return _value(space, int(space.start) + by_name[text.casefold()])
    return _value(space, _json(space, text))


def _json(space: Any, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    words = re.split(r"[\s,]+", text.strip(" ,"))
    try:
        numbers = [json.loads(word) for word in words]
    except ValueError:
        raise Unread(f"{text[:60]!r} is not {described(space)}") from None
    return numbers


def _value(space: Any, made: Any) -> Any:
    kind = _kind(space)
    value: Any = None
    if kind == "Discrete":
        value = made if isinstance(made, int) and not isinstance(made, bool) else None
    elif kind == "Text":
        value = made if isinstance(made, str) else None
    elif kind in ("Box", "MultiDiscrete", "MultiBinary"):
        value = _array(space, made)
    elif kind == "Dict":
        if isinstance(made, dict) and made.keys() == space.spaces.keys():
            value = {key: _value(inner, made[key]) for key, inner in space.spaces.items()}
    elif kind == "OneOf":
        if isinstance(made, list) and len(made) == 2 and isinstance(made[0], int) and 0 <= made[0] < len(space.spaces):
            value = (np.int64(made[0]), _value(space.spaces[made[0]], made[1]))
    elif isinstance(made, list):
        inner = [space.feature_space] * len(made) if kind == "Sequence" else space.spaces
        if len(made) == len(inner):
            value = tuple(_value(*pair) for pair in zip(inner, made, strict=True))
    if value is None or not space.contains(value):
        raise Unread(f"{json.dumps(made)[:60]} is not {described(space)}")
    return value


def _array(space: Any, made: Any) -> np.ndarray | None:
    """Return numbers in the shape and type of the space; ``None`` if they are none of its, bounds apart."""
    if space.shape == (1,) and not isinstance(made, list):
        made = [made]
    try:
        value = np.asarray(made)
    except ValueError:
        return None
    whole = np.issubdtype(space.dtype, np.integer)
    if value.shape != space.shape or not np.issubdtype(value.dtype, np.integer if whole else np.number):
        return None
    if whole and value.size and not np.can_cast(np.min_scalar_type(value.min()), np.int64):
        return None
    out = value.astype(space.dtype)
    # What is too large for the type is another number in it, or none.
    return out if np.isfinite(out).all() and (not whole or (out == value).all()) else None


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_rounded(item, digits) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else str(value)
    return value


def _many(shape: tuple[int, ...], what: str) -> str:
    if math.prod(shape) == 1 and len(shape) < 2:
        return f"a {what}"
    if len(shape) == 1:
        return f"{shape[0]} {what}s"
    return f"a JSON list in the shape {list(shape)} of {what}s"


def _within(low: Any, high: Any) -> str:
    """Return the bounds in words, one by one where they differ and are few."""
    low, high = np.atleast_1d(low).ravel(), np.atleast_1d(high).ravel()
    if (low == low[0]).all() and (high == high[0]).all():
        low, high = low[:1], high[:1]
    if len(low) > 8:
        return "within their bounds"
    said = [f"from {a:.4g} to {b:.4g}" if np.isfinite([a, b]).all() else "" for a, b in zip(low, high, strict=True)]
    return ", ".join(s or "of any size" for s in said) if any(said) else ""


def _kind(space: Any) -> str:
    """Return the name of the space's kind; of one that extends a kind, that kind's."""
    known = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Text", "Tuple", "Dict", "Sequence", "OneOf")
    names = [c.__name__ for c in type(space).__mro__ if c.__module__.startswith("gymnasium.spaces")]
    return next((name for name in names if name in known), type(space).__name__)
