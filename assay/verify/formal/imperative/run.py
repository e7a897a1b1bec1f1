"""Running programs, and contracts on given values: quantifiers over bounded ranges are tried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.verify.formal.imperative.syntax import (
    Assign,
    Claimed,
    Declare,
    Expr,
    Function,
    If,
    Leave,
    Program,
    Statement,
    Type,
    While,
    nodes,
    shown,
)

Value = int | bool | tuple[int, ...]
FUEL = 200_000
"""Steps of one run, at most."""
BITS, LENGTH, DEPTH = 20_000, 100_000, 400
"""Of an integer, of a sequence, and of calls within each other, at most."""


class Crash(Exception):
    """What a program does wrong while it runs: an index out of range, a division by zero, a false assertion."""


class Exhausted(Exception):
    """It took too many steps or too large values."""


class Unbounded(Exception):
    """A quantifier over a range that is not bounded cannot be tried out."""


@dataclass(slots=True)
class Run:
    """Evaluates expressions and statements of one program.

    Args:
        functions: by name.
        fuel: steps that are left.
    """

    functions: Mapping[str, Function]
    fuel: int = FUEL
    depth: int = field(default=0)

    def spend(self, steps: int = 1) -> None:
        self.fuel -= steps
        if self.fuel < 0:
            raise Exhausted("it takes too many steps")

    # -- expressions

    def value(self, e: Expr, names: Mapping[str, Value]) -> Any:
        """Return the value of an expression, or raise one of the exceptions above."""
        self.spend()
        args, op = e.args, e.op
        match op:
            case "int" | "bool":
                return e.value
            case "name":
                return names[e.value]
            case "&&":
                return self.value(args[0], names) and self.value(args[1], names)
            case "||":
                return self.value(args[0], names) or self.value(args[1], names)
            case "==>":
                return not self.value(args[0], names) or self.value(args[1], names)
            case "if":
                return self.value(args[1 if self.value(args[0], names) else 2], names)
            case "forall" | "exists":
                return self._quantified(e, names)
            case "call":
                return self._call(e, names)
        given = [self.value(a, names) for a in args]
        return self._operator(e, op, given)

    def _operator(self, e: Expr, op: str, v: list[Any]) -> Any:
        match op:
            case "==" | "<==>":
                return v[0] == v[1]
            case "!=":
                return v[0] != v[1]
            case "<":
                return v[0] < v[1]
            case "<=":
                return v[0] <= v[1]
            case ">":
                return v[0] > v[1]
            case ">=":
                return v[0] >= v[1]
            case "!":
                return not v[0]
            case "in":
                return v[0] in v[1]
            case "len":
                return len(v[0])
            case "seq":
                return tuple(v)
            case "at" | "put":
                if not 0 <= v[1] < len(v[0]):
                    raise Crash(f"{shown(e)}: index {v[1]} of {len(v[0])}")
                return v[0][v[1]] if op == "at" else (*v[0][: v[1]], v[2], *v[0][v[1] + 1 :])
            case "slice":
                if not 0 <= v[1] <= v[2] <= len(v[0]):
                    raise Crash(f"{shown(e)}: from {v[1]} to {v[2]} of {len(v[0])}")
                return v[0][v[1] : v[2]]
            case "+" if isinstance(v[0], tuple):
                self.spend(len(v[0]) + len(v[1]))
                return _short(v[0] + v[1])
            case "+":
                return v[0] + v[1]
            case "-":
                return v[0] - v[1] if len(v) == 2 else -v[0]
            case "*":
                if v[0].bit_length() + v[1].bit_length() > BITS:
                    raise Exhausted("a number is too large")
                return v[0] * v[1]
        if v[1] == 0:
            raise Crash(f"{shown(e)}: division by zero")
        # The remainder is never negative.
        remainder = v[0] % abs(v[1])
        return remainder if op == "%" else (v[0] - remainder) // v[1]

    def _call(self, e: Expr, names: Mapping[str, Value]) -> Any:
        f = self.functions[e.value]
        given = [self.value(a, names) for a in e.args]
        self.depth += 1
        if self.depth > DEPTH:
            raise Exhausted(f"{e.value} calls itself too often")
        found = self.value(f.body, dict(zip([n for n, _ in f.params], given, strict=True)))
        self.depth -= 1
        return found

    def _quantified(self, e: Expr, names: Mapping[str, Value]) -> bool:
        wanted = e.op == "exists"
        for case in self._cases(list(e.value), conditions(e.args[0], wanted), names, shown(e)):
            if bool(self.value(e.args[0], case)) is wanted:
                return wanted
        return not wanted

    def _cases(
        self, left: list[str], given: list[Expr], names: Mapping[str, Value], what: str
    ) -> Iterator[dict[str, Value]]:
        """Yield ``names`` with every value of the bound names ``left`` for which the conditions could all hold."""
        if not left:
            yield dict(names)
            return
        known = {n: v for n, v in names.items() if n not in left}
        spans = self._spans(left, given, known)
        name = next((n for n in left if None not in spans[n]), None)
        if name is None:
            raise Unbounded(f"{what}: {left[0]} has no bounds")
        low, high = spans[name]
        assert low is not None and high is not None
        for i in range(low, high + 1):
            self.spend()
            yield from self._cases([n for n in left if n != name], given, {**known, name: i}, what)

    def _spans(
        self, left: list[str], given: list[Expr], known: Mapping[str, Value]
    ) -> dict[str, tuple[int | None, int | None]]:
        """Return bounds of each name, as far as there are any; one may follow from that of another, as in i < j < n."""
        spans: dict[str, tuple[int | None, int | None]] = dict.fromkeys(left, (None, None))
        for _ in left:
            for e in given:
                sides = [(e.op, *e.args)] if len(e.args) == 2 else []
                sides += [(_MIRROR[e.op], e.args[1], e.args[0])] if e.op in _MIRROR else []
                for op, one, other in sides:
                    if one.op == "name" and one.value in spans and op in (*_MIRROR, "in"):
                        spans[one.value] = _tighter(spans[one.value], self._bounds(op, other, spans, known))
        return spans

    def _bounds(
        self, op: str, other: Expr, spans: Mapping[str, tuple[int | None, int | None]], known: Mapping[str, Value]
    ) -> tuple[int | None, int | None]:
        """The bounds of what stands in relation ``op`` to ``other``."""
        if op != "in" and other.op == "name" and other.value in spans:
            low, high = spans[other.value]
        elif _mentions(other, list(spans)):
            return None, None
        else:
            try:
                value = self.value(other, known)
            except Crash:
                return None, None  # a condition before it keeps it from being looked at
            if op == "in":
                return (min(value), max(value)) if value else (0, -1)
            low = high = value
        low = None if low is None or op in ("<", "<=") else low + (op == ">")
        high = None if high is None or op in (">", ">=") else high - (op == "<")
        return low, high

    # -- statements

    def block(self, body: tuple[Statement, ...], names: dict[str, Any], returns: Sequence[str]) -> str:
        """Run a block, changing ``names``; return ``return`` or ``break`` where it was left by one, else nothing."""
        declared: list[str] = []
        left = ""
        for s in body:
            self.spend()
            match s:
                case Assign(targets, values):
                    names.update(zip(targets, [self.value(v, names) for v in values], strict=True))
                case Declare(new, types, values):
                    made = [self.value(v, names) for v in values] or [_nothing(t) for t in types]
                    names.update(zip(new, made, strict=True))
                    declared += new
                case If(condition, then, other):
                    left = self.block(then if self.value(condition, names) else other, names, returns)
                case While(condition, _, _, inner):
                    while not left and self.value(condition, names):
                        left = self.block(inner, names, returns)
                    left = "" if left == "break" else left
                case Claimed():
                    pass  # a part of the proof
                case Leave(word, values):
                    if values:
                        names.update(zip(returns, [self.value(v, names) for v in values], strict=True))
                    left = word
            if left:
                break
        for name in declared:
            del names[name]
        return left


_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def conditions(body: Expr, every: bool) -> list[Expr]:
    """Return conditions that hold wherever it matters: of ``exists`` all conjuncts, of ``forall`` the antecedents'."""
    if body.op == "&&" and every:
        return [c for a in body.args for c in conditions(a, True)]
    if body.op == "==>" and not every:
        return conditions(body.args[0], True) + conditions(body.args[1], False)
    if every:
        return [body]
    return []


