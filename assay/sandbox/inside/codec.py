"""Plain Python values as JSON text, both ways, without behaviour.

``None``, ``bool``, ``str``, ``list``, finite ``float`` and small ``int`` are themselves; anything else is an object
with one key, the tag. Nothing is looked up by name and no class of the sender exists for the receiver, so a decoded
value compares, hashes and prints as Python's own types do. Runs on both sides of the wall: standard library only.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

DEPTH = 100
"""Deepest nesting either side accepts."""
SMALL = 1 << 63
ALIKE = 200
"""Keys of one dict or set that may have the same hash; numbers are alike by chance far more rarely."""
ARRAY_TYPES = frozenset(
    ["?", "|b1", "|i1", "|u1"]
    + [f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)]
    + ["<f2", "<f4", "<f8", "<c8", "<c16"]
)


class CodecError(ValueError):
    """The value is no plain data, or the text does not encode one."""


def dumps(value: Any) -> str:
    """Return ``value`` as text; subclasses of the plain types become their base type. Raise CodecError."""
    try:
        return json.dumps(_encode(value, DEPTH), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (RecursionError, ValueError, TypeError) as error:
        raise CodecError(str(error)) from None


def loads(text: str | bytes) -> Any:
    """Return the value that ``text`` encodes; raise CodecError for anything :func:`dumps` could not have written."""
    try:
        return decode(json.loads(text, parse_constant=_refuse))
    except CodecError:
        raise
    except (RecursionError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise CodecError(f"not an encoded value: {type(error).__name__}") from None


def decode(value: Any) -> Any:
    """Return the value that parsed JSON encodes; raise as :func:`loads`."""
    try:
        return _decode(value, DEPTH)
    except CodecError:
        raise
    except (RecursionError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise CodecError(f"not an encoded value: {type(error).__name__}") from None


def _refuse(word: str) -> Any:
    raise CodecError(f"{word} must be tagged")


def _encode(value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return value
    if kind is int:
        return value if -SMALL < value < SMALL else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if depth <= 0:
        raise CodecError(f"nested deeper than {DEPTH}")
    depth -= 1
    if kind is list:
        return [_encode(item, depth) for item in value]
    if kind is tuple:
        return {"t": [_encode(item, depth) for item in value]}
    if kind is dict:
        return {"d": [[_encode(key, depth), _encode(item, depth)] for key, item in value.items()]}
    if kind is set:
        return {"s": [_encode(item, depth) for item in value]}
    if kind is frozenset:
        return {"z": [_encode(item, depth) for item in value]}
    if kind is bytes or kind is bytearray:
        return {"b": base64.b64encode(value).decode("ascii")}
    if kind is complex:
        return {"c": [value.real.hex(), value.imag.hex()]}
    return _encode_other(value, depth)


def _encode_other(value: Any, depth: int) -> Any:
    if kind_of(value) == "array":
        array = value
        name = array.dtype.newbyteorder("<").str
        if name not in ARRAY_TYPES:
            raise CodecError(f"an array of {array.dtype} is no plain data")
        data = array.astype(name, order="C").tobytes()
        return {"a": [name, list(array.shape), base64.b64encode(data).decode("ascii")]}
    if kind_of(value) == "scalar":
        return _encode(value.item(), depth)
    # A subclass is sent as its base: a namedtuple as a tuple, a Counter as a dict.
    if isinstance(value, str):
        return str.__str__(value)
    bases: tuple[Callable[[Any], Any], ...] = (int, float, complex, bytes, list, tuple, dict, set, frozenset)
    for base in bases:
        if isinstance(value, base):  # type: ignore[arg-type]
            plain = base(value)
            if type(plain) is base:
                return _encode(plain, depth)
    if type(value).__name__ == "deque":
        return _encode(list(value), depth)
    if isinstance(value, range) or type(value).__name__ in ("dict_keys", "dict_values", "dict_items"):
        return _encode(list(value), depth)
    raise CodecError(f"a {type(value).__name__} is no plain data")


def kind_of(value: Any) -> str:
    """Say whether ``value`` is a NumPy ``array`` or ``scalar``, without importing NumPy."""
    for base in type(value).__mro__:
        if base.__module__ == "numpy":
            if base.__name__ == "ndarray":
                return "array"
            if base.__name__ == "generic":
                return "scalar"
    return ""


def _decode(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str, int, float)):
        return value
    if depth <= 0:
        raise CodecError(f"nested deeper than {DEPTH}")
    depth -= 1
    if isinstance(value, list):
        return [_decode(item, depth) for item in value]
    if len(value) != 1:
        raise CodecError("an object must have one key")
    [(tag, body)] = value.items()
    if tag == "i" and isinstance(body, str):
        # Base 16 is read in linear time, and digits alone: no spaces, underscores or other alphabets.
        digits = body.removeprefix("-")
        if digits.startswith("0x") and digits[2:].isascii() and digits[2:].isalnum():
            return int(body, 16)
    elif tag == "f" and body in ("inf", "-inf", "nan"):
        return float(body)
    elif tag == "b" and isinstance(body, str):
        return base64.b64decode(body, validate=True)
    elif tag == "c" and isinstance(body, list) and len(body) == 2:
        return complex(float.fromhex(body[0]), float.fromhex(body[1]))
    elif tag in ("t", "s", "z") and isinstance(body, list):
        items = [_decode(item, depth) for item in body]
        if tag == "t":
            return tuple(items)
        _spread(items)
        return set(items) if tag == "s" else frozenset(items)
    elif tag == "d" and isinstance(body, list):
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in body):
            raise CodecError("a dict is a list of pairs")
        keys = [_decode(key, depth) for key, _ in body]
        _spread(keys)
        return {key: _decode(item, depth) for key, (_, item) in zip(keys, body, strict=True)}
    elif tag == "a" and isinstance(body, list) and len(body) == 3:
        return _array(*body)
    raise CodecError(f"no value has the tag {tag!r}")


def _spread(keys: list[Any]) -> None:
    """Refuse keys chosen to have one hash, each of which would be compared with all the others."""
    seen: dict[int, int] = {}
    for key in keys:
        number = hash(key)
        seen[number] = seen.get(number, 0) + 1
        if seen[number] > ALIKE:
            raise CodecError(f"more than {ALIKE} keys have one hash")


def _array(name: Any, shape: Any, data: Any) -> Any:
    import numpy as np

    if name not in ARRAY_TYPES or not isinstance(data, str) or not isinstance(shape, list) or len(shape) > 32:
        raise CodecError("not an array")
    if not all(type(side) is int and side >= 0 for side in shape):
        raise CodecError("not an array's shape")
    raw = base64.b64decode(data, validate=True)
    if math.prod(shape) * np.dtype(name).itemsize != len(raw):
        raise CodecError("an array's shape and data differ")
    if name in ("?", "|b1") and raw.translate(None, b"\0\1"):
        raise CodecError("an array's truth values are neither 0 nor 1")
    return np.frombuffer(raw, dtype=name).reshape(shape).copy()
