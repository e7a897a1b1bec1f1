"""Which code a verifier is: a hash of its source, so that measured rates are not believed of another version."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def source_hash(thing: Any, *more: str) -> str:
    """SHA-256 of the modules behind a verifier: the one that defines it, and those of its package that it uses.

    ``more`` are hashes that are mixed in.

    Followed are imports and module names in text (as workers are given theirs) within the package (``assay.verify``,
    for a verifier of assay's), or within the folder of a module that is in no package. The standard library and other
    packages are left out: their versions are a matter of the environment.
    """
    own = _source_hash(thing)
    return hashlib.sha256("".join([own, *sorted(more)]).encode()).hexdigest() if more else own


def _source_hash(thing: Any) -> str:
    made = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    module = sys.modules.get(getattr(made, "__module__", ""))
    if module is None or not getattr(module, "__file__", None):
        return hashlib.sha256(repr(made).encode()).hexdigest()
    name, home = module.__name__, Path(str(module.__file__))
    inside = "assay.verify" if name.startswith("assay.verify.") else name.partition(".")[0]
    files = {name: home}
    waiting = [name]
    while waiting:
        known = waiting.pop()
        for used in _names(files[known], known):
            # `from package import module` and `from module import thing` look alike: both are tried.
            for candidate in (used, used.rpartition(".")[0]):
                near = candidate.startswith(f"{inside}.") if "." in name else "." not in candidate
                path = _file(candidate) if near and candidate not in files else None
                if path is not None and ("." in name or path.parent == home.parent):
                    files[candidate] = path
                    waiting.append(candidate)
    return _of_files(files)


def command_hash(words: list[str]) -> str:
    """SHA-256 of a command's words and of the contents of those that are files, the program itself included."""
    files = {}
    for i, word in enumerate(words):
        path = Path((shutil.which(word) or word) if i == 0 else word)
        if path.is_file():
            files[word] = path
    found = hashlib.sha256(shlex.join(words).encode())
    found.update(_of_files(files).encode())
    return found.hexdigest()


def _names(path: Path, module: str) -> Iterator[str]:
    """Dotted names that a source file imports or writes as text."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    parent = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = parent.split(".")[: len(parent.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split(".")
            if len(words) > 1 and all(w.isidentifier() for w in words):
                yield node.value


def _file(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    path = Path(spec.origin) if spec is not None and spec.origin else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _of_files(files: dict[str, Path]) -> str:
    found = hashlib.sha256()
    # The name of a file's module may be made up when it is loaded; the file's own does not change.
    for path in sorted(files.values()):
        found.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
