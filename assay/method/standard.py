"""The field's standard methods, by the names that everybody knows them by."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def standard() -> Mapping[str, Mapping[str, Any]]:
    """Return the standard methods by name, each with what it changes of grpo, as a recipe's ``[method]`` writes it."""
    return {name: method for name, method in _file().items() if name != "notes"}


def note(name: str) -> str:
    """Return what is other in a standard method than in its paper; empty for nothing."""
    return str(_file()["notes"].get(name, ""))


@cache
def _file() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(resources.files("assay.method").joinpath("standard.toml").read_text(encoding="utf-8"))


def standard_name(name: str) -> str | None:
    """Return the name of the standard method that is meant, ``Dr. GRPO`` for one; ``None`` if none is."""
    plain = {_plain(known): known for known in standard()}
    return plain.get(_plain(name))


def _plain(name: str) -> str:
    return re.sub(r"[\s._-]", "", name.lower())
