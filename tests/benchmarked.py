"""Scripts of the benchmarks as modules, whose definitions tests share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def benchmark(name: str) -> ModuleType:
    """Return ``benchmarks/NAME.py``, loaded once."""
    full = f"benchmark_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).parents[1] / "benchmarks" / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[full] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]
