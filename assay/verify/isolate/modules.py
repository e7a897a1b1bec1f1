"""What another process must import before it can make a part of a user's own."""

from __future__ import annotations

import importlib
import multiprocessing.spawn
import sys
from collections.abc import Iterable
from typing import Any

from assay.errors import UsageError

MAIN_KEYS = ("init_main_from_name", "init_main_from_path")

Imports = tuple[list[str], dict[str, Any] | None]
"""Names of modules, and how the main script is run again, ``None`` where it is not needed."""


def imports_of(modules: Iterable[str], what: str, main: bool = False) -> Imports:
    """Return what another process imports to have what ``modules`` define.

    Args:
        modules: names; those of assay itself are left out.
        what: is made there, for the error.
        main: whether the main script is needed though it is not among the modules.

    Raises:
        UsageError: the main script is needed, and there is none.
    """
    outside = sorted({m for m in modules if m.partition(".")[0] != "assay"})
    if "__main__" not in outside and not main:
        return outside, None
    data = multiprocessing.spawn.get_preparation_data("pool")
    script = {k: v for k, v in data.items() if k in MAIN_KEYS}
    if not script and not hasattr(sys.modules["__main__"], "__file__"):
        raise UsageError(f"{what} is defined interactively; put it into a module, so that workers find it")
    return [m for m in outside if m != "__main__"], script


def import_all(imports: Imports) -> None:
    """Import what :func:`imports_of` has named; a script as ``multiprocessing`` does it."""
    modules, main = imports
    if main is not None:
        multiprocessing.spawn.prepare(main)
    for module in modules:
        importlib.import_module(module)
