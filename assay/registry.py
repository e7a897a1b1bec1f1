"""Parts by name: what a recipe's strings and tables turn into.

A part registers itself where it is defined, ``@part("credit", "grpo")``; a recipe names it, ``credit = "grpo"`` or
``credit = {name = "grpo", ddof = 0}``; :func:`build` checks the options against the part's signature and makes it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from assay.errors import UsageError, nearest
from assay.from_file import from_file, is_reference

T = TypeVar("T")

PACKAGES = {
    "tasks": "assay.tasks",
    "curriculum": "assay.curriculum",
    "rollout": "assay.rollout",
    "verify": "assay.verify",
    "reward": "assay.rewards",
    "credit": "assay.credit",
    "select": "assay.select",
    "objective": "assay.objectives",
    "inference": "assay.inference",
    "scorer": "assay.inference",
    "engine": "assay.engines",
    "environment": "assay.environments",
    "signal": "assay.signals",
    "logger": "assay.loggers",
    "callback": "assay.training",
}

GROUP = "assay.parts"
"""Of the entry points by which other packages bring parts."""

_DECORATOR = re.compile(r'^@part\("([^"]+)", "([^"]+)"\)', re.MULTILINE)

_PARTS: dict[str, dict[str, Callable[..., Any]]] = {seam: {} for seam in PACKAGES}


def part(seam: str, name: str) -> Callable[[T], T]:
    """Register a class or factory under ``name`` in ``seam``."""

    def register(made: T) -> T:
        known = _PARTS[seam].get(name)
        if known is not None and (known.__module__, known.__qualname__) != (made.__module__, made.__qualname__):  # type: ignore[attr-defined]
            raise ValueError(f"{seam} part {name!r} is registered twice: {known} and {made}")
        _PARTS[seam][name] = made  # type: ignore[assignment]
        return made

    return register


def _written(seam: str) -> dict[str, str]:
    """Return the module that registers each part of a seam, by name: those of its package, and those that a paper's
    file has for itself."""
    return {
        name: module
        for package in ("assay.papers", PACKAGES[seam])
        for name, module in _registered(package).get(seam, {}).items()
    }


@functools.cache
def _registered(package: str) -> dict[str, dict[str, str]]:
    """Return the modules of a package that register parts, by seam and name, as their source says.

    So adding a part is adding a file, and none is imported before it is needed: all of them take seconds.
    """
    found: dict[str, dict[str, str]] = {}
    for folder in map(Path, importlib.import_module(package).__path__):
        for file in folder.rglob("*.py"):
            module = ".".join([package, *file.relative_to(folder).with_suffix("").parts])
            for seam, name in _DECORATOR.findall(file.read_text(encoding="utf-8")):
                found.setdefault(seam, {})[name] = module.removesuffix(".__init__")
    return found


@functools.cache
def _installed() -> None:
    """Import the modules that installed packages name as entry points of the group :data:`GROUP`; they register parts.

    Raises:
        UsageError: one cannot be imported.
    """
    for point in metadata.entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            of = point.dist.name if point.dist is not None else "an installed package"
            said = " ".join(str(error).split())[:300] or type(error).__name__
            raise UsageError(
                f"the parts of {of} ({GROUP}: {point.name} = {point.value}) cannot be imported: {said}; mend or "
                "uninstall it"
            ) from error


def added(seam: str) -> dict[str, Callable[..., Any]]:
    """Return the parts of ``seam`` that are not assay's own, by name."""
    return {name: made for name, made in _PARTS[seam].items() if not made.__module__.startswith("assay.")}


def names(seam: str) -> list[str]:
    """Return the names of every part of ``seam``, sorted."""
    _installed()
    return sorted({*_PARTS[seam], *_written(seam)})


