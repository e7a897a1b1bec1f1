"""Checks annotations while testing: a function's first calls in each test, so that a loop pays for no more than those.

``jaxtyping``'s import hook (conftest.py) decorates every function of the modules it is given with ``jaxtyped``;
here that is put off to a function's first call, and done for its first ``CALLS`` calls of a test.
"""

from __future__ import annotations

import functools
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


def sparingly(fn: Any = None, *, typechecker: Any = check) -> Any:
    """Decorate as ``jaxtyped`` does, checking the first calls of each test only."""
    if fn is None:
        return functools.partial(sparingly, typechecker=typechecker)
    if not isinstance(fn, types.FunctionType):
        return jaxtyped(fn, typechecker=typechecker)
    checked: Callable[..., Any] | None = None
    during = calls = 0

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked, during, calls
        if during != test:
            during, calls = test, 0
        if calls == CALLS:
            return fn(*args, **kwargs)
        calls += 1
        if checked is None:
            checked = jaxtyped(fn, typechecker=typechecker)
        return checked(*args, **kwargs)

    return call
