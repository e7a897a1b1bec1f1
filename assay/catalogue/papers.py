"""The index of papers, merged with the methods that register themselves.

``index.json`` has one row per paper. A file ``assay/papers/FAMILY/sNNN_name.py`` implements paper SNNN and registers a
factory with :func:`paper`. Files are imported when first asked for: listing an index without implementations, or
looking up one paper, loads no tensor library on behalf of the others.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from assay.catalogue.mutants import ENOUGH, scores
from assay.errors import UsageError, nearest
from assay.registry import call

F = TypeVar("F", bound=Callable[..., Any])
State = Literal["absent", "partial", "exact"]

PACKAGE = "assay.papers"
INDEX = "assay.catalogue"
UNLISTED = "what the paper cannot do without is not listed yet"
"""Why a row without essentials is partial."""
UNMEASURED = "how many small faults in its code its tests notice is not recorded yet, or less than nine in ten"
"""Why a row with all essentials is still partial, see :mod:`assay.catalogue.mutants`."""
SEAMS = (
    "tasks",
    "curriculum",
    "rollout",
    "verify",
    "reward",
    "credit",
    "select",
    "objective",
    "inference",
    "evaluate",
    "policies",
    "envs",
)


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A paper and how far assay has it.

    Attributes:
        id: ``S001`` ... ``S226``.
        title: the paper's.
        family: ``rewards``, ``data``, ``objectives``, ``judges``, ``multimodal_eval``, ``agents`` or ``process``.
        arxiv: arXiv number, where known.
        name: what the method is called.
        seams: what it changes against the default, in the order of the data flow.
        state: ``absent`` not implemented; ``exact`` all that the paper cannot do without is there, each tested, and the
            tests notice nine in ten small faults; ``partial`` something is missing or has a stand-in, see ``lacks``.
            Whether the lab recorded the effect that the paper claims is told by :mod:`assay.lab.results`.
        factory: makes the method; ``None`` while absent.
        essentials: what the paper cannot do without, each with the test that shows it, as pytest names it.
        choices: constants and readings that the paper leaves open, and what they are here.
        lacks: why the row is ``partial``, in a line; empty where it is not.
    """

    id: str
    title: str
    family: str
    arxiv: str | None
    name: str
    seams: tuple[str, ...]
    state: State = "absent"
    factory: Callable[..., Any] | None = None
    essentials: tuple[tuple[str, str], ...] = ()
    choices: tuple[str, ...] = ()
    lacks: str = ""


WRITTEN: dict[str, Any] = {"arxiv": None, "seams": (), "essentials": {}, "choices": (), "lacks": ""}
"""What ``@paper(...)`` says beside id and name, in the order of :func:`_merged`, and where it is left out."""

_REGISTERED: dict[str, PaperRow] = {}


def paper(
    id: str,
    name: str,
    *,
    arxiv: str | None = None,
    seams: Sequence[str],
    essentials: Mapping[str, str] | None = None,
    choices: Sequence[str] = (),
    lacks: str = "",
) -> Callable[[F], F]:
    """Register a factory, usually of an :class:`assay.method.Method`, as the implementation of paper ``id``.

    Args:
        id: a row of the index.
        name: what the paper calls its method.
        arxiv: must agree with the index where the index has a number.
        seams: what the method replaces.
        essentials: what the paper cannot do without, in its own terms, and for each the test that shows it: the name of
            a test of the paper's own test file, or ``folder/test_file.py::name`` below ``tests/``.
        choices: constants and readings that the paper leaves open, each with what it is here.
        lacks: what is missing or has a stand-in, in a line; empty if all essentials are there.

    Raises:
        ValueError: an id, seam or arXiv number that contradicts the index, or a second factory for the same paper.
    """
    stated = partial(_merged, id, name, arxiv, seams, essentials or {}, choices, lacks)
    stated(__name__)

    def register(factory: F) -> F:
        known = _REGISTERED.get(id)
        if known is not None and known.factory is not None and _origin(known.factory) != _origin(factory):
            raise ValueError(f"{id} is registered twice: by {_origin(known.factory)} and {_origin(factory)}")
        _REGISTERED[id] = replace(stated(factory.__module__), factory=factory)
        return factory

    return register


def _merged(
    id: str,
    name: str,
    arxiv: str | None,
    seams: Sequence[str],
    essentials: Mapping[str, str],
    choices: Sequence[str],
    lacks: str,
    module: str,
) -> PaperRow:
    """The row of the index with what an implementation in ``module`` says of itself, the factory apart."""
    row = _index().get(id)
    if row is None:
        raise ValueError(f"no paper has the id {id!r} in {INDEX}/index.json")
    if unknown := sorted(set(seams) - set(SEAMS)):
        raise ValueError(f"{id} names unknown seams {unknown}; the seams are {', '.join(SEAMS)}")
    if arxiv is not None and row.arxiv is not None and arxiv != row.arxiv:
        raise ValueError(f"{id} is arXiv {row.arxiv} in {INDEX}/index.json and arXiv {arxiv} where it registers")
    shown = tuple((what, _test(test, module)) for what, test in essentials.items())
    score = scores().get(id)
    noticed = score is not None and score.share >= ENOUGH
    missing = lacks or ("" if shown else UNLISTED) or ("" if noticed else UNMEASURED)
    return replace(
        row,
        name=name,
        arxiv=arxiv or row.arxiv,
        seams=tuple(s for s in SEAMS if s in seams),
        state="partial" if missing else "exact",
        essentials=shown,
        choices=tuple(choices),
        lacks=missing,
    )