def find(seam: str, name: str) -> Callable[..., Any]:
    """Return the class or factory registered under ``name``, or the one that ``path/to/file.py:Name`` names.

    Raises:
        UsageError: there is none; names the nearest.
    """
    if name.endswith(".py"):
        raise UsageError(f"{seam} {name!r} is a file; write {name}:NAME, of the class or function in it")
    if is_reference(name):
        made: Callable[..., Any] = from_file(name, seam)
        return made
    if name not in _PARTS[seam]:
        if name in _written(seam):
            importlib.import_module(_written(seam)[name])
        else:
            _installed()
    try:
        return _PARTS[seam][name]
    except KeyError:
        raise UsageError(f"no {seam} part is called {name!r}{nearest(name, names(seam))}") from None


def build(seam: str, spec: Any, **given: Any) -> Any:
    """Make the part that ``spec`` describes.

    Args:
        seam: one of :data:`PACKAGES`.
        spec: a name, a table with ``name`` and options, or a part already made (returned as it is).
        given: options that the caller has for a part that takes them and whose ``spec`` does not; not checked.

    Raises:
        UsageError: unknown name, unknown option, missing option or an option of the wrong type.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping):
        return spec
    options = dict(spec)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise UsageError(f'a {seam} table needs name = "..."; known: {", ".join(names(seam))}')
    return call(find(seam, name), options, f"{seam} {name!r}", given)


def held(thing: Any) -> dict[str, Any]:
    """Return what a part, or any object, holds: values by the names of its attributes and slots."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(thing, name)]
    return {**getattr(thing, "__dict__", {}), **{name: getattr(thing, name) for name in slots}}


def call(
    factory: Callable[..., Any], options: Mapping[str, Any], where: str, given: Mapping[str, Any] | None = None
) -> Any:
    """Call ``factory(**given, **options)``, see :func:`bound`."""
    return bound(factory, options, where, given)()


def bound(
    factory: Callable[..., Any], options: Mapping[str, Any], where: str, given: Mapping[str, Any] | None = None
) -> Callable[[], Any]:
    """Return ``factory`` with ``given`` and ``options``, whose names, types and numbers are checked; errors say
    ``where``."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    lenient = ConfigDict(arbitrary_types_allowed=True)
    parameters = inspect.signature(factory).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    # Fields that a dataclass inherits are annotated in the terms of the module that defines them.
    own = inspect.isclass(factory) and not is_dataclass(factory)
    hints = typing.get_type_hints(factory.__init__ if own else factory)
    checked = {k: v for k, v in (given or {}).items() if k in parameters or open_ended}
    for key, value in options.items():
        if key not in parameters and not open_ended:
            raise UsageError(f"{where} has no option {key!r}{nearest(key, parameters)}")
        if key in hints:
            try:
                # In a list, because an adapter of a dataclass by itself takes no configuration.
                kind: Any = types.GenericAlias(list, hints[key])
                [checked[key]] = TypeAdapter(kind, config=lenient).validate_python([value])
            except ValidationError as error:
                raise UsageError(f"{where}: option {key} = {value!r}: {error.errors()[0]['msg']}") from None
        else:
            checked[key] = value
        _check_numbers(key, checked[key], where)
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in checked
    ]
    if missing:
        raise UsageError(f"{where} needs {', '.join(missing)}")
    return functools.partial(factory, **checked)


_SIZE = re.compile(
    r"(max|min)_(?!value).*|.*_(tokens|chars|length|steps|words|seconds)|seconds|epsilon|ddof|lr|width|depth|heads|every"
    r"|prompts|group|tail|tolerance|relative|absolute|temperature|horizon|per_prompt|buffer|length|size|steps|rank|k|n"
)
"""Options that count or measure something, by their names."""


def _check_numbers(key: str, value: Any, where: str) -> None:
    """Raise UsageError for an option that is, or holds, no number, or a size below 0."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            _check_numbers(str(name), part, f"{where}: {key}")
    elif isinstance(value, list | tuple):
        for part in value:
            _check_numbers(key, part, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if math.isnan(value):
            raise UsageError(f"{where}: option {key} = {value} is no number")
        if value < 0 and _SIZE.fullmatch(key):
            raise UsageError(f"{where}: option {key} = {value:g} must not be negative")
