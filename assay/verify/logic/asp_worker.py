"""clingo in a process of its own, for :mod:`assay.verify.logic.asp`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

Signature = tuple[str, int]


def prepare() -> None:
    """Import clingo before the memory limit is set."""
    import clingo  # noqa: F401


def _control(program: str, *options: str) -> Any:
    import clingo

    # Without a script engine a program cannot call Python or Lua. No logger: clingo quotes single bytes of text in its
    # messages, and its binding ends the process where they are no UTF-8. The standard error of a worker goes nowhere.
    control = clingo.Control(["--warn=none", *options])
    control.add("base", [], program)
    control.ground([("base", [])])
    return control


def _shown(model: Any, project: Sequence[Signature] | None) -> list[str]:
    if project is None:
        return sorted(map(str, model.symbols(shown=True)))
    wanted = {tuple(signature) for signature in project}
    atoms = model.symbols(atoms=True)
    return sorted(str(a) for a in atoms if a.positive and (a.name, len(a.arguments)) in wanted)


def answer_sets(program: str, project: Sequence[Signature] | None, most: int) -> list[list[str]] | None:
    """Return the different (projected, optimal) answer sets; ``None`` if there are more than ``most``."""
    control = _control(program, "--models=0", "--opt-mode=optN")
    found: set[tuple[str, ...]] = set()
    with control.solve(yield_=True) as handle:
        for model in handle:
            if not model.cost or model.optimality_proven:
                found.add(tuple(_shown(model, project)))
            if len(found) > most:
                return None
    return sorted(map(list, found))


reference_sets = functools.lru_cache(maxsize=256)(answer_sets)


def same_sets(
    reference: str, program: str, facts: Sequence[str], project: Sequence[Signature] | None, most: int
) -> dict[str, Any]:
    """Compare the answer sets of two programs on each instance.

    Returns ``{"error": why}`` if the second cannot be run, else ``{"equal": [bool per instance], "difference": the
    first difference, "too_many": whether the reference has more than ``most`` sets}``.
    """
    key = None if project is None else tuple(map(tuple, project))
    equal, difference = [], ""
    for i, instance in enumerate(facts):
        expected = reference_sets(f"{reference}\n{instance}", key, most)
        if expected is None:
            return {"too_many": True}
        try:
            # One more than expected shows that there are too many.
            got = answer_sets(f"{program}\n{instance}", project, len(expected))
        except (RuntimeError, ValueError) as error:
            return {"error": str(error)[:120]}
        equal.append(got == expected)
        if got != expected and not difference:
            difference = _difference(got, expected, i if len(facts) > 1 else None)
    return {"equal": equal, "difference": difference}


def _difference(got: list[list[str]] | None, expected: list[list[str]], instance: int | None) -> str:
    where = "" if instance is None else f" on instance {instance + 1}"
    if got is None:
        return f"has more than the {len(expected)} answer sets expected{where}"
    missing = next((s for s in expected if s not in got), None)
    if missing is not None:
        return f"lacks the answer set {{{', '.join(missing)}}}{where}"
    extra = next(s for s in got if s not in expected)
    return f"has the answer set {{{', '.join(extra)}}}, which is not expected{where}"


def is_answer_set(program: str, project: Sequence[Signature], atoms: Sequence[str]) -> dict[str, Any]:
    """Say whether some (optimal) answer set of ``program`` has exactly ``atoms`` among the projected signatures.

    Returns ``{"answer_set": bool, "unknown": the first atom that no rule can derive, "optimal": bool | None, "exists":
    whether the program has any answer set}``.
    """
    import clingo

    optimum = None
    control = _control(program, "--opt-mode=opt")
    exists = False
    with control.solve(yield_=True) as handle:
        for model in handle:
            exists, optimum = True, list(model.cost)
            if not optimum:
                break
    control = _control(program, "--opt-mode=opt")
    wanted = {clingo.parse_term(atom) for atom in atoms}
    assumptions: list[int] = []
    known = set()
    for name, arity in project:
        for positive in (True, False):
            for atom in control.symbolic_atoms.by_signature(name, arity, positive):
                if positive:
                    known.add(atom.symbol)
                    assumptions.append(atom.literal if atom.symbol in wanted else -atom.literal)
    unknown = sorted(str(atom) for atom in wanted - known)
    if unknown or not exists:
        return {"answer_set": False, "unknown": unknown[:1], "optimal": None, "exists": exists}
    best: list[int] | None = None
    with control.solve(assumptions=assumptions, yield_=True) as handle:
        for model in handle:  # each is better than the one before
            best = list(model.cost)
            if best == optimum:
                break
    optimal = None if best is None or not optimum else best == optimum
    return {"answer_set": best is not None, "unknown": [], "optimal": optimal, "exists": exists}


def terms(text: str) -> list[tuple[str, str, int]] | None:
    """Return ``(atom in clingo's writing, name, arity)`` for a list of ground atoms; ``None`` if it is none."""
    import clingo

    try:
        symbols = clingo.parse_term(f"({text},)").arguments
    except (RuntimeError, ValueError):  # ValueError: text that is not UTF-8, or cut inside a character
        return None
    if any(symbol.type is not clingo.SymbolType.Function or not symbol.name for symbol in symbols):
        return None
    return [(str(symbol), symbol.name, len(symbol.arguments)) for symbol in symbols]
