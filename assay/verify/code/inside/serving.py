"""The tested program's process: runs the program as a module and does to its objects what the tests ask.

The program shares this process and may change all of it. Nothing here knows an expected value; what is sent back is
data that the tests' process judges, and the worst a program can do is to send other data.
"""

from __future__ import annotations

import builtins
import copy
import io
import operator
import os
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

from assay.verify.code.inside.wire import PLAIN, Wire, WireError

MOST = 1 << 20
"""Characters of printed text that are kept for the tests."""


class Printed(io.StringIO):
    """Standard output of the program: what it prints between two replies, up to a limit."""

    def write(self, text: str) -> int:
        return super().write(text) if self.tell() < MOST else len(text)

    def take(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Callback:
    """A function of the tests', which can be called and nothing else."""

    def __init__(self, server: Server, number: int):
        self._server, self._number = server, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._server.back("call", self._number, args, kwargs)


class CallbackIterator(Callback):
    """An iterator of the tests'."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        more = self._server.back("next", self._number, (), {})
        if not more:
            raise StopIteration
        return more[0]


class Server:
    """Answers requests about the program ``source`` until there are no more."""

    def __init__(self, source: str, module: str):
        # The conversation gets descriptors of its own: what a program prints is none of it.
        reader, writer = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        self.wire = Wire(reader, writer, b"", self.refer, self.resolve, self.answer)
        self.kept: dict[int, Any] = {}
        self.module = types.ModuleType(module)
        self.kept[0] = self.module
        self.printed = Printed()
        self.problem = ""
        sys.stdout = self.printed
        sys.modules[module] = self.module
        self.module.__dict__["__file__"] = f"{module}.py"
        try:
            exec(compile(source, f"{module}.py", "exec"), self.module.__dict__)
        except BaseException as error:
            self.problem = _trace(error, f"{module}.py")

    def serve(self) -> None:
        while True:
            request = self.wire.receive()
            if request is None:
                return
            self.wire.send(self.answer(request))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            value = self._do(request)
            reply: dict[str, Any] = {"n": 1} if value is NotImplemented else {"v": value}
            if request.get("m"):
                reply["m"] = [self.wire.encode(argument) for argument in self._arguments]
        except BaseException as error:
            reply = {"e": self._error(error)}
        printed = self.printed.take() if sys.stdout is self.printed else ""
        return reply | {"o": printed} if printed else reply

    def _do(self, request: dict[str, Any]) -> Any:
        do = request["do"]
        if do == "load":
            return self.problem
        if do == "export":
            # One at a time: tests use few names of what may be a large table.
            value = self.module.__dict__[request["name"]]
            if isinstance(value, types.ModuleType):
                raise TypeError(f"{request['name']} is a module")
            return self.wire.encode(value)
        target = self.kept[request["to"]]
        if do == "type":
            return self._class(target)
        if do == "isinstance":
            return isinstance(self.kept[request["of"]], target)
        if do == "issubclass":
            return issubclass(self.kept[request["of"]], target)
        if do == "content":
            return self.wire.plain(target)
        if do == "copy":
            return self.wire.encode((copy.deepcopy if request["deep"] else copy.copy)(target))
        if do == "set":
            setattr(target, request["name"], self.wire.decode(request["value"]))
            return None
        if do == "next":
            try:
                return [self.wire.encode(next(target))]
            except StopIteration:
                return []
        if do == "await":
            import asyncio

            return self.wire.encode(asyncio.run(_wait(target)))
        if do == "special":
            value = _special(target, request["name"], self.wire.decode(request["args"]))
            return value if value is NotImplemented else self.wire.encode(value)
        found = getattr(target, request["name"]) if request.get("name") else target
        if do == "get":
            return self.wire.encode(found)
        args, kwargs = self.wire.decode(request["args"]), self.wire.decode(request["kwargs"])
        self._arguments = args
        value = found(*args, **kwargs)
        if do == "new":
            return self._keep(value, "object")
        return self.wire.encode(value)

    def refer(self, value: Any) -> Any:
        """Return the reference of ``value``: what it is decides what the tests may do with it."""
        if isinstance(value, Callback):
            return {"back": value._number}
        if isinstance(value, type):
            return self._keep(value, "exception" if issubclass(value, BaseException) else "class")
        mine = type(value).__module__ == self.module.__name__
        if not mine or isinstance(value, int | float | str | bytes):
            try:
                return self.wire.plain(value)
            except WireError:
                pass
        if isinstance(value, types.FunctionType) and value.__code__.co_flags & 0x80:
            return self._keep(value, "async")
        if hasattr(type(value), "__next__") and not mine:
            return self._keep(value, "iterator")
        if callable(value) and not mine:
            return self._keep(value, "function")
        return self._keep(value, "object")

    def _keep(self, value: Any, kind: str) -> dict[str, Any]:
        # Kept for good, so that the number stays this object's.
        self.kept[id(value)] = value
        cls = value if isinstance(value, type) else type(value)
        name = getattr(value, "__name__", "") if kind in ("function", "async", "class", "exception") else ""
        body: list[Any] = [kind, id(value), str(name or cls.__name__)]
        if kind == "exception":
            body.append(self._chain(value))
        if isinstance(value, PLAIN) and kind == "object":
            body.append("plain")
        return {"ref": body}

    def resolve(self, reference: dict[str, Any]) -> Any:
        [(tag, body)] = reference.items()
        if tag == "mine":
            return self.kept[body]
        if tag == "back":
            return Callback(self, body)
        if tag == "iterator":
            return CallbackIterator(self, body)
        if tag == "global":
            __import__(body[0])
            found: Any = sys.modules[body[0]]
            for name in body[1].split("."):
                found = getattr(found, name)
            return found
        raise WireError(f"no value has the tag {tag!r}")

    def back(self, do: str, number: int, args: Any, kwargs: Any) -> Any:
        """Ask the tests to call their function; return its value or raise its exception."""
        encoded = {"args": self.wire.encode(list(args)), "kwargs": self.wire.encode(dict(kwargs))}
        reply = self.wire.ask({"do": do, "to": number} | encoded)
        if "e" in reply:
            kind = getattr(builtins, str(reply["e"][0]), Exception)
            raise kind(reply["e"][1])
        return self.wire.decode(reply["v"])

    def _class(self, value: Any) -> Any:
        return self._keep(type(value), "class")

    def _chain(self, kind: type) -> list[list[Any]]:
        """The classes of an exception from itself to the first of Python's own."""
        chain: list[list[Any]] = []
        for base in kind.__mro__:
            if base.__module__ == "builtins":
                return [*chain, [0, base.__name__]]
            if issubclass(base, BaseException):
                self.kept[id(base)] = base
                chain.append([id(base), base.__name__])
        return chain

    def _error(self, error: BaseException) -> dict[str, Any]:
        made: dict[str, Any] = {"chain": self._chain(type(error)), "text": "", "args": [], "fields": {}}
        made["trace"] = _trace(error, str(self.module.__dict__.get("__file__")))
        try:
            made["text"] = str(error)[:2000]
            made["args"] = [self.wire.encode(argument) for argument in error.args]
            for name, value in vars(error).items():
                made["fields"][str(name)] = self.wire.encode(value)
        except BaseException:
            pass
        return made


BY_FUNCTION = frozenset(
    ["len", "str", "repr", "bool", "int", "float", "complex", "abs", "round", "hash", "iter", "reversed"]
)


def _special(target: Any, name: str, args: list[Any]) -> Any:
    short = name.strip("_")
    if short in BY_FUNCTION:
        return getattr(builtins, short)(target, *args)
    if short in ("contains", "index", "getitem", "setitem", "delitem", "pos", "neg", "invert"):
        return getattr(operator, short)(target, *args)
    method = getattr(type(target), name, None)
    return NotImplemented if method is None else method(target, *args)


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def _trace(error: BaseException, file: str) -> str:
    """The last frames of the program's own, and the error: short enough to read."""
    try:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file][-3:]
        lines = [f"line {f.lineno}, in {f.name}" for f in frames]
        last = traceback.format_exception_only(type(error), error)
        shown = (
            " ".join(last[-1].split()) if not isinstance(error, SyntaxError) else f"{error.msg} (line {error.lineno})"
        )
        name = f"{type(error).__name__}: " if isinstance(error, SyntaxError) else ""
        return "; ".join([*lines, name + shown])[:600]
    except BaseException:
        return "an error"


def main(source: str, module: str) -> None:
    leave = os._exit
    Server(source, module).serve()
    leave(0)
