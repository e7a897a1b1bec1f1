"""Every part by seam: what it does, its options, their types, defaults and meanings."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from assay.registry import PACKAGES, find, names
from assay.tables.settings import inline


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a part: its type as Python writes it, its default as TOML, what its docstring says of it."""

    name: str
    type: str
    default: str
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part: its seam and name, the first sentence of its docstring, its options, and where it is defined."""

    seam: str
    name: str
    about: str
    options: tuple[Option, ...]
    module: str

    def plain(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)


def part_rows(seam: str | None = None) -> list[PartRow]:
    """Return the parts of a seam, of all in the order of the data flow if left out.

    Raises:
        UsageError: no such seam.
    """
    return [row(each, name) for each in (PACKAGES if seam is None else [seam]) for name in names(each)]


def row(seam: str, name: str) -> PartRow:
    """Return what a part says of itself.

    Raises:
        UsageError: no such part.
    """
    made = find(seam, name)
    text = inspect.getdoc(made) or ""
    about = re.split(r"(?<=[.!?])\s|\n\n", text, maxsplit=1)[0]
    return PartRow(seam, name, " ".join(about.split()), tuple(options(made)), made.__module__)


def options(made: Callable[..., Any]) -> list[Option]:
    """Return the options of a class or factory, in the order of its signature."""
    said: dict[str, str] = {}
    for each in reversed(made.__mro__) if inspect.isclass(made) else [made]:  # what is inherited is said where it is
        said |= arguments(inspect.cleandoc(each.__init__.__doc__ or "")) if inspect.isclass(each) else {}
        said |= arguments(inspect.cleandoc(each.__doc__ or ""))
    found = []
    for p in inspect.signature(made).parameters.values():
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        required = p.default is p.empty
        default = "" if required else _default(p.default)
        found.append(Option(p.name, _type(p.annotation), default, required, said.get(p.name, "")))
    return found


def arguments(text: str) -> dict[str, str]:
    """Return what a docstring says of each argument, under ``Args:`` or ``Attributes:``, in one line each."""
    block = re.search(r"^(?:Args|Attributes):\n((?:[ \t]+.*\n?|\n)+)", text, re.MULTILINE)
    found: dict[str, str] = {}
    current: list[str] = []
    for line in block[1].splitlines() if block else []:
        head = re.match(r" {4}([a-z_]\w*(?:, \w+)*): (.*)", line)
        if head:
            current = head[1].split(", ")
            found |= dict.fromkeys(current, head[2].strip())
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}" for name in current}
    return {name: about.replace("``", "") for name, about in found.items()}


def _type(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if typing.get_origin(annotation) is None and inspect.isclass(annotation):
        return annotation.__name__
    return re.sub(r"\b(?:typing|collections\.abc)\.", "", str(annotation))


def _default(value: Any) -> str:
    """Return a default as a recipe writes it; what a recipe cannot write, as Python does."""
    if value is None:
        return "none"
    if isinstance(value, bool | int | float | str | list | tuple | Mapping):
        try:
            return inline(value)
        except TypeError:
            return repr(value)
    return "" if "factory" in repr(value) else repr(value)
