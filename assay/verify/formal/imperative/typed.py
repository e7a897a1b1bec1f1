"""The types of a program fit, every name is known where it is used, and what is written to may be written to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.verify.formal.imperative.syntax import (
    Assign,
    BadProgram,
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

Names = Mapping[str, Type]


def typed(program: Program) -> None:
    """Check a program.

    A local name is new where it is declared; parameters are never written to; functions yield integers or truths, and
    call those before them and themselves.

    Raises:
        BadProgram: something does not fit.
    """
    known: dict[str, Function] = {}
    for f in program.functions:
        if f.name in known or f.name == program.method.name:
            raise BadProgram(f"line {f.line}: {f.name} is declared twice")
        if f.result == "seq<int>":
            raise BadProgram(f"line {f.line}: {f.name} yields a sequence; functions yield integers or truths")
        known[f.name] = f
        of = _Typing(known, f.line)
        names = of.distinct(f.params)
        of.want(f.body, f.result, names)
        if f.decreases is not None:
            of.want(f.decreases, "int", names)
        elif any(isinstance(n, Expr) and n.op == "call" and n.value == f.name for n in nodes(f.body)):
            raise BadProgram(f"line {f.line}: {f.name} calls itself and says not what decreases")
    method = program.method
    of = _Typing(known, method.line)
    given = of.distinct(method.params)
    both = of.distinct((*method.params, *method.returns))
    for e in method.requires:
        of.want(e, "bool", given)
    for e in method.ensures:
        of.want(e, "bool", both)
    if method.body is not None:
        _Body(known, frozenset(given), tuple(t for _, t in method.returns)).block(method.body, dict(both), False)


def type_of(e: Expr, names: Names, functions: Mapping[str, Function], line: int = 0) -> Type:
    """Return the type of an expression over ``names``, or raise BadProgram."""
    return _Typing(functions, line).of(e, names)


def integers(names: Iterable[str]) -> dict[str, Type]:
    """The types of names that a quantifier binds."""
    found: dict[str, Type] = {}
    for name in names:
        found[name] = "int"
    return found


@dataclass(frozen=True, slots=True)
class _Typing:
    functions: Mapping[str, Function]
    line: int

    def wrong(self, why: str) -> BadProgram:
        return BadProgram(f"line {self.line}: {why}")

    def distinct(self, pairs: tuple[tuple[str, Type], ...]) -> dict[str, Type]:
        if len(dict(pairs)) < len(pairs):
            raise self.wrong(f"one of {', '.join(n for n, _ in pairs)} is there twice")
        return dict(pairs)

    def want(self, e: Expr, kind: Type, names: Names) -> None:
        found = self.of(e, names)
        if found != kind:
            raise self.wrong(f"{shown(e)} is {found}, not {kind}")

    def of(self, e: Expr, names: Names) -> Type:
        args, op = e.args, e.op
        if op == "int" or op == "bool":
            return "int" if op == "int" else "bool"
        if op == "name":
            if e.value not in names:
                raise self.wrong(f"{e.value} is not known")
            return names[e.value]
        if op == "call":
            f = self.functions.get(e.value)
            if f is None:
                raise self.wrong(f"no function {e.value}")
            if len(f.params) != len(args):
                raise self.wrong(f"{e.value} takes {len(f.params)} arguments, not {len(args)}")
            for one, (_, kind) in zip(args, f.params, strict=True):
                self.want(one, kind, names)
            return f.result
        if op in ("forall", "exists"):
            self.want(args[0], "bool", {**names, **integers(e.value)})
            return "bool"
        if op == "if":
            self.want(args[0], "bool", names)
            found = self.of(args[1], names)
            self.want(args[2], found, names)
            return found
        if op in ("==", "!=", "+"):
            found = self.of(args[0], names)
            self.want(args[1], found, names)
            if op != "+":
                return "bool"
            if found == "bool":
                raise self.wrong(f"{shown(e)} adds truths")
            return found
        kinds, result = _SIGNATURES[op if op != "-" or len(args) == 2 else "negate"]
        for one, kind in zip(args, kinds * (len(args) if op == "seq" else 1), strict=True):
            self.want(one, kind, names)
        return result


_Signature = tuple[tuple[Type, ...], Type]
_TRUTHS: _Signature = (("bool", "bool"), "bool")
_ORDER: _Signature = (("int", "int"), "bool")
_SUM: _Signature = (("int", "int"), "int")
_SIGNATURES: dict[str, _Signature] = {
    **dict.fromkeys(("<==>", "==>", "&&", "||"), _TRUTHS),
    **dict.fromkeys(("<", "<=", ">", ">="), _ORDER),
    **dict.fromkeys(("-", "*", "/", "%"), _SUM),
    "negate": (("int",), "int"),
    "!": (("bool",), "bool"),
    "len": (("seq<int>",), "int"),
    "at": (("seq<int>", "int"), "int"),
    "put": (("seq<int>", "int", "int"), "seq<int>"),
    "slice": (("seq<int>", "int", "int"), "seq<int>"),
    "seq": (("int",), "seq<int>"),
    "in": (("int", "seq<int>"), "bool"),
}


@dataclass(frozen=True, slots=True)
class _Body:
    functions: Mapping[str, Function]
    fixed: frozenset[str]
    returns: tuple[Type, ...]

    def runs(self, of: _Typing, *expressions: Expr) -> None:
        """Functions and quantifiers are for specifications: code that could call them would be its own contract."""
        for e in nodes(expressions):
            if e.op in ("call", "forall", "exists"):
                raise of.wrong(f"{shown(e)} is for specifications and proofs, not to be run")

    def block(self, body: tuple[Statement, ...], names: dict[str, Type], loop: bool) -> None:
        """Check a block under ``names``; what it declares ends with it."""
        names = dict(names)
        for s in body:
            of = _Typing(self.functions, s.line)
            if isinstance(s, Assign | Declare | Leave):
                self.runs(of, *s.values)
            elif isinstance(s, If | While):
                self.runs(of, s.condition)
            match s:
                case Declare(new, types, values):
                    if values and len(values) != len(new):
                        raise of.wrong(f"{len(values)} values for {len(new)} names")
                    kinds = [of.of(v, names) for v in values]
                    for i, (name, kind) in enumerate(zip(new, types, strict=True)):
                        if name in names:
                            raise of.wrong(f"{name} is there already")
                        if kind is None and not values:
                            raise of.wrong(f"{name} needs a type or a value")
                        if kind is not None and values and kinds[i] != kind:
                            raise of.wrong(f"{name} is {kind}, its value {kinds[i]}")
                        names[name] = kind or kinds[i]
                case Assign(targets, values):
                    if len(targets) != len(values) or len(set(targets)) < len(targets):
                        raise of.wrong("as many values as names are expected, and each name once")
                    for name, value in zip(targets, values, strict=True):
                        if name in self.fixed or name not in names:
                            raise of.wrong(f"{name} cannot be assigned to")
                        of.want(value, names[name], names)
                case If(condition, then, other):
                    of.want(condition, "bool", names)
                    self.block(then, names, loop)
                    self.block(other, names, loop)
                case While(condition, invariants, decreases, inner):
                    for e in (condition, *invariants):
                        of.want(e, "bool", names)
                    if decreases is not None:
                        of.want(decreases, "int", names)
                    self.block(inner, names, True)
                case Claimed(_, condition):
                    of.want(condition, "bool", names)
                case Leave("break", _):
                    if not loop:
                        raise of.wrong("break outside a loop")
                case Leave(_, values):
                    if values and len(values) != len(self.returns):
                        raise of.wrong(f"{len(values)} values are returned, {len(self.returns)} are expected")
                    for value, kind in zip(values, self.returns if values else (), strict=True):
                        of.want(value, kind, names)
