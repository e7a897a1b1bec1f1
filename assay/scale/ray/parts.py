"""Parts that a program registers itself, on their way to processes that would not find them by name."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any

from assay.registry import added, part


def outside(seam: str) -> dict[str, Callable[..., Any]]:
    """The seam's parts that are not assay's own, which another process would not find by their names."""
    return {name: _settled(made) for name, made in added(seam).items()}


def _settled(made: Callable[..., Any]) -> Callable[..., Any]:
    """The part itself. One of the main script travels as a value, so its annotations must not be names any more."""
    if made.__module__ == "__main__":
        own: Any = made.__init__ if inspect.isclass(made) and not is_dataclass(made) else made
        own.__annotations__ = typing.get_type_hints(own)
    return made


def register(seam: str, parts: Mapping[str, Callable[..., Any]]) -> None:
    """Make parts of another process known in this one."""
    for name, made in parts.items():
        part(seam, name)(made)
