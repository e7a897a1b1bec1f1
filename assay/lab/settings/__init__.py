"""The lab's settings, found by name: one module each, few and shared, so that papers can be read against each other."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from assay.errors import UsageError, nearest
from assay.from_file import from_file, is_reference
from assay.registry import call


class Setting(Protocol):
    """A small controlled task in which an arm can be run. Its module offers it as ``Setting``."""

    def describe(self) -> dict[str, Any]:
        """Return every knob, as JSON can hold it."""
        ...

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Run one arm on one seed, keeping files in ``folder``; return what was measured.

        All arms of a seed start from the same state and see the same draws as far as they behave alike. What they
        share may be kept beside their folders. A run that was interrupted goes on.
        """
        ...


def settings() -> dict[str, type[Setting]]:
    """Return every setting by its name, sorted."""
    return {name: importlib.import_module(place).Setting for name, place in sorted(_places().items())}


def load(name: str, options: Mapping[str, Any]) -> Setting:
    """Return the setting ``name``, or the one that ``path/to/file.py:Name`` names, with ``options``.

    Raises:
        UsageError: there is no such setting or option.
    """
    if is_reference(name):
        of: Any = from_file(name, "setting")
    elif name in _places():
        of = importlib.import_module(_places()[name]).Setting
    else:
        raise UsageError(f"the lab has no setting {name!r}{nearest(name, _places())}")
    made: Setting = call(of, options, f"setting {name!r}")
    return made


def _places() -> dict[str, str]:
    modules = (m.name for m in pkgutil.walk_packages(__path__, f"{__name__}.") if not m.ispkg)
    return {m.rpartition(".")[2]: m for m in modules if not m.rpartition(".")[2].startswith("_")}
