"""RewardMATH's problems as they are published: a row a solution, right and wrong ones of a problem apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.records.rows import read_rows
from assay.tasks.files.huggingface import placed

NAME, HUB = "rewardmath", "RewardMATH/RewardMATH"
TYPES = ("chosen", "rejected")

Placed = tuple[str, Any]


def placed_rows(path: Path) -> Iterator[Placed]:
    """Return the rows of a file, each with its place; of the benchmark on the hub where the path is its name and no
    file."""
    if str(path) == NAME and not path.exists():
        return placed(HUB)
    return read_rows(path)


def paired(rows: Iterable[Placed]) -> Iterator[Placed]:
    """Yield rows, those of RewardMATH as pairs: each right solution of a problem with each wrong one.

    Such a row has ``problem``, ``problem_id``, ``eval_solution`` (its steps) and ``solution_type``, chosen or rejected.
    Pairs come when all rows have been read, at the place of the wrong solution. One of another type, or a problem
    without either type, is yielded as it is, so that whoever reads it says what is wrong with it.
    """
    found: dict[Any, dict[str, list[Placed]]] = {}
    for where, row in rows:
        if isinstance(row, Mapping) and row.get("solution_type") in TYPES and "eval_solution" in row:
            of_problem = found.setdefault(row.get("problem_id", row.get("problem")), {name: [] for name in TYPES})
            of_problem[row["solution_type"]].append((where, row))
        else:
            yield where, row
    for id, sides in found.items():
        rights, wrongs = (sides[name] for name in TYPES)
        if not rights or not wrongs:
            yield from rights or wrongs
        for _, right in rights:
            for where, wrong in wrongs:
                solutions = {name: side["eval_solution"] for name, side in zip(TYPES, (right, wrong), strict=True)}
                yield where, {"id": str(id), "prompt": right.get("problem"), **solutions, "fork": 0}
