"""Colourings, Hamiltonian paths and bounded tours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.puzzles.reading import assignment, find_label, labels
from assay.verify.text.exact import shorten


@dataclass(frozen=True, slots=True)
class Graph:
    """Vertices by label in order, edges as given, and a number: of colours, or the length a tour may have."""

    vertices: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    limit: float
    cycle: bool = False
    directed: bool = False
    start: str | None = None


def _graph(reference: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    edges = tuple((str(a), str(b)) for a, b in reference["edges"])
    vertices = tuple(str(v) for v in reference.get("vertices") or dict.fromkeys(v for edge in edges for v in edge))
    unknown = {v for edge in edges for v in edge} - set(vertices)
    if not vertices or unknown or len(set(vertices)) != len(vertices):
        raise ValueError(f"vertices are missing or named twice: {shorten(', '.join(sorted(unknown)))}")
    return vertices, edges


@part("verify", "colouring")
@dataclass(frozen=True, slots=True)
class Colouring(Puzzle):
    """Right iff every vertex has a colour, neighbours differ, and at most ``colours`` colours are used.

    ``task.reference`` is ``{"edges": [[a, b], ...], "colours": k}``, with ``"vertices": [...]`` if some have no edge.
    The answer is ``a: red, b: 2, ...`` or a JSON object; colours may be called anything. ``parts``: ``coloured``, the
    share of vertices with a colour; ``edges``, the share of edges with two colours; ``colours``, not too many.
    """

    shape: ClassVar[str] = "{'edges': [[a, b], ...], 'colours': k}"

    def read(self, reference: Mapping[str, Any]) -> Graph:
        vertices, edges = _graph(reference)
        return Graph(vertices, edges, int(reference["colours"]))

    def check(self, puzzle: Graph, answer: str) -> Verdict:
        colour: dict[str, str] = {}
        for name, value in assignment(answer).items():
            vertex = find_label(name, puzzle.vertices)
            if vertex is not None and colour.setdefault(vertex, value.casefold()) != value.casefold():
                raise BadAnswer(f"{vertex} has two colours")
        complaints = [f"{v} has no colour" for v in puzzle.vertices if v not in colour][:1]
        proper = 0
        for a, b in puzzle.edges:
            if a in colour and b in colour and colour[a] != colour[b]:
                proper += 1
            elif not complaints:
                complaints.append(f"{a} and {b} are neighbours and both {shorten(colour[a], 20)}")
        used = len(set(colour.values()))
        if used > puzzle.limit:
            complaints.append(f"uses {used} colours, {puzzle.limit} are allowed")
        parts: dict[str, float | None] = {
            "coloured": len(colour) / len(puzzle.vertices),
            "edges": proper / len(puzzle.edges) if puzzle.edges else 1.0,
            "colours": float(used <= puzzle.limit),
        }
        credit = math.prod(v for v in parts.values() if v is not None)
        return self.verdict(complaints[0] if complaints else "", credit, parts)


@part("verify", "hamiltonian")
@dataclass(frozen=True, slots=True)
class Hamiltonian(Puzzle):
    """Right iff the answer lists every vertex once and each next one is a neighbour.

    ``task.reference`` is ``{"edges": [[a, b], ...]}``; ``"cycle": true`` also wants an edge from the last vertex to the
    first, which may be repeated at the end; ``"directed": true`` reads edges one way; ``"start"`` fixes the first
    vertex. ``parts``: ``visited``, the share of vertices in the answer; ``edges``, the share of its steps that are
    edges.
    """

    shape: ClassVar[str] = "{'edges': [[a, b], ...]}"

    def read(self, reference: Mapping[str, Any]) -> Graph:
        vertices, edges = _graph(reference)
        start = reference.get("start")
        flags = bool(reference.get("cycle", False)), bool(reference.get("directed", False))
        return Graph(vertices, edges, math.inf, *flags, None if start is None else str(start))

    def check(self, puzzle: Graph, answer: str) -> Verdict:
        order = _order(answer, puzzle.vertices, puzzle.cycle)
        allowed = set(puzzle.edges) | (set() if puzzle.directed else {(b, a) for a, b in puzzle.edges})
        steps = list(pairwise(order))
        if puzzle.cycle and len(puzzle.vertices) > 1:
            steps.append((order[-1], order[0]))
        missing_edges = [step for step in steps if step not in allowed]
        complaint = _visits(order, puzzle.vertices, puzzle.start)
        if missing_edges and not complaint:
            complaint = "there is no edge from {} to {}".format(*missing_edges[0])
        parts: dict[str, float | None] = {
            "visited": len(set(order)) / len(puzzle.vertices),
            "edges": 1 - len(missing_edges) / len(steps) if steps else 1.0,
        }
        return self.verdict(complaint, math.prod(v for v in parts.values() if v is not None), parts)


@dataclass(frozen=True, slots=True)
class Tour:
    cities: tuple[str, ...]
    distance: tuple[tuple[float, ...], ...]
    bound: float


@part("verify", "tour")
@dataclass(frozen=True, slots=True)
class ShortTour(Puzzle):
    """Right iff the answer is a round trip through all cities that is no longer than the bound.

    ``task.reference`` is ``{"distances": N x N matrix}`` or ``{"points": [[x, y], ...]}`` (Euclidean), with
    ``"bound"``: the longest length accepted, and ``"cities"``: names in the order of the rows (default ``0`` to ``N -
    1``). ``parts``: ``visited``, the share of cities visited; ``length``, bound / length of a complete tour, at most 1.

    Args:
        tolerance: relative slack on the bound.
    """

    tolerance: float = 1e-6
    shape: ClassVar[str] = "{'distances': matrix, 'bound': length}"

    def read(self, reference: Mapping[str, Any]) -> Tour:
        if "distances" in reference:
            matrix = tuple(tuple(float(d) for d in row) for row in reference["distances"])
        else:
            points = [(float(x), float(y)) for x, y in reference["points"]]
            matrix = tuple(tuple(math.dist(p, q) for q in points) for p in points)
        cities = tuple(str(city) for city in reference.get("cities") or range(len(matrix)))
        if not cities or len(set(cities)) != len(matrix) or any(len(row) != len(matrix) for row in matrix):
            raise ValueError("the matrix is not square, or does not have a name for each row")
        return Tour(cities, matrix, float(reference["bound"]))

    def check(self, puzzle: Tour, answer: str) -> Verdict:
        order = _order(answer, puzzle.cities, True)
        complaint = _visits(order, puzzle.cities, None)
        parts: dict[str, float | None] = {"visited": len(set(order)) / len(puzzle.cities), "length": None}
        if not complaint:
            row = {city: i for i, city in enumerate(puzzle.cities)}
            length = sum(puzzle.distance[row[a]][row[b]] for a, b in zip(order, [*order[1:], order[0]], strict=True))
            parts["length"] = max(0.0, min(1.0, puzzle.bound / length)) if length > 0 else 1.0
            if not length <= puzzle.bound + self.tolerance * abs(puzzle.bound):
                complaint = f"the tour is {length:g} long, at most {puzzle.bound:g} is asked"
        return self.verdict(complaint, parts["length"] or 0.0, parts)


def _order(answer: str, vertices: tuple[str, ...], closed: bool) -> list[str]:
    known = set(vertices)
    order = []
    # Of an answer with words around the list, the last line that names only vertices is read.
    lines = [words for line in answer.splitlines() if (words := labels(line.rpartition(":")[2]))]
    whole = [word for words in lines for word in words]
    listed = whole if all(word in known for word in whole) else next(
        (words for words in reversed(lines) if all(find_label(word, vertices) for word in words)), whole
    )  # fmt: skip
    for word in listed:
        vertex = find_label(word, vertices)
        if vertex is None:
            raise BadAnswer(f"{shorten(word, 30)!r} is no vertex")
        order.append(vertex)
    if closed and len(order) > len(vertices) and order[0] == order[-1]:
        order.pop()
    if not order:
        raise BadAnswer("no list of vertices in the answer")
    return order


def _visits(order: list[str], vertices: tuple[str, ...], start: str | None) -> str:
    seen: set[str] = set()
    for vertex in order:
        if vertex in seen:
            return f"visits {vertex} twice"
        seen.add(vertex)
    missing = next((v for v in vertices if v not in seen), None)
    if missing is not None:
        return f"does not visit {missing}"
    return f"does not begin at {start}" if start is not None and order[0] != start else ""
