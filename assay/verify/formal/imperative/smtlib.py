"""Expressions as SMT-LIB terms, and when they are defined: indices in range, no division by zero, calls that end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.verify.formal.imperative.syntax import Expr, Function, Type
from assay.verify.formal.imperative.typed import integers, type_of

SORTS: Mapping[Type, str] = {"int": "Int", "bool": "Bool", "seq<int>": "Lst"}
PRELUDE = "(declare-datatypes ((Lst 0)) (((mk (arr (Array Int Int)) (len Int)))))\n"
"""A sequence is an array with a length; what the array holds beyond it counts for nothing."""
_SAME = {"&&": "and", "||": "or", "==>": "=>", "<==>": "=", "/": "div", "%": "mod", "!": "not"}


def conj(*terms: str) -> str:
    kept = [t for t in terms if t != "true"]
    return "true" if not kept else kept[0] if len(kept) == 1 else f"(and {' '.join(kept)})"


def implies(given: str, term: str) -> str:
    return term if given == "true" or term == "true" else f"(=> {given} {term})"


@dataclass(frozen=True, slots=True)
class Terms:
    """Writes expressions over names.

    Attributes:
        functions: of the program, by name.
        types: of every name that may stand in an expression.
        within: the function whose body it is: its calls of itself have to get smaller.
    """

    functions: Mapping[str, Function]
    types: Mapping[str, Type]
    within: Function | None = None

    def kind(self, e: Expr) -> Type:
        return type_of(e, self.types, self.functions)

    def under(self, names: tuple[str, ...]) -> Terms:
        """Inside a quantifier over integers ``names``."""
        types = {**self.types, **integers(names)}
        return Terms(self.functions, types, self.within)

    def term(self, e: Expr, names: Mapping[str, str]) -> str:
        """Return the term of an expression, given the terms of the names in it."""
        op, args = e.op, e.args
        if op == "int":
            return str(e.value) if e.value >= 0 else f"(- {-e.value})"
        if op == "bool":
            return "true" if e.value else "false"
        if op == "name":
            return names[e.value]
        if op in ("forall", "exists"):
            inner = {n: f"q_{n}" for n in e.value}
            bound = " ".join(f"({t} Int)" for t in inner.values())
            return f"({op} ({bound}) {self.under(e.value).term(args[0], {**names, **inner})})"
        v = [self.term(a, names) for a in args]
        match op:
            case "==" | "!=":
                equal = _equal(*v) if self.kind(args[0]) == "seq<int>" else f"(= {v[0]} {v[1]})"
                return equal if op == "==" else f"(not {equal})"
            case "if":
                return f"(ite {v[0]} {v[1]} {v[2]})"
            case "call":
                return f"(f_{e.value} {' '.join(v)})" if v else f"f_{e.value}"
            case "len":
                return f"(len {v[0]})"
            case "at":
                return f"(select (arr {v[0]}) {v[1]})"
            case "put":
                return f"(mk (store (arr {v[0]}) {v[1]} {v[2]}) (len {v[0]}))"
            case "slice":
                shifted = f"(lambda ((q_ Int)) (select (arr {v[0]}) (+ q_ {v[1]})))"
                return f"(mk {f'(arr {v[0]})' if v[1] == '0' else shifted} (- {v[2]} {v[1]}))"
            case "seq":
                return _stored("((as const (Array Int Int)) 0)", "0", v)
            case "in":
                return f"(exists ((q_ Int)) (and (<= 0 q_) (< q_ (len {v[1]})) (= (select (arr {v[1]}) q_) {v[0]})))"
            case "+" if self.kind(e) == "seq<int>":
                if args[1].op == "seq":
                    items = [self.term(a, names) for a in args[1].args]
                    return _stored(f"(arr {v[0]})", f"(len {v[0]})", items)
                both = f"(ite (< q_ (len {v[0]})) (select (arr {v[0]}) q_) (select (arr {v[1]}) (- q_ (len {v[0]}))))"
                return f"(mk (lambda ((q_ Int)) {both}) (+ (len {v[0]}) (len {v[1]})))"
        return f"({_SAME.get(op, op)} {' '.join(v)})"

    def defined(self, e: Expr, names: Mapping[str, str]) -> str:
        """Return the condition under which an expression means something; operands that are not reached are free."""
        op, args = e.op, e.args
        if op in ("&&", "==>", "||"):
            first = self.term(args[0], names)
            reached = f"(not {first})" if op == "||" else first
            return conj(self.defined(args[0], names), implies(reached, self.defined(args[1], names)))
        if op == "if":
            first = self.term(args[0], names)
            then, other = (self.defined(a, names) for a in args[1:])
            branches = conj(implies(first, then), implies(f"(not {first})", other))
            return conj(self.defined(args[0], names), branches)
        if op in ("forall", "exists"):
            inner = {n: f"q_{n}" for n in e.value}
            body = self.under(e.value).defined(args[0], {**names, **inner})
            return body if body == "true" else f"(forall ({' '.join(f'({t} Int)' for t in inner.values())}) {body})"
        below = conj(*(self.defined(a, names) for a in args))
        v = [self.term(a, names) for a in args]
        if op in ("at", "put"):
            return conj(below, f"(and (<= 0 {v[1]}) (< {v[1]} (len {v[0]})))")
        if op == "slice":
            return conj(below, f"(and (<= 0 {v[1]}) (<= {v[1]} {v[2]}) (<= {v[2]} (len {v[0]})))")
        if op in ("/", "%"):
            return conj(below, f"(not (= {v[1]} 0))")
        if op == "call" and self.within is not None and e.value == self.within.name:
            return conj(below, self._smaller(v, names))
        return below

    def _smaller(self, given: list[str], names: Mapping[str, str]) -> str:
        assert self.within is not None and self.within.decreases is not None
        own = Terms(self.functions, dict(self.within.params))
        params = [n for n, _ in self.within.params]
        now = own.term(self.within.decreases, {n: names[n] for n in params})
        then = own.term(self.within.decreases, dict(zip(params, given, strict=True)))
        return f"(and (<= 0 {now}) (< {then} {now}))"

    def definition(self, f: Function) -> str:
        """A function as SMT-LIB defines it."""
        names = {n: f"v_{n}" for n, _ in f.params}
        params = " ".join(f"({names[n]} {SORTS[t]})" for n, t in f.params)
        body = Terms(self.functions, dict(f.params)).term(f.body, names)
        word = "define-fun-rec" if f.decreases is not None else "define-fun"
        return f"({word} f_{f.name} ({params}) {SORTS[f.result]} {body})\n"


def declaration(f: Function) -> str:
    """A function of which nothing is known."""
    return f"(declare-fun f_{f.name} ({' '.join(SORTS[t] for _, t in f.params)}) {SORTS[f.result]})\n"


def _equal(a: str, b: str) -> str:
    inside = f"(and (<= 0 q_) (< q_ (len {a})))"
    same = f"(= (select (arr {a}) q_) (select (arr {b}) q_))"
    return f"(and (= (len {a}) (len {b})) (forall ((q_ Int)) (=> {inside} {same})))"


def _stored(array: str, start: str, items: list[str]) -> str:
    for i, item in enumerate(items):
        array = f"(store {array} {f'(+ {start} {i})' if start != '0' else i} {item})"
    return f"(mk {array} {f'(+ {start} {len(items)})' if start != '0' else len(items)})"
