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


def cliques(declarations: str, terms: Sequence[str]) -> dict[str, Any]:
    """Put Boolean terms into groups of equivalent ones, largest first, of equal ones the earlier first.

    Returns ``{"cliques": [[indices]]}``; a term that cannot be read is in none, one whose equivalence to a group cannot
    be told is not in that group.
    """
    groups: list[list[int]] = []
    for i, term in enumerate(terms):
        try:
            _solver(f"{declarations}(assert {term})")
        except Exception as error:
            if type(error).__name__ != "Z3Exception":
                raise
            continue
        for group in groups:
            if _answer(_solver(f"{declarations}(assert (not (= {terms[group[0]]} {term})))").check()) is False:
                group.append(i)
                break
        else:
            groups.append([i])
    return {"cliques": sorted(groups, key=lambda group: (-len(group), group[0]))}


def entails(declarations: str, term: str, other: str) -> bool | None:
    """Say whether ``other`` follows from ``term`` alone."""
    return _negated(_answer(_solver(f"{declarations}(assert {term})(assert (not {other}))").check()))


def statuses(
    declarations: str, context: str, claims: Sequence[str], bridges: str = "", free: Sequence[str] = ()
) -> dict[str, Any]:
    """Judge claims against a context, one by one and together.

    Returns ``{"context": whether it can hold, "statuses": ["contradictory", "entailed", "possible" or "unknown"],
    "joint": whether all can hold at once, with ``bridges``, "removed": indices without which they can, "core": indices
    that cannot hold together}``, where indices beyond the claims are those of ``free``, further claims that are
    constants of which only the bridges say something. Contradiction is looked for first: a context that cannot hold
    entails everything.
    """
    import z3

    inside = z3.Context()
    every = [*claims, *free]

    def read(script: str) -> list[Any]:
        return list(z3.parse_smt2_string(declarations + script, ctx=inside))

    given, bridging = read(context), read(bridges)
    formulas = [read(f"(assert {claim})")[0] for claim in every]

    def can(*assertions: Any) -> bool | None:
        solver = z3.Solver(ctx=inside)
        solver.add(*assertions)
        return _answer(solver.check())

    fixed = can(*given)
    found = []
    for claim in formulas[: len(claims)]:
        with_it = can(*given, claim)
        if with_it is False:
            found.append("contradictory")
            continue
        without = can(*given, z3.Not(claim))
        told = with_it is not None and without is not None
        found.append("entailed" if without is False else "possible" if told else "unknown")
    solver = z3.Solver(ctx=inside)
    solver.set("core.minimize", True)
    solver.add(*given, *bridging)
    for i, claim in enumerate(formulas):
        solver.assert_and_track(claim, z3.Bool(f"claim!{i}", ctx=inside))
    joint = _answer(solver.check())
    core = sorted(int(str(name).partition("!")[2]) for name in solver.unsat_core()) if joint is False else []
    removed: list[int] = []
    if joint is False and fixed is not False:
        kept = [*given, *bridging]
        for i, claim in enumerate(formulas):
            # One that cannot be decided is kept: only what is known to clash is named.
            if can(*kept, claim) is False:
                removed.append(i)
            else:
                kept.append(claim)
    return {"context": fixed, "statuses": found, "joint": joint, "removed": removed, "core": core}


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
