"""What a program raises, as exceptions that tests can expect."""

from __future__ import annotations

import builtins
import types
from typing import Any

from assay.verify.code.inside.wire import Wire

RAISED = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type)
    and (issubclass(kind, Exception) or kind is SystemExit)
    # These would end a loop of the tests' as if all were well.
    and not issubclass(kind, StopIteration | StopAsyncIteration)
}


class Raised(Exception):
    """The program raised what no program may raise into its tests."""


class Exceptions:
    """The exception classes of one process of a program, each derived from Python's own as it is there.

    Attributes:
        classes: by the number of the class in the program's process.
    """

    def __init__(self, wire: Wire):
        self.wire = wire
        self.classes: dict[int, type[BaseException]] = {}

    def made(self, made: Any) -> BaseException:
        """Return the exception that stands for the program's."""
        try:
            kind = self.of(made["chain"])
            text = str(made["text"])
            try:
                error = kind(*self.wire.decode(made["args"]))
            except Exception:
                error = kind.__new__(kind, text)
            for name, value in dict(made.get("fields", {})).items():
                if not name.startswith("__") and not hasattr(BaseException, name):
                    setattr(error, name, self.wire.decode(value))
            return error
        except Exception:
            return Raised("something that is no exception")

    def of(self, chain: Any) -> type[BaseException]:
        [number, name], *rest = chain
        if not number:
            return RAISED.get(name, Raised)
        if number not in self.classes:
            base = self.of(rest)
            self.classes[number] = types.new_class(str(name), (base,))
        return self.classes[number]
