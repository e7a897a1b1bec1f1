"""z3 and the interpreter in a process of their own, for :mod:`assay.verify.formal.imperative.prover`.

Functions take the text of a program and return what JSON holds; ``{"error": why}`` for a text that is no program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from assay.verify.formal.imperative import run
from assay.verify.formal.imperative.conditions import Script, scripts
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.sample import search
from assay.verify.formal.imperative.syntax import BadProgram

MOST = 5
"""Errors that are told of a program."""


def prepare() -> None:
    """Import z3 before the memory limit is set; calls of functions within each other are counted by the interpreter."""
    sys.setrecursionlimit(20_000)
    import z3

    z3.set_param("parallel.enable", False)


def prove(source: str, effort: int) -> dict[str, Any]:
    """Try to prove that a program keeps its contract.

    Returns ``{"errors": [what might not hold], "counter": {parameter: value} of the first error, if there is one}``.
    ``effort`` is what z3 may spend on each, in its own units, so that a busy machine does not change the verdict.
    """
    try:
        program = parse(source)
    except BadProgram as error:
        return {"error": str(error)}
    if program.method.body is None:
        return {"error": "the method has no body"}
    errors: list[str] = []
    counter: dict[str, Any] | None = None
    for script in scripts(program):
        mine, example = _show(script, effort)
        counter = counter or example
        errors += mine
        if errors and not script.inputs:
            break  # a function that may not end proves anything
    return {"errors": errors[:MOST], "counter": counter}


def _show(script: Script, effort: int) -> tuple[list[str], dict[str, Any] | None]:
    import z3

    context = z3.Context()  # a definition by recursion stays in its context for good
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", effort)
    every = "".join(f"(assert {item.formula})\n" for item in script.items)
    formulas = list(z3.parse_smt2_string(script.declarations + every, ctx=context))
    # A definition by recursion adds nothing to the formulas that are asserted.
    assert len(formulas) == len(script.items)
    errors: list[str] = []
    counter = None
    for item, formula in zip(script.items, formulas, strict=True):
        if item.kind == "prove":
            solver.push()
            solver.add(z3.Not(formula))
            found = solver.check()
            if found != z3.unsat:
                told = "" if found == z3.sat else " (it cannot be told)"
                if found == z3.sat and counter is None and script.inputs:
                    counter = _inputs(script, solver.model())
                errors.append(item.what + told)
            solver.pop()
            if len(errors) == MOST:
                break
        solver.add(formula)
    return errors, counter


def _inputs(script: Script, model: Any) -> dict[str, Any]:
    """The values of a method's parameters in a model."""
    import z3

    found: dict[str, Any] = {}
    for name, constant, kind in script.inputs:
        declared = next((d for d in model.decls() if d.name() == constant), None)
        value = None if declared is None else model[declared]
        if kind == "seq<int>":
            length = 0 if value is None else model.eval(value.arg(1), model_completion=True).as_long()
            array = None if value is None else value.arg(0)
            found[name] = [
                model.eval(z3.Select(array, i), model_completion=True).as_long() for i in range(min(length, 20))
            ]
        elif kind == "bool":
            found[name] = bool(z3.is_true(value))
        else:
            found[name] = 0 if value is None else value.as_long()
    return found


def execute(source: str, inputs: Sequence[Sequence[Any]], fuel: int = run.FUEL) -> dict[str, Any]:
    """Run a program on many inputs: ``{"outputs": [the returned values, or the reason it failed], "steps": the most}``.

    ``fuel`` is the number of steps that each run may take.
    """
    try:
        program = parse(source)
    except BadProgram as error:
        return {"error": str(error)}
    if program.method.body is None:
        return {"error": "the method has no body"}
    kinds = [t for _, t in program.method.params]
    outputs: list[Any] = []
    most = 0
    for given in inputs:
        try:
            found, steps = run.execute(program, run.values(kinds, given), fuel)
            outputs.append(list(found))
            most = max(most, steps)
        except (run.Crash, run.Exhausted, run.Unbounded, ValueError) as error:
            outputs.append(str(error))
    return {"outputs": outputs, "steps": most}


def judged(source: str, side: str, cases: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Say of each case whether a contract's ``requires`` (of inputs) or ``ensures`` (of inputs and outputs) holds.

    ``{"values": [true, false, or the reason why it cannot be told]}``. A condition that is not defined does not hold.
    """
    try:
        program = parse(source)
    except BadProgram as error:
        return {"error": str(error)}
    method = program.method
    wanted = method.requires if side == "requires" else method.ensures
    names = [*method.params, *(method.returns if side == "ensures" else ())]
    found: list[Any] = []
    for case in cases:
        try:
            given = run.values([t for _, t in names], case)
            found.append(run.holds(program, wanted, dict(zip([n for n, _ in names], given, strict=True))))
        except run.Crash:
            found.append(False)
        except (run.Exhausted, run.Unbounded, ValueError) as error:
            found.append(str(error))
    return {"values": found}


def searched(source: str, side: str, cases: Sequence[Sequence[Any]], options: Sequence[int]) -> dict[str, Any]:
    """As :func:`judged`, where quantifiers without bounds are tried on random values.

    ``{"values": [[value or null, what was searched for in vain]]}``, see :func:`~.sample.search`, whose ``options`` are
    ``instances, size, retries, seed``.
    """
    try:
        program = parse(source)
    except BadProgram as error:
        return {"error": str(error)}
    method = program.method
    wanted = method.requires if side == "requires" else method.ensures
    names = [*method.params, *(method.returns if side == "ensures" else ())]
    found: list[Any] = []
    for case in cases:
        given = run.values([t for _, t in names], case)
        found.append(list(search(program, wanted, dict(zip([n for n, _ in names], given, strict=True)), *options)))
    return {"values": found}
