"""What has to be shown for a program to keep its contract: weakest preconditions, by one constant for each assignment.

A loop is cut at its head: its invariants hold on entry, and of any state in which they hold an iteration leads to one
in which they hold again, with the measure smaller and bounded below, so that every loop ends. What follows a loop knows
of the variables it assigns to only the invariants, and that the condition is false or the loop was left.

Source: Flanagan & Saxe, "Avoiding exponential explosion: generating compact verification conditions" (2001), Dijkstra's
weakest preconditions of the same programs in size linear in theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from assay.verify.formal.imperative.smtlib import PRELUDE, SORTS, Terms, conj, declaration, implies
from assay.verify.formal.imperative.syntax import (
    Assign,
    Claimed,
    Declare,
    Expr,
    Function,
    If,
    Leave,
    Method,
    Program,
    Statement,
    Type,
    While,
    nodes,
    shown,
)


@dataclass(frozen=True, slots=True)
class Item:
    """A formula that may be assumed from here on, or is to be proved first; ``what`` might not hold otherwise."""

    kind: Literal["assume", "prove"]
    formula: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """Declarations and items in order. ``inputs``: the constants that stand for a method's parameters."""

    declarations: str
    items: tuple[Item, ...]
    inputs: tuple[tuple[str, str, Type], ...] = ()


def scripts(program: Program) -> list[Script]:
    """Return what has to be shown: of each function that it is defined and ends, then of the method.

    A function's own definition is not assumed while it is shown to end, as one that does not end says anything.
    """
    functions = {f.name: f for f in program.functions}
    found, defined = [], PRELUDE
    for f in program.functions:
        made = _Conditions(functions, dict(f.params))
        names = {n: made.fresh(t, n) for n, t in f.params}
        of = Terms(functions, dict(f.params), f)
        for e in [f.body] if f.decreases is None else [f.decreases, f.body]:
            made.prove(
                "true", of.defined(e, names), f"line {f.line}: {f.name} is not defined everywhere, or may not end"
            )
        found.append(made.script(defined + declaration(f)))
        defined += of.definition(f)
    method = program.method
    types = dict((*method.params, *method.returns))
    made = _Conditions(functions, types)
    names = {n: made.fresh(t, n) for n, t in method.params}
    inputs = tuple((n, names[n], t) for n, t in method.params)
    made.contract(method, names)
    if method.body is not None:
        names |= {n: made.fresh(t, n) for n, t in method.returns}
        _, path = made.block(method.body, names, "true", method, [])
        made.ensured(method, made.last, path, method.line, "at its end")
    found.append(made.script(defined, inputs))
    return found


