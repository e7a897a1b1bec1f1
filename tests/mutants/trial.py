"""Run tests on a module with a fault in it, in a forked process that has the slow libraries loaded already."""

from __future__ import annotations

import ast
import gc
import importlib
import os
import resource
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from mutants.faults import Fault
from mutants.ran import Chosen, Ran, Watch, file_of
from mutants.scope import ROOT, source

LOADED = ("scipy.stats", "sympy", "torch", "torch._dynamo", "hypothesis.strategies", "transformers", "conftest")
LOADED += ("pandas", "pyarrow.parquet", "safetensors.torch", "transformers.models.llama.modeling_llama", "tokenizers")
LOADED += ("assay.batch", "assay.config", "assay.ops", "assay.policies.tabular", "assay.tasks.configured")
"""What is imported before the first fork: libraries, and of assay what lies below the parts that papers bring."""
OPTIONS = ("--assert=plain", "--exitfirst", "--tb=native", "--override-ini=addopts=")
OPTIONS += ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
CLEAN = 0
"""The exit status of tests that all pass."""


def load() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in LOADED:
        importlib.import_module(name)
    # What is loaded here is never garbage, and to look through it, which copies its pages, took longest.
    gc.freeze()


def watched(tests: Sequence[str], seconds: int, modules: Sequence[str]) -> Ran | None:
    """Run ``tests`` without a fault; what they ran of ``modules``, or ``None`` where one fails."""
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch([source(module) for module in modules], Path(folder, "ran.json"))
        status = os.waitpid(start(tests, seconds, watch), 0)[1]
        return watch.read() if status == CLEAN else None


def faulty(ran: Ran, seconds: int, module: str, fault: Fault) -> int:
    """Start the tests that can notice a fault; their process's id."""
    tests = ran.tests(source(module), fault.lines)
    files = dict.fromkeys(map(file_of, tests))
    return start(files, seconds, Chosen(tests, len(tests) == len(ran.seconds)), module, fault.tree)


def start(tests: Iterable[str], seconds: int, plugin: object, module: str = "", tree: ast.Module | None = None) -> int:
    """Start ``tests`` in a process that may take ``seconds`` of a CPU, with ``tree`` for a module's text; its id.

    Raises:
        RuntimeError: the module is imported here already, so that a fault in it would not be seen.
    """
    if module in sys.modules:
        raise RuntimeError(f"{module} is imported before the tests are")
    if child := os.fork():
        return child
    try:
        os._exit(inside(tests, seconds, plugin, module, tree))
    finally:
        os._exit(3)


def inside(tests: Iterable[str], seconds: int, plugin: object, module: str, tree: ast.Module | None) -> int:
    """Run the tests in this process and return pytest's exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.chdir(ROOT)
    if tree is not None:
        put(module, ast.unparse(tree))
    return int(pytest.main([*OPTIONS, *tests], [plugin]))


def put(module: str, text: str) -> None:
    """Let this process read ``text`` as a module's source, whichever of Python's loaders asks for it."""
    path, read, stat = str(source(module)), SourceFileLoader.get_data, SourceFileLoader.path_stats

    def get_data(loader: SourceFileLoader, of: str) -> bytes:
        return text.encode() if of == path else read(loader, of)

    def path_stats(loader: SourceFileLoader, of: str) -> Mapping[str, Any]:
        if of == path:
            raise OSError("not from a file: its compiled form must not be read or kept")
        return stat(loader, of)

    SourceFileLoader.get_data, SourceFileLoader.path_stats = get_data, path_stats  # type: ignore[method-assign]
