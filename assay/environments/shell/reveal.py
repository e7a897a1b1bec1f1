"""What to show of a folder within a budget: the part of its tree that is worth most for the task."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

UNIT = 16
"""Characters to a unit of the budget."""
DEEPEST = 4
FIRST = 80
"""Characters of a file's first line that are shown."""
DATA = (".csv", ".tsv", ".json", ".jsonl", ".log", ".txt", ".xml", ".yaml", ".yml", ".dat", ".db", ".md")
CODE = (".py", ".sh", ".js", ".ts", ".c", ".h", ".cpp", ".java", ".go", ".rs", ".toml", ".cfg", ".ini")
DATA_CUES = frozenset(
    [
        *("csv", "json", "log", "logs", "table", "rows", "row", "column", "columns", "sum", "count", "line", "lines"),
        *("data", "words", "names", "records"),
    ]
)
CODE_CUES = frozenset(
    [
        *("code", "script", "scripts", "function", "class", "bug", "test", "tests", "python", "bash", "module"),
        *("import", "variable", "run"),
    ]
)


@dataclass(frozen=True, slots=True)
class Node:
    """A file or folder: its path, the line that shows it, what that costs in units, and what it is worth."""

    path: str
    line: str
    cost: int
    value: float


def worth(path: str, folder: bool, task: str) -> float:
    """Return mu = 4 cite + 0.7^depth + 0.8 ext of a path.

    cite is 1 if its name or stem stands in the task's text; depth counts from 1; ext is 0.3 for folders, for files of
    data the share of words about data among those about data or code (a half where there are none), for code the rest,
    and 0 for others.
    """
    name = path.rpartition("/")[2]
    stem = name.partition(".")[0] or name
    words = [word.lower() for word in re.findall(r"[A-Za-z]+", task)]
    cite = any(re.search(rf"(?<![\w]){re.escape(one)}(?![\w])", task, re.IGNORECASE) for one in {name, stem})
    data, code = sum(w in DATA_CUES for w in words), sum(w in CODE_CUES for w in words)
    share = data / (data + code) if data + code else 0.5
    ending = f".{name.rpartition('.')[2]}" if "." in name else ""
    kind = 0.3 if folder else share if ending in DATA else 1 - share if ending in CODE else 0.0
    return value_of(cite, path.count("/") + 1, kind)


def value_of(cite: bool, depth: int, kind: float) -> float:
    """Return 4 cite + 0.7^depth + 0.8 kind."""
    return 4 * cite + 0.7**depth + 0.8 * kind


def nodes(files: Mapping[str, bytes], task: str) -> list[Node]:
    """Return the files and folders down to the fourth level, each before what is in it."""
    paths = {"/".join(name.split("/")[:i]) for name in files for i in range(1, name.count("/") + 2)}
    out = []
    for path in sorted(paths, key=lambda p: p.split("/")):
        depth = path.count("/")
        if depth >= DEEPEST:
            continue
        name = path.rpartition("/")[2]
        if path in files:
            first = files[path].decode("utf-8", "replace").partition("\n")[0][:FIRST]
            line = f"{'  ' * depth}{name} ({len(files[path])} bytes): {first}".rstrip(": ")
        else:
            line = f"{'  ' * depth}{name}/"
        out.append(Node(path, line, math.ceil((len(line) + 1) / UNIT), worth(path, path not in files, task)))
    return out


def chosen(tree: list[Node], budget: int) -> list[Node]:
    """Return the nodes of the largest value that cost ``budget`` at most, each with the folders above it.

    Exact: a node in the order of the tree is either taken, and the next one may be, or left out with all that is in it.
    """
    n = len(tree)
    following = []
    for i, node in enumerate(tree):
        j = i + 1
        while j < n and tree[j].path.startswith(f"{node.path}/"):
            j += 1
        following.append(j)
    best = [[0.0] * (budget + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for left in range(budget + 1):
            without = best[following[i]][left]
            room = left - tree[i].cost
            best[i][left] = max(without, tree[i].value + best[i + 1][room]) if room >= 0 else without
    out, i, left = [], 0, budget
    while i < n:
        room = left - tree[i].cost
        if room >= 0 and tree[i].value + best[i + 1][room] > best[following[i]][left]:
            out.append(tree[i])
            i, left = i + 1, room
        else:
            i = following[i]
    return out


def breadth_first(tree: list[Node], budget: int) -> list[Node]:
    """Return nodes level by level until the budget is spent: what a plain listing shows."""
    out: list[Node] = []
    for node in sorted(tree, key=lambda one: one.path.count("/")):
        if sum(one.cost for one in out) + node.cost > budget:
            break
        out.append(node)
    return sorted(out, key=lambda one: one.path.split("/"))


def revealed(files: Mapping[str, bytes], task: str, budget: int = 150) -> str:
    """Return the lines that are shown of a folder for a task."""
    tree = nodes(files, task)
    shown = chosen(tree, budget)
    more = [f"({len(tree) - len(shown)} more)"] if len(shown) < len(tree) else []
    return "\n".join([*(node.line for node in shown), *more])
