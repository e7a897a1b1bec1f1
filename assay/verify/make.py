"""A verifier from what names it: a part, a function or class of one's own, or nothing for the task's kind."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from assay.errors import UsageError, nearest
from assay.from_file import module_of
from assay.registry import build, call, part
from assay.verify.base import Verifier
from assay.verify.guard import raised
from assay.verify.kind import KindVerifier


@part("verify", "by_kind")
def by_kind(overrides: Mapping[str, Any] | None = None) -> Verifier:
    """Judges each task with the verifier its ``kind`` names, see :class:`~assay.verify.kind.KindVerifier`.

    Args:
        overrides: verifiers by kind that come before the registered ones: names, tables or callables.
    """
    return KindVerifier({kind: make_verifier(spec) for kind, spec in (overrides or {}).items()})


def make_verifier(spec: Any = None) -> Verifier:
    """Make the verifier that ``spec`` describes.

    Args:
        spec: the name of a part; ``"package.module:attribute"`` or ``"path/to/file.py:attribute"``; a table with such a
            ``name`` and options; a callable, which is returned as it is; or ``None`` for the verifier of each task's
            kind. A class that is named is made with the options, a function gets them as keywords with every call.

    Raises:
        UsageError: there is no such part, module, file or attribute, it has no such option, or it cannot be called.
    """
    if spec is None:
        return KindVerifier()
    table = {"name": spec} if isinstance(spec, str) else spec
    if isinstance(table, Mapping) and ":" in str(table.get("name", "")):
        options = dict(table)
        verifier = _loaded(str(options.pop("name")), options)
    else:
        verifier = build("verify", table)
    if not callable(verifier):
        raise UsageError(f"a verifier is a name, a table or a callable, not a {type(verifier).__name__}")
    return verifier


def _loaded(reference: str, options: Mapping[str, Any]) -> Verifier:
    where, _, path = reference.rpartition(":")
    module = module_of(where, f"verifier {reference!r}") if where.endswith(".py") else _module(where, reference)
    found: Any = module
    for name in path.split("."):
        known = [k for k, v in vars(found).items() if callable(v) and not k.startswith("_")]
        found = getattr(found, name, None)
        if found is None:
            raise UsageError(f"verifier {reference!r}: {where} has no {path!r}{nearest(path, known)}")
    if inspect.isclass(found):
        return call(found, options, f"verifier {reference!r}")
    if not options:
        return found
    parameters = inspect.signature(found).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for key in options:
            if key not in parameters:
                raise UsageError(f"verifier {reference!r} has no option {key!r}{nearest(key, list(parameters)[2:])}")
    return functools.partial(found, **options)


def _module(name: str, reference: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        hint = "; write package.module:attribute or path/to/file.py:attribute"
        own = isinstance(error, ModuleNotFoundError) and name.startswith(error.name or "-")
        raise UsageError(_failed(reference, f"module {name!r}", error) + (hint if own else "")) from None


def _failed(reference: str, what: str, error: BaseException) -> str:
    return f"verifier {reference!r}: {raised(what, error)}"
