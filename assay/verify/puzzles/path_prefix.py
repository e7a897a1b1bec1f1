"""Moves through a maze, graded by how far they are right from the first on."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.registry import part
from assay.types import NOTE, Task, Verdict
from assay.verify.answer.spans import Span

Cell = tuple[int, int]
MOVES: dict[str, Cell] = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
WORDS = {"U": "up", "D": "down", "L": "left", "R": "right"}
POINTS = f"progress{NOTE}points"
"""The part of a verdict that has the points."""
OPEN, CLOSE = "<think>", "</think>"
_TOKEN = re.compile(r"<\|([^<|>]*)\|>")
_MOVES_ALONE = re.compile(r"(?:<\|(?:up|down|left|right)\|>\s*)+")
_OF = {word: move for move, word in WORDS.items()}
_OPPOSITE = {"U": "D", "D": "U", "L": "R", "R": "L"}


@part("verify", "path_prefix")
@dataclass(frozen=True, slots=True)
class PathPrefix:
    """Right iff what follows the thought is the path, as ``<|up|><|right|>...``, and nothing else but blanks.

    The answer stands between the first ``</think>`` and a second, if there is one; without one there is none. With k
    moves right before the first that is not, in a path of m moves, and ``turns``, changes of direction,

        points = 2 m (turns(path) + 1)   if right        k (turns(first k moves) + 1)   if not

    ``task.reference`` is ``{"path": "RRU"}``, of the letters U, D, L, R. With ``simulate`` a move is right if it goes
    through no wall and is on some shortest path to the goal, for mazes in which there are several; the reference then
    has ``cells``, rows of texts with the moves out of each cell that are open, ``start`` and ``goal``, each
    ``[row, column]`` from 0.

    ``parts``: ``progress``, k / m, with the points as a note (:data:`POINTS`); ``moves``, whether nothing but moves
    follows the thought; ``tags``, one half for exactly one ``<think>``, one for exactly one ``</think>``.

    Args:
        mode: what moves are compared with.

    Source: Ariadne (arXiv 2511.00710) and its authors' code, which has no ``simulate``, and where blanks between moves
    make a path wrong.
    """

    mode: Literal["reference", "simulate"] = "reference"

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`."""
        begin = response.find(CLOSE)
        if begin < 0:
            return None
        end = response.find(CLOSE, begin + 1)
        end = len(response) if end < 0 else end
        return Span(begin, begin + len(CLOSE), end, end)

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = task.reference if isinstance(task.reference, Mapping) else {}
        path = spec.get("path")
        if not (isinstance(path, str) and path and set(path) <= MOVES.keys()):
            return Verdict.abstain(f"task {task.id}: reference has no path of the letters U, D, L, R", "tests")
        place = self.answer(task, response)
        text = "" if place is None else response[place.start : place.end].strip()
        moves = [_OF.get(word, word) for word in _TOKEN.findall(text)]
        if self.mode == "reference":
            k, whole = _shared(moves, path), len(path)
        else:
            steps = _simulated(moves, spec)
            if isinstance(steps, str):
                return Verdict.abstain(f"task {task.id}: {steps}", "tests")
            k, whole = steps
        alone = _MOVES_ALONE.fullmatch(text) is not None
        right = alone and k == len(moves) == whole
        points = (2 if right else 1) * k * (turns_of(moves[:k]) + 1) if k else 0
        parts: dict[str, float | None] = {
            "progress": k / whole,
            POINTS: float(points),
            "moves": float(alone),
            "tags": (response.count(OPEN) == 1) / 2 + (response.count(CLOSE) == 1) / 2,
        }
        why = "" if right else f"{k} of {whole} moves are right" if alone else "what follows the thought is not moves"
        return Verdict(float(right), right, parts, why)


def turns_of(path: Sequence[str]) -> int:
    """Return how often a path changes its direction."""
    return sum(a != b for a, b in zip(path[1:], path[:-1], strict=True))


def written(path: str) -> str:
    """Return a path as responses have it: ``<|right|><|up|>`` for ``RU``."""
    return "".join(f"<|{WORDS[move]}|>" for move in path)


def _shared(moves: Sequence[str], path: str) -> int:
    """Return how many moves the two have in common, from the first on."""
    return next((i for i, (a, b) in enumerate(zip(moves, path, strict=False)) if a != b), min(len(moves), len(path)))


def _simulated(moves: Sequence[str], spec: Mapping[str, Any]) -> tuple[int, int] | str:
    """Return how many moves, from the first on, each come nearer to the goal, and how many are needed; or what the
    reference lacks."""
    cells, start, goal = (spec.get(name) for name in ("cells", "start", "goal"))
    try:
        open_ = {(r, c): str(out) for r, row in enumerate(cells) for c, out in enumerate(row)}  # type: ignore[arg-type]
        at, away = (int(start[0]), int(start[1])), _distances(open_, (int(goal[0]), int(goal[1])))  # type: ignore[index]
        needed = away[at]
        if not needed:
            raise ValueError("nowhere to go")
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return "reference has no cells, start and goal with a way between them"
    for k, move in enumerate(moves):
        if move not in MOVES or move not in open_[at]:
            return k, needed
        near = (at[0] + MOVES[move][0], at[1] + MOVES[move][1])
        if away.get(near, needed) != away[at] - 1:
            return k, needed
        at = near
    return len(moves), needed


def _distances(open_: Mapping[Cell, str], goal: Cell) -> dict[Cell, int]:
    """Return the fewest moves to the goal from each cell that it can be reached from."""
    away, queue = {goal: 0}, deque([goal])
    while queue:
        here = queue.popleft()
        for move, (dr, dc) in MOVES.items():
            near = (here[0] + dr, here[1] + dc)
            if near not in away and _OPPOSITE[move] in open_.get(near, ""):
                away[near] = away[here] + 1
                queue.append(near)
    return away
