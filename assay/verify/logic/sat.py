"""Propositional satisfiability: assignments to formulas in conjunctive normal form, and claims that there is none."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.puzzles.reading import assignment, integers, shown
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.logic.smt_worker")
MAX_LITERALS = 2_000_000
_TRUTH = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_VARIABLE = re.compile(r"[A-Za-z_]{0,8}([0-9]{1,9})")
_STATUS_LINE = re.compile(r"^s?[ \t]*sat(?:isfiable)?\b[.:]?", re.IGNORECASE | re.MULTILINE)
Clause = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    clauses: tuple[Clause, ...]
    variables: int
    satisfiable: bool | None


@part("verify", "sat")
@dataclass(frozen=True, slots=True)
class Sat(Puzzle):
    """Right iff the assignment in the answer satisfies every clause, or it says "unsat" and the formula is.

    ``task.reference`` is ``{"dimacs": text}`` or ``{"clauses": [[1, -2], ...]}``. The answer is literals (``v 1 -2 3
    0``) or ``x1 = true, x2 = false``; variables it leaves out satisfy nothing. A claim of unsatisfiability is judged by
    ``"satisfiable": bool`` of the reference or, without it, by a solver (z3); where there is none, or it takes longer
    than ``seconds`` of processor time, the verifier abstains. ``parts``: ``clauses``, the share that is satisfied.
    """

    seconds: float = 10.0
    shape: ClassVar[str] = "{'dimacs': text} or {'clauses': [[1, -2], ...]}"

    def read(self, reference: Mapping[str, Any]) -> Formula:
        if "dimacs" in reference:
            clauses = dimacs(reference["dimacs"])
        else:
            clauses = tuple(tuple(int(literal) for literal in clause) for clause in reference["clauses"])
        if sum(map(len, clauses)) > MAX_LITERALS or any(literal == 0 for clause in clauses for literal in clause):
            raise ValueError("the formula is too large, or has a literal 0")
        known = reference.get("satisfiable")
        variables = max((abs(literal) for clause in clauses for literal in clause), default=0)
        return Formula(clauses, variables, None if known is None else bool(known))

    def deny(self, puzzle: Formula, solvable: bool) -> Verdict:
        if puzzle.satisfiable is not None or not solvable:
            return Verdict.wrong("the formula is satisfiable") if puzzle.satisfiable and solvable else Verdict.right()
        if importlib.util.find_spec("z3") is None:
            return Verdict.abstain("a claim of unsatisfiability needs z3: pip install assay[logic]")
        answer = WORKERS.call("satisfiable", puzzle.clauses, seconds=self.seconds)
        if isinstance(answer, Failure) or answer is None:
            return Verdict.abstain(f"unsatisfiability: {answer.reason if answer else 'the solver cannot tell'}")
        return Verdict.wrong("the formula is satisfiable") if answer else Verdict.right()

    def check(self, puzzle: Formula, answer: str) -> Verdict:
        values = literals(answer)
        unsatisfied = [c for c in puzzle.clauses if not any(values.get(abs(x)) == (x > 0) for x in c)]
        share = 1 - len(unsatisfied) / len(puzzle.clauses) if puzzle.clauses else 1.0
        complaint = f"clause {shorten(' '.join(map(str, unsatisfied[0])))} is not satisfied" if unsatisfied else ""
        return self.verdict(complaint, share, {"clauses": share})


def dimacs(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a DIMACS CNF text; ``c`` lines are comments, ``0`` ends a clause, ``%`` ends the file.

    Raises:
        ValueError: something else than integers, no problem line, or another number of clauses than it says.
    """
    clauses: list[Clause] = []
    clause: list[int] = []
    declared = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "%":
            break
        if words[0] == "p":
            if words[1:2] != ["cnf"] or len(words) != 4:
                raise ValueError(f"{line[:40]!r} is no problem line")
            declared = int(words[3])
            continue
        for word in words:
            if int(word) == 0:
                clauses.append(tuple(clause))
                clause = []
            else:
                clause.append(int(word))
    if clause:
        clauses.append(tuple(clause))
    if declared != len(clauses):
        raise ValueError(f"{len(clauses)} clauses, the problem line says {declared}")
    return tuple(clauses)


def literals(answer: str) -> dict[int, bool]:
    """Return the truth values that an answer gives to numbered variables.

    Raises:
        BadAnswer: none, contradictory ones, or a value that is neither true nor false.
    """
    if "=" in answer or ":" in _STATUS_LINE.sub("", answer):
        values: dict[int, bool] = {}
        for name, value in assignment(answer).items():
            variable = _VARIABLE.fullmatch(name)
            if variable is None:
                continue
            if value.lower() not in _TRUTH:
                raise BadAnswer(f"{shorten(name, 20)} is {shorten(value, 20)!r}, neither true nor false")
            truth = _TRUTH[value.lower()]
            if values.setdefault(int(variable[1]), truth) != truth:
                raise BadAnswer(f"variable {variable[1]} is both true and false")
        if not values:
            raise BadAnswer("no assignment to variables in the answer")
        return values
    values = {}
    for literal in integers(answer):
        if literal and values.setdefault(abs(literal), literal > 0) != (literal > 0):
            raise BadAnswer(f"variable {shown(abs(literal))} is both true and false")
    if not values:
        raise BadAnswer("no literals in the answer")
    return values
