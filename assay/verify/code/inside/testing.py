"""The tests' process: runs tests in their usual forms against stand-ins, and tells the host what came of each."""

from __future__ import annotations

import builtins
import importlib
import os
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from assay.verify.code.inside.link import Link
from assay.verify.code.inside.remote import Unsupported
from assay.verify.code.inside.wire import Ended

FILE = "tests.py"
MOST = 600


class Failed(BaseException):
    """A test failed, and the rest need not be run."""


class Session:
    """One run of the tests that ``plan`` describes.

    ``plan``: ``mode`` (check, asserts, unittest, pytest, doctest), ``source`` or ``sources``, ``setup`` (the tests' own
    helpers), ``names`` (of the program's that the tests use without importing them), ``entry``, ``module``, ``classes``
    and ``in_place`` (see :class:`Link`), ``stop`` (after the first failure).
    """

    def __init__(self, plan: dict[str, Any]):
        reader, writer = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(null, 2)
        self.plan = plan
        self.link: Any
        if "shared" in plan:
            from assay.verify.code.inside.local import LocalLink

            os.close(reader)
            self.link = LocalLink(writer, plan["shared"], plan["module"])
        else:
            file = "program_tests.py" if plan["mode"] == "pytest" else FILE
            lines = (frozenset(plan["in_place"]), frozenset(plan["quiet"]))
            self.link = Link(reader, writer, frozenset(plan["classes"]), *lines, file)
        self.deaths = 0
        self.how = ""
        self.missing: list[str] = []

    def run(self, mode: Callable[[Session], None]) -> None:
        try:
            with suppress(Ended):
                self.link.start()
                for name in self.plan.get("imports", ()):
                    if not self.link.problem:
                        self.found(name)
            self.deaths = self.link.deaths
            if self.link.dead:
                self.link.problem = "the program ended"
            if self.missing and not self.link.problem:
                self.link.problem = f"the program defines no {self.missing[0]}"
            if self.link.problem:
                self.link.tell({"problem": self.link.problem})
                return
            mode(self)
            self.link.tell({"end": True})
        except Unsupported as error:
            self.link.tell({"unsupported": str(error)[:MOST]})
        except Failed:
            self.link.tell({"end": False})
        except Ended as error:
            self.link.tell({"problem": f"{self.link.last}: {error}" if self.link.last else str(error)})
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"[:MOST]
            # Tests that fail while they are loaded do so by themselves, unless they had something of the program's.
            if isinstance(error, NameError) and error.name in self.missing:
                said = f"the program defines no {error.name}"
            elif not self.link.given or isinstance(error, SyntaxError):
                self.link.tell({"broken": said})
                return
            self.link.tell({"problem": f"{self.link.last}: {said}" if self.link.last else said})

    def found(self, name: str) -> list[Any]:
        """Return what the program calls ``name``, in a list; an empty one, and a note of it, if there is nothing."""
        try:
            return [self.link.find(name)]
        except LookupError:
            self.missing.append(name)
            return []

    def ready(self) -> None:
        """Before a test: if the program ended in the one before, have a new process of it."""
        if self.link.dead:
            with suppress(Ended):
                self.link.start()
            self.deaths = self.link.deaths
        self.link.last = ""
        self.link.tell({"begins": 1})

    def result(self, name: str, passed: bool | None, said: str = "") -> None:
        """Report a test. One in which the program ended has failed, whatever the test made of it."""
        how, self.how = self.how, ""
        if self.link.deaths > self.deaths:
            passed, said, how = False, said or "the program ended", "ended"
            self.deaths = self.link.deaths
        self.link.tell({"test": name[:200], "ok": passed, "said": said[:MOST], "how": how})
        if passed is False and self.plan["stop"]:
            raise Failed

    def said(self, error: BaseException, source: str = "") -> str:
        """What a failure was, in a line: the statement, and what the program's last call gave."""
        lines = [source] if source else []
        if self.link.last:
            lines.append(self.link.last)
        name = type(error).__name__
        self.how = "raised" if f" raised {name}: {error}" in self.link.last else ""
        if isinstance(error, Ended):
            self.how = "ended"
            return "; ".join(" ".join(line.split())[:300] for line in [*lines, str(error)])
        if not (isinstance(error, AssertionError) and not str(error)) and f"{name}: {error}" not in self.link.last:
            lines.append(f"{name}: {error}" if str(error) else name)
        return "; ".join(" ".join(line.split())[:300] for line in lines)

    def namespace(self, module: str = "__main__") -> dict[str, Any]:
        space: dict[str, Any] = {"__name__": module, "__builtins__": builtins}
        for name, (origin, member) in self.plan["library"].items():
            space[name] = importlib.import_module(origin)
            space[name] = getattr(space[name], member) if member else space[name]
        for name in self.plan["names"]:
            for value in self.found(name):
                space[name] = value
        setup = self.plan.get("setup")
        if setup:
            exec(compile(setup, "setup.py", "exec"), space)
        return space

    def proxy(self) -> types.ModuleType:
        """The module that tests import in place of the program, with the packages it is said to be in."""
        module: types.ModuleType
        if "shared" in self.plan:
            module = self.link.module
        else:
            module = Proxy(self.plan["module"])
            # Everything it has would hide what the tests have of the same name.
            module.__dict__.update(__all__=[name for name in self.plan["names"] if self.found(name)], _link=self.link)
        found, name = module, self.plan["module"]
        while name:
            sys.modules[name] = found
            name, _, own = name.rpartition(".")
            package = types.ModuleType(name)
            package.__path__ = []
            setattr(package, own, found)
            found = package
        return module


class Proxy(types.ModuleType):
    """Its names are the program's; to replace one would change the stand-ins and not the program."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.__dict__["_link"].find(name)
        except LookupError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if "_link" in self.__dict__ and not name.startswith("__"):
            raise Unsupported(f"the tests replace {name} in the program's module")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise Unsupported(f"the tests delete {name} in the program's module")


def main(plan: dict[str, Any], mode: Callable[[Session], None]) -> NoReturn:
    Session(plan).run(mode)
    os._exit(0)
