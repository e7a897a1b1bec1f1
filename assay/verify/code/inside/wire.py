"""Two processes that call each other's functions over lines of JSON: the tests, and the program they test.

Values cross as copies of Python's own types, without behaviour: a subclass arrives as its base, so an ``__eq__`` of the
sender's never runs where values are compared. What is no plain data stays where it is and crosses as a *reference*.
Which references a side accepts and what may be done with them is the business of :mod:`apart` and :mod:`serving`.
"""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections import deque
from collections.abc import Callable
from typing import Any

ALIKE = 200
"""Keys of one dict or set that may have the same hash, each of which is compared with all the others."""
FURTHEST = 100_000
"""Exponent of a decimal number, either way."""
DEPTH = 100
"""Deepest nesting of a value."""
SMALL = 1 << 63
PLAIN: tuple[type, ...] = (int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
PLAIN_METHODS = frozenset(name for kind in PLAIN for name in dir(kind) if not name.startswith("_"))
NAMED: dict[str, Any] = {kind.__name__: kind for kind in (*PLAIN, bool, bytearray, object, type(None), range)}
VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}


class Short(reprlib.Repr):
    """``repr`` for messages, which takes little time and room whatever the value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 120
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 12

    def repr_int(self, value: int, level: int) -> str:
        # Python refuses to write long ones, and takes long over those it does.
        bits = int(value).bit_length()
        return super().repr_int(value, level) if bits < 10_000 else f"<an integer of {bits} bits>"


SHORT = Short()


class WireError(Exception):
    """The line is no message, or the value cannot cross."""


class Ended(BaseException):
    """The other process is gone. Not an Exception, so that a test that expects one is not content with it."""


class Wire:
    """One end of the conversation.

    Args:
        reader, writer: descriptors.
        mark: what every line of ours starts with.
        refer: makes the reference of a value that is no plain data, or raises.
        resolve: gives the object that a reference stands for, or raises.
        answer: does what a request asks and returns the reply.
    """

    def __init__(
        self,
        reader: int,
        writer: int,
        mark: bytes,
        refer: Callable[[Any], Any],
        resolve: Callable[[Any], Any],
        answer: Callable[[dict[str, Any]], dict[str, Any]],
    ):
        self._lines, self._writer, self._mark = os.fdopen(reader, "rb"), writer, mark
        self._refer, self._resolve, self._answer = refer, resolve, answer

    def send(self, message: Any) -> None:
        data = self._mark + json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
        data += b"\n"
        while data:
            data = data[os.write(self._writer, data) :]

    def receive(self) -> dict[str, Any] | None:
        """Return the next message; ``None`` at the end; raise WireError for a line that is none."""
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise WireError("a line that is no message") from None
        if not isinstance(message, dict):
            raise WireError("a line that is no message")
        return message

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send ``request`` and return the reply, answering what the other side asks meanwhile."""
        self.send(request)
        while True:
            message = self.receive()
            if message is None or "dead" in message:
                raise Ended
            if "do" not in message:
                return message
            self.send(self._answer(message))

    def encode(self, value: Any, depth: int = DEPTH) -> Any:
        """Return what JSON holds of ``value``; raise what ``refer`` raises for values that may not cross."""
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
            raise WireError(f"a value nested deeper than {DEPTH}")
        depth -= 1
        if kind is list:
            return [self.encode(item, depth) for item in value]
        if kind is dict:
            return {"d": [[self.encode(k, depth), self.encode(v, depth)] for k, v in value.items()]}
        for tag, base in (("t", tuple), ("s", set), ("z", frozenset), ("q", deque)):
            if kind is base:
                return {tag: [self.encode(item, depth) for item in value]}
        if kind is bytes or kind is bytearray:
            return {"b" if kind is bytes else "y": value.hex()}
        if kind is complex:
            return {"c": [repr(value.real), repr(value.imag)]}
        if kind is range:
            return {"range": [hex(value.start), hex(value.stop), hex(value.step)]}
        if kind in VIEWS:
            return {"view": [VIEWS[kind], [self.encode(item, depth) for item in value]]}
        if kind is slice:
            return {"slice": [self.encode(end, depth) for end in (value.start, value.stop, value.step)]}
        name = value.__name__ if isinstance(value, type) else ""
        if name and NAMED.get(name) is value:
            return {"type": name}
        return self._other(value, depth)

    def _other(self, value: Any, depth: int) -> Any:
        kind: Any = type(value)
        module = kind.__module__
        if module == "fractions" and kind.__name__ == "Fraction":
            return {"q/": [hex(value.numerator), hex(value.denominator)]}
        if module in ("decimal", "_decimal", "_pydecimal") and kind.__name__ == "Decimal":
            return {"decimal": str(value)}
        if module == "datetime" and kind.__name__ in ("date", "datetime", "time"):
            if getattr(value, "tzinfo", None) is None:
                return {kind.__name__: value.isoformat()}
        elif module == "datetime" and kind.__name__ == "timedelta":
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        if module.partition(".")[0] == "numpy":
            if kind.__name__ == "ndarray" and value.dtype.kind in "biufcSU":
                return {"array": [value.dtype.str, self.encode(value.tolist(), depth)]}
            if hasattr(kind, "item") and hasattr(kind, "dtype"):
                return self.encode(value.item(), depth)
        fields = getattr(kind, "_fields", None)
        if isinstance(value, tuple) and type(fields) is tuple:
            return {"named": [kind.__name__, list(map(str, fields)), [self.encode(v, depth) for v in tuple(value)]]}
        return self._refer(value)

    def plain(self, value: Any, depth: int = DEPTH) -> Any:
        """Encode an instance of a subclass of a plain type as its base; raise WireError if it is none."""
        for base in (*PLAIN, bytearray):
            if isinstance(value, base):
                try:
                    made = str.__str__(value) if base is str else base(value)
                except Exception as error:
                    raise WireError(f"a {type(value).__name__} that cannot be read: {error}") from None
                if type(made) is base:
                    return self.encode(made, depth - 1)
        raise WireError(f"a {type(value).__name__}, which is no plain data")

    def decode(self, value: Any) -> Any:
        """Return the value that ``value`` encodes; raise WireError for anything :meth:`encode` does not make."""
        try:
            return self._decode(value, DEPTH + 2)
        except WireError:
            raise
        except Exception as error:
            raise WireError(f"a value that cannot be read: {type(error).__name__}") from None

    def _decode(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | str | int | float):
            return value
        if depth <= 0:
            raise WireError(f"a value nested deeper than {DEPTH}")
        depth -= 1
        if isinstance(value, list):
            return [self._decode(item, depth) for item in value]
        [(tag, body)] = value.items()
        if tag == "d":
            keys = _spread([self._decode(k, depth) for k, _ in body])
            return {key: self._decode(v, depth) for key, (_, v) in zip(keys, body, strict=True)}
        if tag in ("t", "s", "z", "q"):
            base: Any = {"t": tuple, "s": set, "z": frozenset, "q": deque}[tag]
            items = [self._decode(item, depth) for item in body]
            return base(_spread(items) if tag in "sz" else items)
        if tag == "i":
            return int(body, 16)
        if tag == "f":
            return float(body)
        if tag in ("b", "y"):
            return bytes.fromhex(body) if tag == "b" else bytearray.fromhex(body)
        if tag == "c":
            return complex(float(body[0]), float(body[1]))
        if tag == "range":
            return range(*(int(number, 16) for number in body))
        if tag == "slice":
            return slice(*[self._decode(end, depth) for end in body])
        if tag == "type":
            return NAMED[body]
        if tag == "view":
            items = [self._decode(item, depth) for item in body[1]]
            if body[0] == "items":
                _spread([key for key, _ in items])
                return dict(items).items()
            return dict.fromkeys(_spread(items)).keys() if body[0] == "keys" else dict(enumerate(items)).values()
        return self._rare(tag, body, depth)

    def _rare(self, tag: str, body: Any, depth: int) -> Any:
        if tag == "q/":
            from fractions import Fraction

            return Fraction(int(body[0], 16), int(body[1], 16))
        if tag == "decimal":
            from decimal import Decimal

            number = Decimal(body)
            if number.is_finite() and number and abs(number.adjusted()) > FURTHEST:
                # As an integer it would take minutes and all memory.
                raise WireError(f"a number beyond ten to the {FURTHEST}")
            return number
        if tag in ("date", "datetime", "time", "timedelta"):
            import datetime

            kind: Any = getattr(datetime, tag)
            return kind(*body) if tag == "timedelta" else kind.fromisoformat(body)
        if tag == "array":
            import numpy as np

            return np.array(self._decode(body[1], depth), dtype=np.dtype(str(body[0])))
        if tag == "named":
            from collections import namedtuple

            items = [self._decode(item, depth) for item in body[2]]
            if any(name in PLAIN_METHODS and callable(item) for name, item in zip(body[1], items, strict=True)):
                # value.startswith("x") would be the sender's to answer.
                raise WireError("a named tuple with a method of plain data for a field")
            return namedtuple(body[0], body[1])(*items)
        return self._resolve({tag: body})


def _spread(keys: list[Any]) -> list[Any]:
    """Return ``keys``, unless they were chosen to have one hash; numbers are alike by chance far more rarely."""
    seen: dict[int, int] = {}
    for key in keys:
        number = hash(key)
        seen[number] = seen.get(number, 0) + 1
        if seen[number] > ALIKE:
            raise WireError(f"more than {ALIKE} keys have one hash")
    return keys
