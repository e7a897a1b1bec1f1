"""Checks annotations while testing: a function's first calls in each test, so that a loop pays for no more than those.

``jaxtyping``'s import hook (conftest.py) decorates every function of the modules it is given with ``jaxtyped``;
here that is put off to a function's first call, and done for its first ``CALLS`` calls of a test.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import Any

import jaxtyping
import jaxtyping._decorator
from beartype import BeartypeConf, beartype

CALLS = 3
"""Of a function, in a test, that are checked."""

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
jaxtyped = jaxtyping._decorator.jaxtyped
test = 0
"""How many tests have begun."""


def install() -> None:
    """Have modules imported from now on decorated by ``sparingly``, and methods that ``jaxtyped`` takes apart."""
    jaxtyping.jaxtyped = jaxtyping._decorator.jaxtyped = sparingly


def begin() -> None:
    """Say that a test begins: functions are checked anew."""
    global test
    test += 1


class UnderWay(threading.local):
    """Closures whose calls are being checked, the latest last."""

    def __init__(self) -> None:
        self.fns: list[Callable[..., Any]] = []


class Checks:
    """The checks of a function, or of all closures made by the same lines, which would cost more than the calls if each
    were decorated anew."""

    def __init__(self, typechecker: Any):
        self.under_way = UnderWay()
        self.during = self.calls = 0
        self.typechecker = typechecker
        self.checked: Callable[..., Any] | None = None

    def due(self) -> bool:
        """Whether a call is among the first of this test."""
        if self.during != test:
            self.during, self.calls = test, 0
        self.calls += 1
        return self.calls <= CALLS

    def call(self, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``fn``, checked."""
        if self.checked is None:
            self.checked = jaxtyped(self._any_of(fn), typechecker=self.typechecker)
        self.under_way.fns.append(fn)
        try:
            return self.checked(*args, **kwargs)
        finally:
            self.under_way.fns.pop()

    def _any_of(self, fn: types.FunctionType) -> Callable[..., Any]:
        """A function that looks like ``fn``, to whoever reads its annotations, and calls the one under way."""
        under_way = self.under_way

        def current(*args: Any, **kwargs: Any) -> Any:
            return under_way.fns[-1](*args, **kwargs)

        shown = types.FunctionType(current.__code__, fn.__globals__, fn.__name__, None, current.__closure__)
        return functools.update_wrapper(shown, fn)


_checks: dict[tuple[str, str, types.CodeType], Checks] = {}


def sparingly(fn: Any = None, *, typechecker: Any = check) -> Any:
    """Decorate as ``jaxtyped`` does, checking the first calls of each test only."""
    if fn is None:
        return functools.partial(sparingly, typechecker=typechecker)
    if not isinstance(fn, types.FunctionType):
        return jaxtyped(fn, typechecker=typechecker)
    checks = _checks.setdefault((fn.__module__, fn.__qualname__, fn.__code__), Checks(typechecker))

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return checks.call(fn, args, kwargs) if checks.due() else fn(*args, **kwargs)

    return call
