"""Conditions whose quantifiers have no bounds, tried on random values: one that fails or holds settles some of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

from assay.verify.formal.imperative.run import Crash, Exhausted, Run, Unbounded, Value, conditions
from assay.verify.formal.imperative.syntax import Expr, Program

Searched = Literal["forall", "exists", ""]


def search(
    program: Program,
    wanted: Sequence[Expr],
    names: Mapping[str, Value],
    instances: int = 1000,
    size: int = 100,
    retries: int = 20,
    seed: int = 42,
) -> tuple[bool | None, Searched]:
    """Say whether all of ``wanted`` hold, as far as random values can tell.

    A ``forall`` is false if it fails for one draw, an ``exists`` true if it holds for one. Where neither is found the
    value is ``None``, and the second result says what was searched for in vain: an instance against a ``forall``, one
    for an ``exists``; nothing where both kinds are left, or what has no bounds stands deeper.

    Args:
        instances: draws for each quantifier; of integers up to ``size``, which grows from 0 with the draws.
        retries: of a draw for which what a ``forall`` assumes does not hold.
        seed: of the draws.
    """
    rng = random.Random(seed)
    left: list[str] = []
    value: bool | None = True
    for e in wanted:
        run = Run({f.name: f for f in program.functions}, fuel=200 * instances)
        try:
            found: bool | None = bool(run.value(e, names))
        except Crash:
            found = False
        except Exhausted:
            found = None
            left.append("")
        except Unbounded:
            found = _drawn(run, e, names, rng, instances, size, retries) if e.op in ("forall", "exists") else None
            if found is None:
                left.append(e.op if e.op in ("forall", "exists") else "")
        if found is False:
            return False, ""
        value = None if found is None else value
    if value is not None:
        return True, ""
    kinds = set(left)
    return None, "forall" if kinds == {"forall"} else "exists" if kinds == {"exists"} else ""


def _drawn(
    run: Run, e: Expr, names: Mapping[str, Value], rng: random.Random, instances: int, size: int, retries: int
) -> bool | None:
    given = conditions(e.args[0], False)
    for i in range(instances):
        reach = i * size // max(instances - 1, 1)
        for _ in range(retries):
            case = {**names, **{n: rng.randint(-reach, reach) for n in e.value}}
            try:
                if all(run.value(c, case) for c in given):
                    if bool(run.value(e.args[0], case)) is (e.op == "exists"):
                        return e.op == "exists"
                    break
            except Crash:
                if e.op == "forall":
                    return False
            except (Exhausted, Unbounded):
                return None
    return None