def rows() -> list[PaperRow]:
    """Return every paper in the order of its id, with the state of its implementation."""
    modules = _modules()
    return [_load(row, modules) for row in _index().values()]


def listed() -> list[PaperRow]:
    """Return every paper as :func:`rows` does, but for its factory: read from the sources, as importing them all takes
    seconds; only a file whose ``@paper(...)`` is not written out is imported."""
    modules = _modules()
    return [written(row, modules[row.id]) if row.id in modules else row for row in _index().values()]


def body_of(module: str) -> list[ast.stmt]:
    """Return what a module's source says, which is not imported."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body


def written(row: PaperRow, module: str) -> PaperRow:
    """Return a row of the index with what its module says of itself in ``@paper(...)``, without the factory."""
    body = body_of(module)
    texts = Texts(body)
    for decorator in (d for node in body for d in getattr(node, "decorator_list", ())):
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "paper":
            try:
                id, name = (ast.literal_eval(texts.visit(argument)) for argument in decorator.args)
                said = {str(k.arg): ast.literal_eval(texts.visit(k.value)) for k in decorator.keywords}
            except ValueError:
                break
            return _merged(id, name, **{key: said.get(key, none) for key, none in WRITTEN.items()}, module=module)
    return replace(_load(row, {row.id: module}), factory=None)


class Texts(ast.NodeTransformer):
    """Writes out texts that name constants of the module: the file that several tests are in."""

    def __init__(self, body: Sequence[ast.stmt]):
        self.known: dict[str, Any] = {}
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                self.known |= {target.id: node.value.value for target in node.targets if isinstance(target, ast.Name)}

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in node.values]
        said = [self.known.get(p.id) if isinstance(p, ast.Name) else getattr(p, "value", None) for p in parts]
        texts = [s for s in said if isinstance(s, str)]
        return ast.Constant("".join(texts)) if len(texts) == len(said) else node


def short_names() -> list[str]:
    """Return the short names of all papers."""
    return [row.name for row in _index().values()]


def find(key: str) -> PaperRow:
    """Return the paper of an id (``S014``) or short name (``dispo``), in any case, or raise UsageError."""
    return _load(*entry(key))


def entry(key: str) -> tuple[PaperRow, dict[str, str]]:
    """Return the index's row of an id or short name, and the implementing modules by id; nothing is imported.

    Raises:
        UsageError: there is none.
    """
    index = _index()
    row = index.get(key.upper()) or next((r for r in index.values() if r.name == key.lower()), None)
    if row is None:
        if re.fullmatch(r"[sS]?\d+", key):
            raise UsageError(f"no paper has the id {key!r}; ids run from {min(index)} to {max(index)}")
        raise UsageError(f"no paper is called {key!r}{_suggest(key, short_names())}")
    return row, _modules()


def make(key: str, **options: Any) -> Any:
    """Return what a paper's factory makes with ``options``, of most papers a method.

    Raises:
        UsageError: unknown paper, a paper without an implementation, or a bad option.
    """
    row = find(key)
    if row.factory is None:
        raise UsageError(f"{row.id} ({row.name}) is not implemented; `assay papers` lists what is")
    if wanted := lacking(row, options):
        raise UsageError(
            f"paper {row.id} ({row.name}) needs {', '.join(wanted)}: method.options.{wanted[0]}=...; "
            f"`assay papers show {row.id}` says what it may be"
        )
    return call(row.factory, options, f"paper {row.id} ({row.name})")


def lacking(row: PaperRow, options: Mapping[str, Any]) -> list[str]:
    """Return the options that a paper's factory cannot do without and that are not among ``options``."""
    known = {} if row.factory is None else inspect.signature(row.factory).parameters
    return [name for name, p in known.items() if p.default is p.empty and name not in options]


@functools.cache
def _index() -> dict[str, PaperRow]:
    """The shipped index by id, every state absent."""
    text = resources.files(INDEX).joinpath("index.json").read_text(encoding="utf-8")
    return {row["id"]: PaperRow(**{**row, "seams": tuple(row["seams"])}) for row in json.loads(text)}


@functools.cache
def _modules() -> dict[str, str]:
    """Names of the implementing modules by paper id; nothing is imported."""
    path = importlib.import_module(PACKAGE).__path__
    names = (info.name for info in pkgutil.walk_packages(path, f"{PACKAGE}."))
    return {m[1].upper(): name for name in names if (m := re.search(r"\.(s\d{3})_\w+$", name))}


def _load(row: PaperRow, modules: dict[str, str]) -> PaperRow:
    """Import the module that implements ``row``, if there is one, and return what it registered."""
    if row.id in modules:
        module = modules[row.id]
        importlib.import_module(module)
        if row.id not in _REGISTERED:
            raise ValueError(f"{module} registers no paper {row.id}; decorate its factory with @paper({row.id!r}, ...)")
    return _REGISTERED.get(row.id, row)


def _test(name: str, module: str) -> str:
    """A test as pytest names it from the checkout's root; a bare name is of the paper's own test file."""
    if "::" in name:
        return f"tests/{name}"
    *_, family, file = module.split(".")
    return f"tests/papers/{family}/test_{file}.py::{name}"


def _suggest(word: str, known: list[str]) -> str:
    """The nearest name, without reciting two hundred where none is near."""
    hint = nearest(word.lower(), known)
    return hint if hint.startswith("; did") else "; `assay papers` lists all of them"


def _origin(factory: Callable[..., Any]) -> str:
    return f"{factory.__module__}.{factory.__qualname__}"
