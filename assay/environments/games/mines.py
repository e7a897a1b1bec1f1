"""How likely each covered cell of a minefield hides a mine: exact, by counting layouts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from math import comb

Ways = dict[int, tuple[int, Counter[int]]]
"""By number of mines: layouts with so many, and for each class of cells the mines of all these layouts together."""


def around(cell: int, height: int, width: int) -> list[int]:
    """Return the cells that touch a cell; cells are numbered by rows."""
    row, column = divmod(cell, width)
    return [
        r * width + c
        for r in range(max(row - 1, 0), min(row + 2, height))
        for c in range(max(column - 1, 0), min(column + 2, width))
        if (r, c) != (row, column)
    ]


def posterior(height: int, width: int, numbers: Mapping[int, int], mines: int) -> dict[int, Fraction]:
    """Return the probability of a mine under every covered cell, all layouts being equally likely beforehand.

    Cells that touch the same numbers are alike, so what is enumerated is how many mines each class of them has; classes
    that share no number are enumerated apart. Cells that touch none are one more class.

    Args:
        numbers: how many mines touch each open cell.
        mines: on the whole board.

    Raises:
        ValueError: no layout has these numbers.
    """
    covered = [i for i in range(height * width) if i not in numbers]
    touching: dict[int, frozenset[int]] = {
        i: frozenset(j for j in around(i, height, width) if j in numbers) for i in covered
    }
    alike: dict[frozenset[int], list[int]] = defaultdict(list)
    for i in covered:
        alike[touching[i]].append(i)
    outside = alike.pop(frozenset(), [])
    classes = list(alike.items())
    bare = [n for cell, n in numbers.items() if not any(cell in group for group, _ in classes)]
    if any(bare):
        raise ValueError("a number touches no covered cell")
    parts = [_ways(part, classes, numbers) for part in _parts(classes)]
    # What the parts come to together, and at last what remains for the cells outside.
    whole: Ways = {0: (1, Counter())}
    for ways in parts:
        whole = _joined(whole, ways)
    total, inside, left = 0, Counter[int](), 0
    for n, (count, held) in whole.items():
        if 0 <= mines - n <= len(outside):
            rest = comb(len(outside), mines - n)
            total += count * rest
            left += count * rest * (mines - n)
            for k, many in held.items():
                inside[k] += many * rest
    if not total:
        raise ValueError("no layout has these numbers")
    found = {i: Fraction(inside[k], total * len(cells)) for k, (_, cells) in enumerate(classes) for i in cells}
    return found | {i: Fraction(left, total * len(outside)) for i in outside}


def _parts(classes: list[tuple[frozenset[int], list[int]]]) -> list[list[int]]:
    """Return the classes, by place, in parts that share no number."""
    parts: list[tuple[set[int], list[int]]] = []
    for k, (group, _) in enumerate(classes):
        near = [part for part in parts if part[0] & group]
        parts = [part for part in parts if not part[0] & group]
        parts.append((set(group).union(*(p[0] for p in near)), [i for p in near for i in p[1]] + [k]))
    return [sorted(part[1]) for part in parts]


def _ways(part: list[int], classes: list[tuple[frozenset[int], list[int]]], numbers: Mapping[int, int]) -> Ways:
    """Return how many layouts a part has, by their number of mines."""
    need = {cell: numbers[cell] for k in part for cell in classes[k][0]}
    room = Counter({cell: sum(len(classes[k][1]) for k in part if cell in classes[k][0]) for cell in need})
    found: dict[int, list[object]] = {}
    chosen: list[int] = []

    def choose(at: int, ways: int) -> None:
        if at == len(part):
            n = sum(chosen)
            count, held = found.setdefault(n, [0, Counter[int]()])
            found[n][0] = count + ways  # type: ignore[operator]
            for k, mines in zip(part, chosen, strict=True):
                held[k] += ways * mines  # type: ignore[index]
            return
        group, cells = classes[part[at]]
        for cell in group:
            room[cell] -= len(cells)
        low = max(0, *(need[cell] - room[cell] for cell in group))
        for n in range(low, min(len(cells), *(need[cell] for cell in group)) + 1):
            for cell in group:
                need[cell] -= n
            chosen.append(n)
            choose(at + 1, ways * comb(len(cells), n))
            chosen.pop()
            for cell in group:
                need[cell] += n
        for cell in group:
            room[cell] += len(cells)

    choose(0, 1)
    return {n: (count, held) for n, (count, held) in found.items()}  # type: ignore[misc]


def _joined(one: Ways, two: Ways) -> Ways:
    out: Ways = {}
    for a, (ways, held) in one.items():
        for b, (more, kept) in two.items():
            count, both = out.get(a + b, (0, Counter()))
            both = Counter(both)
            for k, many in held.items():
                both[k] += many * more
            for k, many in kept.items():
                both[k] += many * ways
            out[a + b] = count + ways * more, both
    return out
