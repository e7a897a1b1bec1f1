"""Every key of a recipe: its type, default and meaning, as the configuration's classes state them."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import tomli_w
from pydantic import BaseModel

from assay.config import LARGEST, RunConfig, load_config


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Attributes:
        key: its full name, ``train.lr``.
        type: of its value, in words, with the bounds of numbers.
        default: what it is where nobody says; ``None`` for a key that is then left out.
        about: what it means, in a line.
    """

    key: str
    type: str
    default: Any
    about: str


def keys(model: type[BaseModel] = RunConfig, prefix: str = "") -> Iterator[Key]:
    """Yield every key of a recipe, in the classes' order; a section that may be left out has the key itself too."""
    said = docstrings(model)
    for name, field in model.model_fields.items():
        key, section, listed = f"{prefix}{name}", _section(field.annotation), _listed(field.annotation)
        default = _default(field)
        if listed is not None:
            yield Key(key, "tables", default, said.get(name, ""))
            yield from keys(listed, f"{key}.NAME.")
        elif section is not None:
            if default is None:
                yield Key(key, "table", None, _line(inspect.getdoc(section)))
            yield from keys(section, f"{key}.")
        else:
            yield Key(key, _type(field.annotation, field.metadata), default, said.get(name, ""))


@functools.cache
def docstrings(model: type) -> Mapping[str, str]:
    """Return what stands below each field of a class, in one line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = _line(str(text.value.value))
    return found


def commented(start: str | None = None) -> str:
    """Return a recipe with every key, those that ``start`` does not set as comments; it reads back as ``start``.

    Args:
        start: as :func:`assay.config.load_config` takes it; ``None`` for the defaults.
    """
    given = load_config(start)
    stated = given.model_dump(mode="json", exclude_unset=True)
    lines = [
        "# A recipe: `assay train FILE` runs it. Every key is here; what begins with # has the value that it shows.",
        "# `assay parts` lists the parts that a method can be made of.",
    ]
    if "seed" in stated:
        lines.append(_item("seed", stated["seed"]))
    if stated.get("stages"):
        lines.append(_item("stages", stated["stages"]))
    for part in _tables(RunConfig, stated, ""):
        lines += ["", *part]
    return "\n".join(lines) + "\n"


def _tables(model: type[BaseModel], stated: Mapping[str, Any], prefix: str) -> Iterator[list[str]]:
    """Yield the lines of each table, of those within a table after it."""
    said, inner = docstrings(model), []
    lines = [f"[{prefix.rstrip('.')}]"] if prefix else []
    if prefix and (doc := _line(inspect.getdoc(model))):
        lines.insert(0, f"# {doc}")
    for name, field in model.model_fields.items():
        section, listed, default = _section(field.annotation), _listed(field.annotation), _default(field)
        if listed is not None:
            if name not in stated:
                block = [line for part in _tables(listed, {}, f"{prefix}{name}.") for line in ("", *part)][1:]
                block = [line.replace(f"[{name}]", f"[[{name}]]") for line in block]
                inner.append([*_about(said.get(name, "")), *(("# " + line.lstrip("# ")).rstrip() for line in block)])
            continue
        if section is not None:
            optional = default is None and name not in stated
            found = list(_tables(section, stated.get(name) or {}, f"{prefix}{name}."))
            inner += [["# " + line.lstrip("# ") for line in lines_] for lines_ in found] if optional else found
            continue
        if name in stated and not (default is None and stated[name] is None):
            if prefix:
                lines += [*_about(said.get(name, "")), _item(name, stated[name])]
        elif default is None:
            lines += [*_about(said.get(name, "")), f"# {name} = ...  # {_type(field.annotation, field.metadata)}"]
        else:
            lines += [*_about(said.get(name, "")), f"# {_item(name, default)}"]
    if lines:
        yield lines
    yield from inner


def _about(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 116)]


def _item(name: str, value: Any) -> str:
    return f"{name if re.fullmatch(r'[A-Za-z0-9_-]+', name) else json.dumps(name)} = {inline(value)}"


def inline(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_item(str(k), v) for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    return tomli_w.dumps({"x": value}).strip().removeprefix("x = ")


def _default(field: Any) -> Any:
    """What a key is where nobody says; ``None`` for one that is then left out, or that has to be given."""
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _listed(annotation: Any) -> type[BaseModel] | None:
    """Return the class of the tables that a key is a list of."""
    return _section(get_args(annotation)[0]) if get_origin(annotation) is list else None


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the class of a key that is a table of keys, also of one that may be left out."""
    if get_origin(annotation) is list:
        return None
    for kind in (annotation, *get_args(annotation)):
        if inspect.isclass(kind) and issubclass(kind, BaseModel):
            return kind
    return None


def _type(annotation: Any, metadata: typing.Iterable[Any] = ()) -> str:
    """Return a type in the words of a recipe: ``number, > 0``, ``"constant" or "linear"``."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(args[0], [m for field in args[1:] for m in getattr(field, "metadata", [field])])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(a, metadata) for a in args if a is not type(None))
    if origin is Literal:
        return " or ".join(f'"{a}"' for a in args)
    if origin in (list, tuple):
        return f"list of {_type(args[0])}"
    if origin is dict or annotation is dict:
        return "table"
    name = {bool: "true or false", int: "whole number", float: "number", str: "text"}.get(annotation, str(annotation))
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    bounds = [
        f"{sign} {value:,}"
        for m in metadata
        for at, sign in signs.items()
        if (value := getattr(m, at, None)) is not None and value < LARGEST  # those from there on only catch slips
    ]
    return ", ".join([name, *bounds]) if annotation in (int, float) else name


def _line(text: str | None) -> str:
    return re.sub(r"\s+", " ", (text or "").strip().replace("``", "")).strip()
