"""A user's own code: what ``path/to/file.py:Name`` in a recipe stands for."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from hashlib import blake2b
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.errors import UsageError, nearest


class AsWritten(SourceFileLoader):
    """Compiles a file each time: the cache of compiled files takes one that was changed within a second, and is as long
    as before, for the one it was."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path} is not to be read from the cache, nor kept there")


def is_reference(spec: str) -> bool:
    """Whether a name in a recipe stands for something in a Python file."""
    return re.fullmatch(r".*\.py:\w*", spec, re.DOTALL) is not None


def from_file(reference: str, what: str) -> Any:
    """Return what ``path/to/file.py:Name`` names, which must be callable.

    Args:
        reference: see above.
        what: it is to be, for the error: ``reward function``.

    Raises:
        UsageError: there is no such file, it raises when it is run, or it has no such name.
    """
    path, _, name = reference.rpartition(":")
    where = f"{what} {reference!r}"
    if not path:
        raise UsageError(f"{where}: no file {reference!r}; write path/to/file.py:name")
    module = module_of(path, where)
    if not callable(getattr(module, name, None)):
        known = [k for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        raise UsageError(f"{where}: {path} has no {what.split()[-1]} {name!r}{nearest(name, known)}")
    return getattr(module, name)


def code_marks(value: Any) -> dict[str, str]:
    """Return a digest of every Python file that plain data names as ``path/to/file.py:Name``, by its path.

    Files that are not there are left out, and so is what they import.
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return {path: mark for inner in value for path, mark in code_marks(inner).items()}
    if not isinstance(value, str) or not is_reference(value):
        return {}
    path = value.rpartition(":")[0]
    try:
        return {path: blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()}
    except (OSError, ValueError):
        return {}


def described(made: Any) -> str:
    """Return where a Python object's function or class is defined, ``path/to/file.py:Name``; of a list so for each, or
    how many there are of one kind."""
    if isinstance(made, list | tuple):
        each = [described(inner) for inner in made]
        return f"{len(each)} {each[0]}" if len(set(each)) == 1 < len(each) else ", ".join(each)
    if isinstance(made, str | Mapping):
        return str(made)
    of = made if hasattr(made, "__qualname__") else type(made)
    try:
        place = inspect.getsourcefile(inspect.unwrap(of))
    except TypeError:  # built in, or made where there is no file
        place = None
    return f"{place or of.__module__}:{of.__qualname__}"


def module_of(path: str, where: str) -> ModuleType:
    """Run a Python file and return it as a module; what lies beside it can be imported, as for a script.

    Raises:
        UsageError: there is no such file, or it raises; the line begins with ``where``.
    """
    if not Path(path).is_file():
        raise UsageError(f"{where}: no file {path!r}; write path/to/file.py:name")
    file = Path(path).resolve()
    # Unique by the whole path, and found by its name again: dataclasses look there, and so does pickle.
    name = f"{file.stem}_{blake2b(str(file).encode(), digest_size=6).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, file, loader=AsWritten(name, str(file)))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())[:500]
        raise UsageError(f"{where}: {path} raised {type(error).__name__}" + (f": {said}" if said else "")) from error
    return module
