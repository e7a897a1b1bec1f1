"""The tests' end of the conversation with a program: its names as stand-ins, its exceptions as exceptions."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from assay.verify.code.inside.raised import Exceptions
from assay.verify.code.inside.remote import (
    Refused,
    Remote,
    RemoteFunction,
    RemoteIterator,
    RemoteObject,
    RemoteType,
    Unsupported,
    coroutine_function,
    remote_type,
)
from assay.verify.code.inside.wire import SHORT, Ended, Wire, WireError


class Link:
    """Starts the program when first needed and again when told to; forwards what stand-ins are asked.

    Args:
        reader, writer: descriptors.
        classes: names of the program's that are classes by what the tests or the task say.
        in_place: lines of the tests whose calls are made for what they do to their arguments.
        quiet: lines of the tests in whose ``with`` blocks no assertion could be lost.
        file: name of the tests' code.

    Attributes:
        given: how many values the program has given to the tests, beside functions and classes to be called.
    """

    def __init__(
        self,
        reader: int,
        writer: int,
        classes: frozenset[str],
        in_place: frozenset[int] = frozenset(),
        quiet: frozenset[int] = frozenset(),
        file: str = "",
    ):
        self.wire = Wire(reader, writer, b">", self.refer, self.resolve, self.answer)
        self.classes, self.in_place, self.quiet_lines, self.file = classes, in_place, quiet, file
        self.dead = True
        self.deaths = self.given = 0
        self.last = self.problem = ""
        self.kept: list[Any] = []
        self.stand_ins: dict[Any, Any] = {}
        self.named: dict[str, Any] = {}
        self.failed: AssertionError | None = None
        self.errors = Exceptions(self.wire)

    def start(self) -> None:
        """Have a new process of the program; ``problem`` says how it failed to load, if it did."""
        self.stand_ins, self.dead, self.last = {}, False, ""
        self.errors = Exceptions(self.wire)
        self.tell({"start": 1})
        self.problem = str(self.ask({"do": "load"}).get("v"))
        named, self.named = self.named, {}
        for name, old in named.items():
            with suppress(LookupError):
                self._renew(name, old, _wrapped(self.find(name)))

    def _renew(self, name: str, old: Any, new: Any) -> None:
        """Let what the tests keep from an earlier process of the program stand for what this one calls ``name``."""
        # By their types: an object would be asked for its class.
        if issubclass(type(old), Remote) and issubclass(type(new), Remote):
            object.__setattr__(old, "_number", new._number)
            self.stand_ins[new._number if isinstance(old, RemoteFunction) else (new._number, "object")] = old
        elif type(old) is RemoteType and type(new) is RemoteType:
            type.__setattr__(old, "_number", new._number)
            self.stand_ins[new._number] = old
        elif type(old) is type and issubclass(old, BaseException):
            for number in [number for number, kind in self.errors.classes.items() if kind is new]:
                self.errors.classes[number] = self.stand_ins[number] = old
        self.named[name] = old

    def find(self, name: str) -> Any:
        """Return what the program calls ``name``; raise LookupError where there is nothing that may be had."""
        given = self.given
        try:
            value = self.value({"do": "export", "name": name})
        except Exception as error:
            self.given = given
            raise LookupError(f"the program defines no {name}: {error}") from None
        if type(value) is RemoteType:
            type.__setattr__(value, "_constructs", name in self.classes)
            type.__setattr__(value, "_open", True)
        elif type(value) is RemoteFunction:
            value._mark(constructed=True)
        else:
            self.given += 1
        self.named[name] = _wrapped(value)
        return value

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
            raise self._ended("the program ended") from None
        except WireError:
            # Nothing it says can be told from forgery any more; it has failed as if it had ended.
            raise self._ended("the program wrote what is no reply into its conversation with the tests") from None
        if isinstance(reply.get("o"), str):
            sys.stdout.write(reply["o"])
        if self.failed is not None:
            # An assertion failed in a function that the program called: what the program made of that does not matter.
            failed, self.failed = self.failed, None
            raise failed
        return reply

    def _ended(self, said: str) -> Ended:
        self.dead = True
        self.deaths += 1
        return Ended(said)

    def value(self, request: dict[str, Any]) -> Any:
        """Return the value of the reply, or raise the program's exception."""
        reply = self.ask(request)
        if "e" in reply:
            self.given += 1
            raise self.errors.made(reply["e"])
        return self._value(reply)

    def _value(self, reply: dict[str, Any]) -> Any:
        if "v" not in reply:
            raise WireError("a line that is no reply")
        return self.wire.decode(reply["v"])

    # --- what stand-ins ask -------------------------------------------------------------------------------------------

    def call(self, target: Any, name: str, args: Any, kwargs: Any, new: bool = False, waits: bool = False) -> Any:
        request = {"do": "new" if new else "call", "to": target._number, "name": name}
        request |= {"args": self._given(target, list(args)), "kwargs": self._given(target, kwargs)}
        changing = [i for i, a in enumerate(args) if type(a) in (list, dict, set, bytearray)]
        # Arguments are copies there. What a call does to them is seen here only where the tests call for its sake.
        request["m"] = int(bool(changing and self.in_place and self._in_place()))
        shown = ", ".join([*map(self.show, args), *(f"{k}={self.show(v)}" for k, v in kwargs.items())])
        self.last = f"{target._name}{'.' + name if name else ''}({shown})"
        call = self.last
        self.given += 1
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
            value = self._constructed(value)
        self.last = f"{call} gave {self.show(value)}"
        if request["m"]:
            self._restore(args, changing, self.wire.decode(reply["m"]))
        return value

    def _constructed(self, value: Any) -> Any:
        """The stand-in of an object that the tests made, apart from the one for the same object as it is returned."""
        key = (value._number, "constructed")
        if key not in self.stand_ins:
            self.stand_ins[key] = RemoteObject(self, value._number, value._name, value._plain)
            self.stand_ins[key]._mark(constructed=True)
        return self.stand_ins[key]

    def _given(self, target: Any, value: Any) -> Any:
        """What crosses of something that the tests give to ``target``."""
        try:
            return self.wire.encode(value)
        except Unsupported as error:
            if target._constructed if isinstance(target, Remote) else target._open:
                raise
            # A value in its place would have taken it; so it is not the tests that ask for too much.
            raise Refused(f"{error}, to {target._name}") from None

    def content(self, target: Any) -> Any:
        """Return what an object of a subclass of a plain type holds now, as the plain type."""
        value = self.value({"do": "content", "to": target._number})
        if isinstance(value, Remote) or issubclass(type(value), Remote):
            raise WireError(f"a {target._name}, which is no plain data")
        return value

    def copy(self, target: Any, deep: bool) -> Any:
        made = self.value({"do": "copy", "to": target._number, "deep": deep})
        if not issubclass(type(made), RemoteObject):
            raise TypeError(f"a copy of {target._name} is none")
        return self._constructed(made) if target._constructed else made

    def quiet(self, trace: Any) -> bool:
        """Whether what was raised in a ``with`` block of the tests may be swallowed: nothing is asserted there."""
        frame = trace.tb_frame if trace is not None else None
        return (
            frame is not None and frame.f_code.co_filename.endswith(self.file) and trace.tb_lineno in self.quiet_lines
        )

    def get(self, target: Any, name: str) -> Any:
        self.given += 1
        return self.value({"do": "get", "to": target._number, "name": name})

    def set(self, target: Any, name: str, value: Any) -> None:
        self.value({"do": "set", "to": target._number, "name": name, "value": self._given(target, value)})

    def next(self, target: Any) -> Any:
        self.given += 1
        more = self.value({"do": "next", "to": target._number})
        if not isinstance(more, list):
            raise WireError("a line that is no reply")
        if not more:
            raise StopIteration
        return more[0]

    def special(self, target: Any, name: str, args: Any) -> Any:
        """Have an operator applied there; ``NotImplemented`` where the class has none."""
        self.given += 1
        reply = self.ask(
            {
                "do": "special",
                "to": target._number,
                "name": name,
                "args": self._given(target, list(args)),
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

    def is_instance(self, cls: Any, value: Any) -> bool:
        return self.value({"do": "isinstance", "to": cls._number, "of": value._number}) is True

    def is_subclass(self, cls: Any, other: Any) -> bool:
        return self.value({"do": "issubclass", "to": cls._number, "of": other._number}) is True

    def awaited(self, target: Any) -> Any:
        return self.value({"do": "await", "to": target._number})

    # --- both ways ----------------------------------------------------------------------------------------------------

    def show(self, value: Any) -> str:
        if isinstance(value, Remote) or issubclass(type(value), Remote):
            return f"<{value._name}>"
        try:
            return SHORT.repr(value)
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
            made = RemoteObject(self, number, name, bool(more))
            if made._plain and not self.classes:
                # Tests without a class want the list, not what else it can do.
                return self.content(made)
            return self.stand_ins.setdefault((number, "object"), made)
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
        except AssertionError as error:
            self.failed = self.failed or error
            return {"e": ["AssertionError", str(error)[:500]]}
        except Exception as error:
            return {"e": [type(error).__name__, str(error)[:500]]}


def _wrapped(value: Any) -> Any:
    """The stand-in in a coroutine function, which wraps one; any other value itself."""
    return getattr(value, "__wrapped__", value) if type(value) is types.FunctionType else value


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for piece in name.split("."):
        found = getattr(found, piece, None)
    return found
