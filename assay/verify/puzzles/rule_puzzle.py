"""Puzzles of many families by their rules: whatever answer keeps to them is right, whichever was thought of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.answer.extract import Fallback, Rule
from assay.verify.puzzles.grids import RULES, Grid
from assay.verify.puzzles.lines import LINES
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.puzzles.written_grids import WRITTEN
from assay.verify.text.compare import same
from assay.verify.text.exact import shorten

GRID_RULES = {**RULES, **WRITTEN}
"""By family of puzzles on grids."""
LARGEST = 50
_DRESS = str.maketrans(dict.fromkeys(",|[]\"'", " "))


@part("verify", "rule_puzzle")
@dataclass(frozen=True, slots=True)
class RulePuzzle(Puzzle):
    """Right iff the answer keeps to the rules of the puzzle's family.

    ``task.reference`` is ``{"family": name, "rows": N, "columns": M, "data": {...}}`` for a puzzle on a grid: the last
    N lines of M tokens of the answer are judged by the function of that name in
    :mod:`~assay.verify.puzzles.grids` or :mod:`~assay.verify.puzzles.written_grids`. ``{"family": name, "data":
    {...}}`` is for those of :mod:`~assay.verify.puzzles.lines`, ``{"family": name, "answer": text}`` for families in
    which one answer is right. Without ``<answer>`` there is no answer.

    Source: the interface of SynLogic's families (arXiv 2505.19641).
    """

    rules: tuple[Rule, ...] = ("answer_tag",)
    fallback: Fallback = "none"
    shape: ClassVar[str] = "{'family': name, 'rows': N, 'columns': M, 'data': {...}}"

    def read(self, reference: Mapping[str, Any]) -> Mapping[str, Any]:
        if "answer" not in reference:
            dict(reference["data"])
            if reference["family"] in LINES:
                return reference
            sides = int(reference["rows"]), int(reference["columns"])
            if reference["family"] not in GRID_RULES or not 1 <= min(sides) <= max(sides) <= LARGEST:
                raise ValueError(f"no such family, or a side beyond {LARGEST}")
        return reference

    def check(self, puzzle: Mapping[str, Any], answer: str) -> Verdict:
        if "answer" in puzzle:
            right = same(answer, str(puzzle["answer"]), True, True)
            return self.verdict("" if right else f"answered {shorten(answer)!r}, expected {puzzle['answer']!r}", 0.0)
        family, data = puzzle["family"], puzzle["data"]
        try:
            if family in LINES:
                return self.verdict(LINES[family](answer.strip(), data), 0.0)
            return self.verdict(GRID_RULES[family](_grid(answer, puzzle["rows"], puzzle["columns"]), data), 0.0)
        except BadAnswer:
            raise
        except (KeyError, IndexError, TypeError, ValueError) as error:  # rules read any answer, so it is the data
            return Verdict.abstain(f"the data are none of a puzzle {family}: {type(error).__name__}: {error}")


def _grid(answer: str, rows: int, columns: int) -> Grid:
    # Rows may be dressed as a table or as lists of texts.
    lines = [line for text in answer.splitlines() if (line := text.translate(_DRESS).split())][-rows:]
    if len(lines) < rows or any(len(line) != columns for line in lines):
        raise BadAnswer(f"the answer is no grid of {rows} lines of {columns} cells")
    return lines
