"""S041: verifiers in four conditions: of what they see of a response, and of how long they may think."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

from assay.audit.labelled import Row
from assay.audit.measure import Confusion
from assay.audit.outcome import Status
from assay.catalogue import paper
from assay.errors import UsageError
from assay.rewards.judges.word_judge import View, WordJudge, viewed
from assay.verify.base import Verifier
from assay.verify.guard import checked, judge

Length = Literal["short", "long"]
Cell = tuple[View, Length]
TOKENS: Mapping[Length, int] = {"short": 8, "long": 4096}
"""Longest reply of a verifier that writes one."""
CELLS: tuple[Cell, ...] = tuple((view, length) for view in get_args(View) for length in get_args(Length))
_STATUS: dict[bool | None, Status] = {True: "accepted", False: "rejected", None: "abstained"}


@paper(
    "S041",
    "VerifyBench",
    arxiv="2507.09884",
    seams=["verify", "evaluate"],
    essentials={
        "boxed answers or complete responses, short or long replies of the verifier": "test_four_cells",
        "a cell without a verdict has failed, and is no row of mistakes": "test_a_judge_that_has_to_think",
        "accuracy and recall by subject and overall": "test_rates_by_hand",
        "how far verdicts depend on the cell, and accuracy on the subject": "test_sensitivity_and_gap",
        "one prompt for all verifiers; reading of verdicts": "test_the_words_of_a_verdict",
        "what always holds of an exact, an always right and a blind verifier": "test_what_always_holds",
        "each cell in assay audit": "test_a_cell_in_the_command",
    },
    choices=(
        "the wording of the prompt; replies are greedy unless a temperature is given",
        "precision, F1 and balanced accuracy beside the paper's accuracy and recall, all with intervals",
        "nothing is shown of a response without a box, where boxes are shown",
        "recall by kind of answer, where rows have a pattern",
    ),
    lacks="the benchmark's 3,989 questions, which come as a file of one's own",
)
def verifybench(judge: Any = None, temperature: float = 0.2, top_p: float = 0.95) -> WordJudge:
    """A judge with the prompt that all have in common, for :func:`grid`, which measures it, or any verifier.

        found = grid(rows, {"model": verifybench(engine), "rule": Math()})
        found["model"]["complete", "short"].subjects["physics"].recall

    Rows are labelled responses, a category each for their subject (:func:`assay.audit.labelled.read_labelled`). One
    cell is ``assay audit assay.rewards.judges.word_judge:WordJudge rows.jsonl 'judge={name=...}' view=boxed
    max_tokens=8``. No training method: the benchmark recommends a general model with high recall first and a
    specialised verifier behind it, which is verifier ``gated``.

    Args:
        judge: an engine, or the specification of one.
        temperature, top_p: of replies.

    Raises:
        UsageError: no engine.

    Source: "VerifyBench: A Systematic Benchmark for Evaluating Reasoning Verifiers Across Domains" (arXiv 2507.09884).
    """
    return WordJudge(judge, temperature=temperature, top_p=top_p)


@dataclass(frozen=True, slots=True)
class Measured:
    """One verifier in one cell.

    Attributes:
        verdicts: on each row, ``None`` where there was none.
        overall: counts of all rows; of each subject, and of each pattern that rows have.
        subjects, patterns: the same by category and by pattern.
    """

    verdicts: tuple[bool | None, ...]
    overall: Confusion
    subjects: dict[str, Confusion]
    patterns: dict[str, Confusion]

    @property
    def failed(self) -> bool:
        """Whether there was no verdict on any row, so that there are no rates."""
        return self.overall.decided == 0

    @property
    def unread(self) -> float:
        """Share of rows without a verdict."""
        return self.verdicts.count(None) / len(self.verdicts)

    @property
    def gap(self) -> float:
        """Largest less smallest accuracy of a subject; NaN where one has none."""
        found = [c.accuracy.value for c in self.subjects.values()]
        return float("nan") if any(x != x for x in found) else max(found) - min(found)


def grid(
    rows: Sequence[Row], verifiers: Mapping[str, Verifier], cells: Sequence[Cell] = CELLS
) -> dict[str, dict[Cell, Measured]]:
    """Return what each verifier makes of labelled responses in each cell.

    A verifier with a field ``max_tokens`` is given the cell's, :data:`TOKENS`; any other has nothing to say at length,
    and its cells of one view are the same.

    Args:
        rows: labelled; categories are subjects.
        verifiers: by name; one with a ``map`` over pairs of tasks and responses is asked once a cell.
        cells: of :data:`CELLS`.

    Raises:
        UsageError: no rows, or a cell that there is not.
    """
    if not rows or any(cell not in CELLS for cell in cells):
        raise UsageError(f"S041 measures rows, one or more, in cells of {', '.join(map(str, CELLS))}")
    return {
        name: {(view, length): _measured(rows, _capped(made, length), view, name) for view, length in cells}
        for name, made in verifiers.items()
    }


def sensitivity(cells: Mapping[Cell, Measured]) -> float:
    """Return the share of rows whose verdict is not the same in all cells; one that is missing is a verdict of its own.

    Raises:
        UsageError: fewer than two cells.
    """
    if len(cells) < 2:
        raise UsageError("S041: verdicts are compared between two cells or more")
    columns = list(zip(*(m.verdicts for m in cells.values()), strict=True))
    return sum(len(set(column)) > 1 for column in columns) / len(columns)


def changes(cells: Mapping[Cell, Measured]) -> dict[tuple[Cell, Cell], float]:
    """Return :func:`sensitivity` of each pair of cells."""
    return {(a, b): sensitivity({a: cells[a], b: cells[b]}) for a, b in combinations(cells, 2)}


def _capped(verifier: Any, length: Length) -> Any:
    if (
        dataclasses.is_dataclass(verifier)
        and not isinstance(verifier, type)
        and any(f.name == "max_tokens" for f in dataclasses.fields(verifier))
    ):
        return dataclasses.replace(verifier, max_tokens=TOKENS[length])
    return verifier


def _measured(rows: Sequence[Row], verifier: Verifier, view: View, name: str) -> Measured:
    pairs = [(row.task, viewed(row.response, view)) for row in rows]
    together: Callable[..., Any] | None = getattr(verifier, "map", None)
    said = together(pairs) if together is not None else [judge(verifier, *pair, name) for pair in pairs]
    verdicts = tuple(checked(v, name).passed for v in said)

    def counted(keys: Sequence[str]) -> dict[str, Confusion]:
        groups: dict[str, list[tuple[bool, Status]]] = {}
        for row, key, verdict in zip(rows, keys, verdicts, strict=True):
            groups.setdefault(key, []).append((row.label, _STATUS[verdict]))
        return {key: Confusion.count(pairs) for key, pairs in groups.items()}

    overall = counted(["all"] * len(rows))["all"]
    return Measured(verdicts, overall, counted([r.category for r in rows]), counted([r.pattern for r in rows]))
