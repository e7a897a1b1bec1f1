"""Selectors of places in code, what they resolve to, and where a place has gone after the code has changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROLES = ("definition", "body", "name")
_CURSOR = re.compile(r"(?P<path>[^@#]+)@L(?P<line>\d+):C(?P<column>\d+)(?:-L(?P<end>\d+):C(?P<last>\d+))?")
_SYMBOL = re.compile(r"py://(?P<module>[\w.]+)#(?P<name>[\w.]+)(?::(?P<role>\w+))?")
_TREE = re.compile(r"ast://(?P<path>[^#]+)#(?P<steps>\w+(?:\[\d+\])?(?:/\w+(?:\[\d+\])?)*)")
NEAR = 40.0
"""Lines at which the proximity of two places has fallen to a half."""


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """``[start, end)`` of a file, lines and columns from 1."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place, how sure it is in [0, 1], and why: the parts of its score."""

    place: Range
    score: float
    evidence: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A piece of text with what stands around it, by which it is found again.

    Attributes:
        path: where it was.
        line: where it was.
        snippet: the text.
        name: of the definition that it was in, as ``Class.method``; empty for none.
    """

    path: str
    line: int
    snippet: str
    name: str = ""


def score(tree: float, module: float, tokens: float, proximity: float) -> float:
    """Return 0.5 tree + 0.2 module + 0.2 tokens + 0.1 proximity, each in [0, 1]."""
    # Twelve digits, so that what is sure is 1, and what is alike ties.
    return round(0.5 * tree + 0.2 * module + 0.2 * tokens + 0.1 * proximity, 12)


def resolve(selector: str, files: Mapping[str, str]) -> list[Candidate]:
    """Return the places a selector names, the best first; none where it names nothing, or cannot be read.

    - ``a/b.py@L3:C5`` a point, ``a/b.py@L3:C5-L4:C1`` a range;
    - ``py://a.b#Class.method:role`` a definition, its ``body`` or its ``name``; where the module has none of this name
      those of other modules, and of methods, are candidates;
    - ``ast://a/b.py#Class/method/if[1]`` by kinds or names of nodes, the n-th of those that fit, from 0.
    """
    if found := _CURSOR.fullmatch(selector):
        return _point(found, files)
    if found := _SYMBOL.fullmatch(selector):
        return _symbol(found["module"], found["name"], found["role"] or "definition", files)
    if found := _TREE.fullmatch(selector):
        return _path(found["path"], found["steps"].split("/"), files)
    return []


def _point(found: re.Match[str], files: Mapping[str, str]) -> list[Candidate]:
    lines = files.get(found["path"], "").splitlines()
    line, column = int(found["line"]), int(found["column"])
    end, last = int(found["end"] or line), int(found["last"] or column)
    inside = (1 <= line <= end <= len(lines)) and (line, column) <= (end, last) and column >= 1
    if not inside or column > len(lines[line - 1]) + 1 or last > len(lines[end - 1]) + 1:
        return []
    return [Candidate(Range(found["path"], line, column, end, last), 1.0, {"exact": 1.0})]


def _symbol(module: str, name: str, role: str, files: Mapping[str, str]) -> list[Candidate]:
    if role not in ROLES:
        return []
    out = []
    for path, text in files.items():
        for own, node in _named(text):
            if own.rpartition(".")[2] != name.rpartition(".")[2]:
                continue
            here = module_of(path)
            parts = {
                "ast": 1.0 if own == name else 0.6,
                "module": 1.0 if here == module else float(here.rpartition(".")[2] == module.rpartition(".")[2]) / 2,
                "tokens": jaccard(own, name),
                "proximity": 1.0,
            }
            out.append(Candidate(_range(path, node, role, text), score(*parts.values()), parts))
    return ordered(out)


def _path(path: str, steps: Sequence[str], files: Mapping[str, str]) -> list[Candidate]:
    try:
        node: ast.AST = ast.parse(files.get(path, ""))
    except (SyntaxError, ValueError):
        return []
    for step in steps:
        kind, _, number = step.rstrip("]").partition("[")
        fits = [one for one in ast.walk(node) if one is not node and _fits(one, kind)]
        if int(number or 0) >= len(fits):
            return []
        node = fits[int(number or 0)]
    return [Candidate(_range(path, node, "definition", files[path]), 1.0, {"ast": 1.0})]


def _fits(node: ast.AST, kind: str) -> bool:
    named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == kind
    return hasattr(node, "lineno") and (named or type(node).__name__.lower() == kind.lower())


def relocate(anchor: Anchor, files: Mapping[str, str], unchanged: bool = False) -> list[Candidate]:
    """Return where a piece of text has gone, the best first, by score, path and place.

    Where the file is known to be ``unchanged`` it stands where it was, surely. Else every run of as many lines is
    compared: the definition it is in, the file, the words it has in common, and how far away it is.
    """
    lines = anchor.snippet.splitlines() or [""]
    if unchanged:
        text = files.get(anchor.path, "").splitlines()
        if anchor.line + len(lines) - 1 > len(text):
            return []
        return [Candidate(_lines(anchor.path, anchor.line, len(lines), text), 1.0, {"exact": 1.0})]
    out = []
    for path, whole in files.items():
        text, inside = whole.splitlines(), _owners(whole)
        for start in range(1, len(text) - len(lines) + 2):
            tokens = jaccard("\n".join(text[start - 1 : start - 1 + len(lines)]), anchor.snippet)
            if tokens < 0.3:
                continue
            parts = {
                "ast": float(inside.get(start, "") == anchor.name),
                "module": float(path == anchor.path),
                "tokens": tokens,
                "proximity": NEAR / (NEAR + abs(start - anchor.line)),
            }
            out.append(Candidate(_lines(path, start, len(lines), text), score(*parts.values()), parts))
    return ordered(out)


def confidence(found: Sequence[Candidate]) -> float:
    """Return how sure a selector is: the best score less how near the second comes to it; 0 where there is none."""
    if not found:
        return 0.0
    second = found[1].score if len(found) > 1 else 0.0
    return found[0].score * (1.0 if second < found[0].score else 0.5)


def ordered(found: Sequence[Candidate]) -> list[Candidate]:
    return sorted(found, key=lambda one: (-one.score, one.place))


def jaccard(one: str, other: str) -> float:
    """Return the share of words that two texts have in common, of those of either."""
    a, b = (set(re.findall(r"\w+|[^\w\s]", text)) for text in (one, other))
    return len(a & b) / len(a | b) if a | b else 1.0


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _named(text: str) -> list[tuple[str, ast.AST]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    out: list[tuple[str, ast.AST]] = []
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        above, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                out.append((above + child.name, child))
                waiting.append((f"{above}{child.name}.", child))
    return out


def _owners(text: str) -> dict[int, str]:
    """Return the innermost definition of each line that is in one."""
    out: dict[int, str] = {}
    for name, node in sorted(_named(text), key=lambda pair: pair[0].count(".")):
        out.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), name))  # type: ignore[attr-defined]
    return out


def _range(path: str, node: ast.AST, role: str, text: str) -> Range:
    lines = text.splitlines()
    first: Any = node
    last: Any = node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if role == "name":
            named = re.search(rf"(?:def|class)\s+({re.escape(node.name)})\b", lines[node.lineno - 1])
            if named is not None:
                return Range(path, node.lineno, named.start(1) + 1, node.lineno, named.end(1) + 1)
        if role == "body":
            first, last = node.body[0], node.body[-1]
    start, end = _column(lines, first.lineno, first.col_offset), _column(lines, last.end_lineno, last.end_col_offset)
    return Range(path, first.lineno, start, last.end_lineno, end)


def _column(lines: Sequence[str], line: int, offset: int) -> int:
    """Return the column of a place that the tree tells in bytes."""
    return len(lines[line - 1].encode()[:offset].decode("utf-8", "replace")) + 1


def _lines(path: str, start: int, count: int, text: Sequence[str]) -> Range:
    return Range(path, start, 1, start + count - 1, len(text[start + count - 2]) + 1)