def execute(program: Program, inputs: Sequence[Value], fuel: int = FUEL) -> tuple[tuple[Value, ...], int]:
    """Run the method on ``inputs``; return what it returns, and the steps it took.

    Raises:
        Crash, Exhausted, Unbounded: it fails.
    """
    method = program.method
    assert method.body is not None
    names: dict[str, Any] = dict(zip([n for n, _ in method.params], inputs, strict=True))
    names |= {name: _nothing(kind) for name, kind in method.returns}
    outputs = [name for name, _ in method.returns]
    run = Run({f.name: f for f in program.functions}, fuel)
    run.block(method.body, names, outputs)
    return tuple(names[name] for name in outputs), fuel - run.fuel


def holds(program: Program, conditions: Sequence[Expr], names: Mapping[str, Value], fuel: int = FUEL) -> bool:
    """Say whether every condition holds for values of names.

    Raises:
        Crash, Exhausted, Unbounded: it cannot be told.
    """
    run = Run({f.name: f for f in program.functions}, fuel)
    return all(run.value(e, names) for e in conditions)


def values(kinds: Sequence[Type], given: Sequence[Any]) -> tuple[Value, ...]:
    """Return JSON values as values of the types.

    Raises:
        ValueError: one does not fit, or they are not as many.
    """
    found: list[Value] = []
    for kind, one in zip(kinds, given, strict=True):
        if kind == "seq<int>" and isinstance(one, list | tuple) and all(type(x) is int for x in one):
            found.append(tuple(one))
        elif type(one) is (int if kind == "int" else bool):
            found.append(one)
        else:
            raise ValueError(f"{one!r} is no {kind}")
    return tuple(found)


def _tighter(one: tuple[int | None, int | None], other: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    lows, highs = ([x for x in side if x is not None] for side in zip(one, other, strict=True))
    return max(lows, default=None), min(highs, default=None)


def _mentions(e: Expr, names: Sequence[str]) -> bool:
    return any(isinstance(n, Expr) and n.op == "name" and n.value in names for n in nodes(e))


def _nothing(kind: Type | None) -> Value:
    return 0 if kind == "int" else False if kind == "bool" else ()


def _short(value: tuple[int, ...]) -> tuple[int, ...]:
    if len(value) > LENGTH:
        raise Exhausted("a sequence is too long")
    return value
