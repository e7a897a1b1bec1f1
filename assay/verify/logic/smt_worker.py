"""z3 in a process of its own, for :mod:`assay.verify.logic.smt` and :mod:`assay.verify.logic.sat`.

What comes from an answer is a term or a value that has been parsed and written out again by the caller, so that it can
hold no command of SMT-LIB. Functions return ``None`` where the solver cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def prepare() -> None:
    """Import z3 before the memory limit is set."""
    import z3

    z3.set_param("parallel.enable", False)


def satisfiable(clauses: Sequence[Sequence[int]]) -> bool | None:
    """Say whether a formula in conjunctive normal form has a model."""
    import z3

    variables: dict[int, Any] = {}
    solver = z3.SolverFor("QF_FD")
    for clause in clauses:
        names = [variables.setdefault(abs(x), z3.Bool(abs(x))) for x in clause]
        solver.add(z3.Or([v if x > 0 else z3.Not(v) for v, x in zip(names, clause, strict=True)]))
    return _answer(solver.check())


def status(script: str) -> bool | None:
    """Say whether an SMT-LIB script (declarations and assertions) is satisfiable."""
    return _answer(_solver(script).check())


def model(declarations: str, assertions: Sequence[str], given: str) -> dict[str, Any]:
    """Judge an assignment, given as assertions ``(assert (= name value))``.

    Returns ``{"error": why}`` if it cannot be read, else ``{"kept": [indices of assertions that can hold with it],
    "unknown": [indices that the solver cannot decide], "together": whether all can hold at once}``.
    """
    import z3

    try:
        values = z3.parse_smt2_string(declarations + given)
    except z3.Z3Exception as error:
        return {"error": _first_line(error)}
    kept: list[int] = []
    unknown: list[int] = []
    for i, assertion in enumerate(assertions):
        solver = z3.Solver()
        solver.add(values)
        solver.add(z3.parse_smt2_string(declarations + assertion))
        answer = _answer(solver.check())
        (unknown if answer is None else kept if answer else []).append(i)
    solver = z3.Solver()
    solver.add(values)
    solver.add(z3.parse_smt2_string(declarations + "".join(assertions)))
    return {"kept": kept, "unknown": unknown, "together": _answer(solver.check())}


def implied(declarations: str, premises: str, term: str, wanted: str | None) -> dict[str, Any]:
    """Say whether ``term`` follows from the premises, and ``wanted`` from ``term``.

    Returns ``{"error": why}`` if ``term`` is no Boolean term under the declarations, else ``{"sound":
    bool | None, "complete": bool | None, "counter": a model that shows the first difference}``.
    """
    import z3

    assertion = f"(assert {term})"
    try:
        z3.parse_smt2_string(declarations + assertion, ctx=z3.Context())
    except z3.Z3Exception as error:
        return {"error": _first_line(error)}
    solver = _solver(declarations + premises + f"(assert (not {term}))")
    sound = _negated(_answer(solver.check()))
    counter = _show(solver) if sound is False else ""
    complete: bool | None = True
    if wanted is not None:
        solver = _solver(declarations + assertion + f"(assert (not {wanted}))")
        complete = _negated(_answer(solver.check()))
        counter = counter or (_show(solver) if complete is False else "")
    return {"sound": sound, "complete": complete, "counter": counter}


def _solver(script: str) -> Any:
    import z3

    # In a context of its own a solver does not remember what was asked before, so that it finds the same model again.
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.add(z3.parse_smt2_string(script, ctx=context))
    return solver


def _answer(result: Any) -> bool | None:
    import z3

    return True if result == z3.sat else False if result == z3.unsat else None


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _show(solver: Any) -> str:
    model = solver.model()
    return ", ".join(sorted(f"{name} = {model[name]}" for name in model.decls()))[:120]


def _first_line(error: Exception) -> str:
    message = error.args[0] if error.args else error
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return text.strip().partition("\n")[0][:120]
