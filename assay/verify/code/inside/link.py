"""The tests' end of the conversation with a program: its names as stand-ins, its exceptions as exceptions."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable
from typing import Any

from assay.verify.code.inside.raised import Exceptions
from assay.verify.code.inside.remote import (
    Remote,
    RemoteFunction,
    RemoteIterator,
    RemoteObject,
    RemoteType,
    Unsupported,
    coroutine_function,
    remote_type,
)
from assay.verify.code.inside.wire import Ended, Wire, WireError


class Link:
    """Starts the program when first needed and again when told to; forwards what stand-ins are asked.

    Args:
        reader, writer: descriptors.
        classes: names of the program's that the tests construct objects of; only if there are any may objects of its
            own classes come back.
        in_place: lines of the tests whose calls are made for what they do to their arguments.
        file: name of the tests' code.
    """

    def __init__(
        self, reader: int, writer: int, classes: frozenset[str], in_place: frozenset[int] = frozenset(), file: str = ""
    ):
        self.wire = Wire(reader, writer, b">", self.refer, self.resolve, self.answer)
        self.classes, self.in_place, self.file = classes, in_place, file
        self.objects = bool(classes)
        self.dead = True
        self.deaths = 0
        self.last = self.problem = ""
        self.exports: dict[str, Any] = {}
        self.kept: list[Any] = []
        self.stand_ins: dict[int, Any] = {}
        self.errors = Exceptions(self.wire)
        self._short = reprlib.Repr()
        self._short.maxstring = self._short.maxother = 120
        self._short.maxlist = self._short.maxtuple = self._short.maxset = self._short.maxdict = 12

    def start(self) -> None:
        """Have a new process of the program; ``problem`` says how it failed to load, if it did."""
        self.stand_ins, self.exports, self.dead, self.last = {}, {}, False, ""
        self.errors = Exceptions(self.wire)
        self.tell({"start": 1})
        reply = self.ask({"do": "exports"})
        try:
            [problem, exports] = reply["v"]
            self.problem = str(problem)
            for name, value in exports:
                self._export(str(name), value)
        except (KeyError, ValueError, TypeError) as error:
            self.problem = f"the program's names cannot be read: {error}"

    def _export(self, name: str, encoded: Any) -> None:
        try:
            value = self.wire.decode(encoded)
        except WireError:
            return
        if isinstance(value, RemoteType):
            type.__setattr__(value, "_constructs", name in self.classes)
            type.__setattr__(value, "_open", True)
        elif isinstance(value, RemoteFunction):
            object.__setattr__(value, "_constructed", True)
        self.exports[name] = value

    def tell(self, message: dict[str, Any]) -> None:
        """Tell the host, not the program."""
        mark, self.wire._mark = self.wire._mark, b"!"
        try:
            self.wire.send(message)
        finally:
            self.wire._mark = mark

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.dead:
            raise Ended("the program is no longer running")
        try:
            reply = self.wire.ask(request)
        except Ended:
            self.dead = True
            self.deaths += 1
            raise Ended("the program ended") from None
        if isinstance(reply.get("o"), str):
            sys.stdout.write(reply["o"])
        return reply

    def value(self, request: dict[str, Any]) -> Any:
        """Return the value of the reply, or raise the program's exception."""
        reply = self.ask(request)
        if "e" in reply:
            raise self.errors.made(reply["e"])
        return self._value(reply)

    def _value(self, reply: dict[str, Any]) -> Any:
        if "v" not in reply:
            raise WireError("a line that is no reply")
        return self.wire.decode(reply["v"])

    # --- what stand-ins ask -------------------------------------------------------------------------------------------

    def call(self, target: Any, name: str, args: Any, kwargs: Any, new: bool = False, waits: bool = False) -> Any:
        request = {"do": "new" if new else "call", "to": target._number, "name": name}
        request |= {"args": self.wire.encode(list(args)), "kwargs": self.wire.encode(kwargs)}
        changing = [i for i, a in enumerate(args) if type(a) in (list, dict, set, bytearray)]
        # Arguments are copies there. What a call does to them is seen here only where the tests call for its sake.
        request["m"] = int(bool(changing and self.in_place and self._in_place()))
        shown = ", ".join([*map(self.show, args), *(f"{k}={self.show(v)}" for k, v in kwargs.items())])
        self.last = f"{target._name}{'.' + name if name else ''}({shown})"
        call = self.last
        try:
            if waits:
                return RemoteIterator(self, self.ask(request)["v"]["ref"][1], target._name)
            reply = self.ask(request)
            if "e" in reply:
                raise self.errors.made(reply["e"])
            value = self._value(reply)
        except Ended:
            raise
        except BaseException as error:
            self.last = f"{call} raised {type(error).__name__}: {error}"
            raise
        if new and issubclass(type(value), RemoteObject):
            object.__setattr__(value, "_constructed", True)
        self.last = f"{call} gave {self.show(value)}"
        if request["m"]:
            self._restore(args, changing, self.wire.decode(reply["m"]))
        return value

    def get(self, target: Any, name: str) -> Any:
        return self.value({"do": "get", "to": target._number, "name": name})

    def set(self, target: Any, name: str, value: Any) -> None:
        self.value({"do": "set", "to": target._number, "name": name, "value": self.wire.encode(value)})

    def next(self, target: Any) -> Any:
        more = self.value({"do": "next", "to": target._number})
        if not isinstance(more, list):
            raise WireError("a line that is no reply")
        if not more:
            raise StopIteration
        return more[0]

    def special(self, target: Any, name: str, args: Any) -> Any:
        """Have an operator applied there; ``NotImplemented`` where the class has none."""
        reply = self.ask(
            {
                "do": "special",
                "to": target._number,
                "name": name,
                "args": self.wire.encode(list(args)),
                "kwargs": {"d": []},
            }
        )
        if "e" in reply:
            raise self.errors.made(reply["e"])
        return NotImplemented if reply.get("n") else self._value(reply)

    def get_item(self, target: Any, key: Any) -> Any:
        return self.call(target, "__getitem__", (key,), {})

    def class_of(self, target: Any) -> Any:
        found = self.value({"do": "type", "to": target._number})
        return found if isinstance(found, RemoteType) else RemoteObject

    def is_instance(self, cls: Any, value: Any) -> Any:
        return self.value({"do": "isinstance", "to": cls._number, "of": value._number})

    def awaited(self, target: Any) -> Any:
        return self.value({"do": "await", "to": target._number})

    # --- both ways ----------------------------------------------------------------------------------------------------

    def show(self, value: Any) -> str:
        if isinstance(value, Remote) or issubclass(type(value), Remote):
            return f"<{value._name}>"
        try:
            return self._short.repr(value)
        except Exception:
            return f"<{type(value).__name__}>"

    def _in_place(self) -> bool:
        frame = sys._getframe(2)
        while frame.f_back is not None and not frame.f_code.co_filename.endswith(self.file):
            frame = frame.f_back
        return frame.f_code.co_filename.endswith(self.file) and frame.f_lineno in self.in_place

    def _restore(self, args: Any, changing: list[int], after: Any) -> None:
        for index in changing:
            mine, theirs = args[index], after[index]
            if type(mine) is not type(theirs):
                raise WireError("an argument of another type than was given")
            if isinstance(mine, list | bytearray):
                mine[:] = theirs
            else:
                mine.clear()
                mine.update(theirs)

    def refer(self, value: Any) -> Any:
        """Return the reference of a value of the tests' own."""
        if isinstance(type(value), type) and issubclass(type(value), Remote):
            return {"mine": value._number}
        if isinstance(value, RemoteType):
            return {"mine": value._number}
        for number, error in self.errors.classes.items():
            if value is error:
                return {"mine": number}
        original = getattr(value, "__wrapped__", None)
        if isinstance(original, Remote):
            return {"mine": original._number}
        if callable(value):
            module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
            if module in sys.stdlib_module_names and "<" not in name and _found(module, name) is value:
                return {"global": [module, name]}
            return {"back": self._keep(value)}
        if hasattr(type(value), "__next__"):
            return {"iterator": self._keep(value)}
        try:
            return self.wire.plain(value)
        except WireError:
            raise Unsupported(f"the tests give the program a {type(value).__name__}") from None

    def _keep(self, value: Any) -> int:
        self.kept.append(value)
        return len(self.kept) - 1

    def resolve(self, reference: dict[str, Any]) -> Any:
        """Return the stand-in for a reference of the program's."""
        [(tag, body)] = reference.items()
        if tag == "back":
            return self.kept[body]
        if tag != "ref":
            raise WireError(f"no value has the tag {tag!r}")
        kind, number, name, *more = body
        if not isinstance(number, int) or not isinstance(name, str):
            raise WireError("not a reference")
        name = name[:100]
        if kind == "object":
            base = self.wire.decode(more[0]) if more else None
            if not self.objects:
                if more:
                    return base
                raise WireError(f"a {name}, which is no plain data")
            return RemoteObject(self, number, name, False, base)
        if number not in self.stand_ins:
            self.stand_ins[number] = self._stand_in(kind, number, name, more)
        return self.stand_ins[number]

    def _stand_in(self, kind: str, number: int, name: str, more: list[Any]) -> Any:
        if kind == "exception":
            return self.errors.of(more[0])
        makers: dict[str, Callable[..., Any]] = {
            "class": remote_type,
            "function": RemoteFunction,
            "iterator": RemoteIterator,
            "async": lambda *a: coroutine_function(RemoteFunction(*a)),
        }
        return makers[kind](self, number, name)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a function that was given to the program, or take the next item of an iterator."""
        try:
            target = self.kept[request["to"]]
            if request["do"] == "next":
                rest = [next(target)] if hasattr(type(target), "__next__") else []
                return {"v": self.wire.encode(rest)}
            args, kwargs = self.wire.decode(request["args"]), self.wire.decode(request["kwargs"])
            return {"v": self.wire.encode(target(*args, **kwargs))}
        except StopIteration:
            return {"v": []}
        except Exception as error:
            return {"e": [type(error).__name__, str(error)[:500]]}


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for piece in name.split("."):
        found = getattr(found, piece, None)
    return found