@dataclass(slots=True)
class _Conditions:
    functions: Mapping[str, Function]
    types: dict[str, Type]
    declarations: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)

    def script(self, before: str, inputs: tuple[tuple[str, str, Type], ...] = ()) -> Script:
        return Script(before + "".join(self.declarations), tuple(self.items), inputs)

    @property
    def of(self) -> Terms:
        return Terms(self.functions, self.types)

    def fresh(self, kind: Type, name: str) -> str:
        """Declare a constant that may hold any value of its type."""
        made = f"v_{name}!{len(self.declarations)}"
        self.declarations.append(f"(declare-const {made} {SORTS[kind]})\n")
        if kind == "seq<int>":
            self.items.append(Item("assume", f"(<= 0 (len {made}))"))
        return made

    def let(self, kind: Type, name: str, term: str) -> str:
        made = f"v_{name}!{len(self.declarations)}"
        self.declarations.append(f"(declare-const {made} {SORTS[kind]})\n")
        self.items.append(Item("assume", f"(= {made} {term})"))
        return made

    def path(self, *terms: str) -> str:
        whole = conj(*terms)
        return whole if whole in ("true", "false") else self.let("bool", "path", whole)

    def prove(self, path: str, formula: str, what: str) -> None:
        if formula != "true" and path != "false":
            self.items.append(Item("prove", implies(path, formula), what))

    def assume(self, path: str, formula: str) -> None:
        self.items.append(Item("assume", implies(path, formula)))

    def value(self, e: Expr, names: Mapping[str, str], path: str, line: int) -> str:
        """The term of an expression that the program evaluates here."""
        self.prove(path, self.of.defined(e, names), f"line {line}: {shown(e)} may not be defined")
        return self.of.term(e, names)

    def contract(self, method: Method, names: Mapping[str, str]) -> None:
        """Show that the contract means something, and assume the precondition."""
        for e in method.requires:
            self.assume("true", self.value(e, names, "true", method.line))
        outputs = {n: self.fresh(t, n) for n, t in method.returns}
        path = self.fresh("bool", "contract")
        for e in method.ensures:
            self.assume(path, self.value(e, {**names, **outputs}, path, method.line))

    def ensured(self, method: Method, names: Mapping[str, str], path: str, line: int, where: str) -> None:
        for e in method.ensures:
            self.prove(path, self.of.term(e, names), f"line {line}: {shown(e)} might not hold {where}")

    def block(
        self,
        body: tuple[Statement, ...],
        names: dict[str, str],
        path: str,
        method: Method,
        breaks: list[tuple[str, dict[str, str]]],
    ) -> tuple[dict[str, str], str]:
        """Go through a block; return the constants of the names that were there before, and the path that goes on."""
        before, names = set(names), dict(names)
        types = dict(self.types)
        for s in body:
            match s:
                case Assign(targets, values):
                    terms = [self.value(v, names, path, s.line) for v in values]
                    names |= {n: self.let(self.types[n], n, t) for n, t in zip(targets, terms, strict=True)}
                case Declare(new, given, values):
                    kinds = [k or self.of.kind(v) for k, v in zip(given, values, strict=True)] if values else given
                    terms = [self.value(v, names, path, s.line) for v in values]
                    for i, (n, kind) in enumerate(zip(new, kinds, strict=True)):
                        assert kind is not None
                        self.types[n] = kind
                        names[n] = self.let(kind, n, terms[i]) if values else self.fresh(kind, n)
                case If(condition, then, other):
                    test = self.let("bool", "if", self.value(condition, names, path, s.line))
                    one, first = self.block(then, names, self.path(path, test), method, breaks)
                    two, second = self.block(other, names, self.path(path, f"(not {test})"), method, breaks)
                    names = {n: self.either(n, test, one[n], two[n]) for n in names}
                    path = self.path(path, f"(or {first} {second})")
                case While():
                    names, path = self.loop(s, names, path, method)
                case Claimed(word, condition):
                    term = self.value(condition, names, path, s.line)
                    if word == "assert":
                        self.prove(path, term, f"line {s.line}: {shown(condition)} might not hold")
                    self.assume(path, term)
                case Leave("break", _):
                    breaks.append((path, dict(names)))
                    path = "false"
                case Leave(_, values):
                    terms = [self.value(v, names, path, s.line) for v in values]
                    outputs = [n for n, _ in method.returns]
                    left = {**names, **dict(zip(outputs, terms, strict=False))} if values else names
                    self.ensured(method, left, path, s.line, "where it returns")
                    path = "false"
        self.types = types
        self.last = {n: names[n] for n in before}
        return self.last, path

    def either(self, name: str, test: str, one: str, two: str) -> str:
        return one if one == two else self.let(self.types[name], name, f"(ite {test} {one} {two})")

    def loop(self, s: While, names: dict[str, str], path: str, method: Method) -> tuple[dict[str, str], str]:
        for e in s.invariants:
            term = self.of.term(e, names)
            self.prove(
                path, conj(self.of.defined(e, names), term), f"line {s.line}: {shown(e)} might not hold on entry"
            )
        written = {n for x in nodes(s.body) if isinstance(x, Assign) for n in x.names} & set(names)
        head = {n: self.fresh(self.types[n], n) if n in written else c for n, c in names.items()}
        for e in s.invariants:
            # Defined in any state in which those before it hold, not only in the first.
            self.assume(path, self.value(e, head, path, s.line))
        test = self.let("bool", "while", self.value(s.condition, head, path, s.line))
        inside = self.path(path, test)
        measure = s.decreases or guessed(s.condition)
        if measure is None:
            self.prove(path, "false", f"line {s.line}: the loop says not what decreases")
        before = self.value(measure, head, inside, s.line) if measure else "0"
        breaks: list[tuple[str, dict[str, str]]] = []
        after, end = self.block(s.body, head, inside, method, breaks)
        for e in s.invariants:
            self.prove(end, self.of.term(e, after), f"line {s.line}: {shown(e)} might not be kept by the loop")
        if measure is not None:
            smaller = f"(and (<= 0 {before}) (< {self.of.term(measure, after)} {before}))"
            self.prove(
                end, smaller, f"line {s.line}: {shown(measure)} might not decrease, or not be bounded below by 0"
            )
        out = {n: head[n] for n in names}
        for taken, state in breaks:
            out = {n: self.either(n, taken, state[n], out[n]) for n in out}
        left = [f"(not {test})", *(taken for taken, _ in breaks)]
        return out, self.path(path, f"(or {' '.join(left)})")


def guessed(condition: Expr) -> Expr | None:
    """Return what decreases, as far as the condition of a loop suggests it: the distance of what it compares."""
    if condition.op == "&&":
        return guessed(condition.args[0]) or guessed(condition.args[1])
    if condition.op in ("<", "<="):
        return Expr("-", (condition.args[1], condition.args[0]))
    if condition.op in (">", ">="):
        return Expr("-", condition.args)
    return None
