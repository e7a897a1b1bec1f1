"""A method by what a recipe writes: ``grpo``, the id of a paper, parts by seam."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from assay import catalogue
from assay.errors import UsageError
from assay.method.base import SEAMS, Method
from assay.method.fit import check_parts
from assay.method.standard import standard, standard_name
from assay.registry import build, call
from assay.rewards.spec import reward_of


def make_method(name: str | Method = "grpo", options: Mapping[str, Any] | None = None, **parts: Any) -> Method:
    """Return a method with the given seams replaced.

    Args:
        name: ``"grpo"`` or another standard method's, see :func:`assay.method.standard.standard`, the id of a paper, or
            a method already made.
        options: of the paper's method.
        parts: per seam a name, a table with ``name`` and options, a table without ``name`` that changes options of the
            method's own part, the id of a paper for what it puts there, or a part; ``None`` keeps the method's own.

    Raises:
        UsageError: unknown method, part or option; a part that would undo or ignore another, see
        :mod:`assay.method.fit`.
    """
    if isinstance(name, Method) and options:
        raise UsageError(f"method.options ({', '.join(options)}) are for a method named by its id, not for one made")
    given = {seam: spec for seam, spec in parts.items() if spec is not None}
    before = method = name if isinstance(name, Method) else _named(name, _required(name, options or {}, given))
    for seam, spec in given.items():
        if isinstance(spec, Mapping) and "name" not in spec and not (seam == "reward" and "function" in spec):
            spec = _adjusted(seam, getattr(method, seam), spec)  # noqa: PLW2901
        method = replace(method, **{seam: _made(seam, spec)})
    wanted = getattr(method.credit, "rollout", None)
    if wanted is not None and method.rollout == "single_turn" and "rollout" not in given:
        method = replace(method, rollout=wanted)
    check_parts(method, before, given.keys())
    return method


def _made(seam: str, spec: Any) -> Any:
    """Return the part that ``spec`` describes; the id of a paper stands for what that paper puts at ``seam``."""
    options = {} if isinstance(spec, str) else {**spec} if isinstance(spec, Mapping) else None
    if options is not None:
        name = spec if isinstance(spec, str) else options.pop("name", None)
        if isinstance(name, str) and re.fullmatch(r"[sS]\d{3}", name):
            row = catalogue.find(name)
            if row.factory is not None and seam not in row.seams:
                raise UsageError(f"{row.id} ({row.name}) brings no {seam}; it changes {', '.join(row.seams)}")
            if wanted := catalogue.lacking(row, options):
                raise UsageError(
                    f"{seam} of paper {row.id} ({row.name}) needs {', '.join(wanted)}: method.{seam}.name={row.id} "
                    f"method.{seam}.{wanted[0]}=...; `assay papers show {row.id}` says what it may be"
                )
            return getattr(of_paper(name, **options), seam)
    if seam == "reward":
        return reward_of(spec)
    return build(seam, spec) if seam in SEAMS else spec


def _required(name: str, options: Mapping[str, Any], parts: dict[str, Any]) -> Mapping[str, Any]:
    """Return the options of a paper's method, with those it cannot do without that stand in a part's table instead.

    They are taken out of ``parts``: ``method = "S075"`` with ``reward = {judge = ...}`` is S075 with that judge.
    """
    if not re.fullmatch(r"[sS]\d{3}", name):
        return options
    for key in catalogue.lacking(catalogue.find(name), options):
        for seam, table in parts.items():
            if isinstance(table, Mapping) and "name" not in table and key in table:
                options = {**options, key: table[key]}
                parts[seam] = {k: v for k, v in table.items() if k != key}
    return options


def _named(name: str, options: Mapping[str, Any]) -> Method:
    if (known := standard_name(name)) is not None:
        if options:
            raise UsageError(f"method {name!r} has no option {next(iter(options))!r}: set those of its parts, by seam")
        parts = {seam: spec for seam, spec in standard()[known].items() if seam != "name"}
        return replace(Method(), **{seam: _made(seam, spec) for seam, spec in parts.items()})
    try:
        return of_paper(name, **options)
    except UsageError:
        names = [*standard(), *catalogue.short_names()]
        close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
        if close and close[0] in standard():
            raise UsageError(f"no method is called {name!r}; did you mean {close[0]!r}?") from None
        raise


def _adjusted(seam: str, part: Any, options: Mapping[str, Any]) -> Any:
    """Return ``part``, made or as a specification, with some options changed."""
    if isinstance(part, str):
        return {"name": part, **options}
    if isinstance(part, Mapping):
        return {**part, **options}
    if not is_dataclass(part) or isinstance(part, type):
        also = ", or function = 'file.py:NAME'" if seam == "reward" else ""
        raise UsageError(
            f"method.{seam} needs a name{also}: without one it is {type(part).__name__}, of which "
            f"{next(iter(options))!r} cannot be set"
        )
    own = {f.name: getattr(part, f.name) for f in fields(part) if f.init}
    return call(type(part), options, f"{seam} {type(part).__name__}", own)


def of_paper(key: str, **options: Any) -> Method:
    """Return the method of a paper, made with ``options``.

    Raises:
        UsageError: unknown paper, a paper without an implementation, one that is no training method, or a bad option.
    """
    row = catalogue.find(key)
    made = catalogue.make(key, **options)
    if not isinstance(made, Method):
        raise UsageError(f"{row.id} ({row.name}) is no training method: it provides {', '.join(row.seams)}")
    return made
