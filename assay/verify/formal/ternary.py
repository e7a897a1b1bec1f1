"""Three-valued scores of specifications: each test passes, fails or is unknown, and so does what they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from assay.verify.formal.backends import WORKERS, BuiltIn
from assay.verify.formal.imperative.syntax import Expr, Method, Program, Type, written
from assay.verify.formal.spec_tests import Broken, truths
from assay.verify.isolate.workers import Failure

Score = Literal["pass", "fail", "unknown"]
Side = Literal["requires", "ensures"]


def together(scores: Iterable[Score]) -> Score:
    """Fail if any fails; else unknown if any is; else pass, also where there is none."""
    found = set(scores)
    return "fail" if "fail" in found else "unknown" if "unknown" in found else "pass"


@dataclass(frozen=True, slots=True)
class Cascade:
    """Settles whether a contract holds of given values, the cheapest way first.

    1. It is evaluated. 2. Where a quantifier has no bounds, random values are tried: an instance against the statement,
    or one against its negation, settles it; to find neither settles it only with ``plausible_pass``. 3. The built-in
    prover is asked for the statement and for its negation. 4. Unknown.

    Args:
        plausible_pass: see above.
        proofs: of how many cases, at most, the prover is asked; further ones are unknown.
        instances, size, retries, draw: of the second; the defaults are those of VERINA.
        prover: of the third.
    """

    plausible_pass: bool = False
    proofs: int = 8
    instances: int = 1000
    size: int = 100
    retries: int = 20
    draw: int = 42
    prover: BuiltIn = field(default_factory=BuiltIn)

    def scores(
        self, source: str, program: Program, side: Side, cases: Sequence[Sequence[Any]], wanted: bool
    ) -> list[Score]:
        """Return a score for each case: whether ``side`` of the contract holds of it iff that is ``wanted``.

        Args:
            source, program: the same, as text and read.
            cases: inputs, followed by outputs for ``ensures``.

        Raises:
            BadProgram, Broken: as :func:`~assay.verify.formal.spec_tests.truths`.
        """
        found = list(truths(source, side, cases))
        plausible: set[int] = set()
        left = [i for i, x in enumerate(found) if x is None]
        for i, (value, in_vain) in zip(left, self._searched(source, side, [cases[i] for i in left]), strict=True):
            found[i] = value
            if self.plausible_pass and value is None and in_vain == ("forall" if wanted else "exists"):
                plausible.add(i)
        left = [i for i in left if found[i] is None and i not in plausible]
        for i in left[: self.proofs]:
            found[i] = self._proved(program, side, cases[i])
        return [
            "pass" if i in plausible or x is wanted else "unknown" if x is None else "fail" for i, x in enumerate(found)
        ]

    def _searched(self, source: str, side: Side, cases: Sequence[Sequence[Any]]) -> list[tuple[bool | None, str]]:
        if not cases:
            return []
        options = [self.instances, self.size, self.retries, self.draw]
        found = WORKERS.call("searched", source, side, [list(c) for c in cases], options, seconds=60.0)
        if isinstance(found, Failure):
            if found.own:
                return [(None, "")] * len(cases)
            raise Broken(found.reason)
        return [(value, kind) for value, kind in found["values"]]

    def _proved(self, program: Program, side: Side, case: Sequence[Any]) -> bool | None:
        method = program.method
        names = [*method.params, *(method.returns if side == "ensures" else ())]
        given = tuple(Expr("==", (Expr("name", (), n), literal(v))) for (n, _), v in zip(names, case, strict=True))
        conditions = method.requires if side == "requires" else method.ensures
        whole = Expr("bool", (), True)
        for e in conditions:
            whole = Expr("&&", (whole, e))
        for value, shown in ((True, whole), (False, Expr("!", (whole,)))):
            if entails(program, tuple(names), given, (shown,), self.prover) == "pass":
                return value
        return None


def literal(value: Any) -> Expr:
    """A value as an expression."""
    if isinstance(value, bool):
        return Expr("bool", (), value)
    if isinstance(value, int):
        return Expr("int", (), value)
    return Expr("seq", tuple(Expr("int", (), v) for v in value))


def entails(
    program: Program,
    names: tuple[tuple[str, Type], ...],
    given: Sequence[Expr],
    shown: Sequence[Expr],
    prover: BuiltIn | None = None,
) -> Score:
    """Say whether conditions over ``names`` follow from others: pass if it is proved, fail if there is an instance
    against it, else unknown; the functions are the program's.

    Raises:
        Broken: the machine failed.
    """
    method = Method("entailed", names, (), tuple(given), tuple(shown), ())
    checked = (prover or BuiltIn()).check(written(Program(program.functions, method)))
    if checked.proved is None:
        raise Broken(checked.fault)
    return "pass" if checked.proved else "fail" if checked.counter else "unknown"


def equivalence(mine: Program, truth: Program, prover: BuiltIn | None = None) -> dict[str, Score]:
    """Compare a contract with the true one by proofs over all values.

    Returns ``pre sound`` (the true precondition entails mine), ``pre complete`` (the other way round), ``post
    complete`` (where inputs are right, the true postcondition entails mine) and ``post sound``; all unknown where both
    define one function differently.
    """
    functions = {f.name: replace(f, line=0) for f in truth.functions}
    if any(functions.setdefault(f.name, replace(f, line=0)) != replace(f, line=0) for f in mine.functions):
        return dict.fromkeys(("pre sound", "pre complete", "post complete", "post sound"), "unknown")
    both = Program(tuple(functions.values()), truth.method)
    one, other = mine.method, truth.method
    names = (*other.params, *other.returns)
    return {
        "pre sound": entails(both, other.params, other.requires, one.requires, prover),
        "pre complete": entails(both, other.params, one.requires, other.requires, prover),
        "post complete": entails(both, names, (*other.requires, *other.ensures), one.ensures, prover),
        "post sound": entails(both, names, (*other.requires, *one.ensures), other.ensures, prover),
    }
