"""The lab's settings, found by name: one module each, few and shared, so that papers can be read against each other."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from assay.errors import UsageError, nearest
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


def load(name: str, options: Mapping[str, Any]) -> Setting:
    """Return the setting ``name`` with ``options``; raise UsageError if there is no such setting or option."""
    places = {m.name.rpartition(".")[2]: m.name for m in pkgutil.walk_packages(__path__, f"{__name__}.") if not m.ispkg}
    known = [place for place in places if not place.startswith("_")]
    if name not in known:
        raise UsageError(f"the lab has no setting {name!r}{nearest(name, known)}")
    made: Setting = call(importlib.import_module(places[name]).Setting, options, f"setting {name!r}")
    return made
