"""What programs are made of, and how they are written: expressions, statements, functions, a method with a contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

Type = Literal["int", "bool", "seq<int>"]


class BadProgram(Exception):
    """A text that is no program of the language; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Expr:
    """An operator with its operands.

    ``op`` is one of ``int bool name`` (``value`` is the literal or the name), ``- ! len`` of one operand, the binary
    operators of :data:`BINARY`, ``at`` (``s[i]``), ``put`` (``s[i := v]``), ``slice`` (``s[a..b]``), ``seq`` (a
    display), ``in``, ``if``, ``call`` (``value`` is the function) or ``forall exists`` (``value`` is the names, all of
    them integers).
    """

    op: str
    args: tuple[Expr, ...] = ()
    value: Any = None


BINARY = ("<==>", "==>", "&&", "||", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%")
LOOSEST = {"<==>": 1, "==>": 2, "&&": 3, "||": 3, "in": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}
TRUE = Expr("bool", (), True)


@dataclass(frozen=True, slots=True)
class Assign:
    names: tuple[str, ...]
    values: tuple[Expr, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class Declare:
    """``var x: int := 0;``; without a value it holds any."""

    names: tuple[str, ...]
    types: tuple[Type | None, ...]
    values: tuple[Expr, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class While:
    condition: Expr
    invariants: tuple[Expr, ...]
    decreases: Expr | None
    body: tuple[Statement, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """``assert`` or ``assume``."""

    word: Literal["assert", "assume"]
    condition: Expr
    line: int = 0


@dataclass(frozen=True, slots=True)
class Leave:
    """``return`` or ``break``."""

    word: Literal["return", "break"]
    values: tuple[Expr, ...] = ()
    line: int = 0


Statement = Assign | Declare | If | While | Claimed | Leave


@dataclass(frozen=True, slots=True)
class Function:
    """A pure function, for specifications; ``decreases`` where it calls itself."""

    name: str
    params: tuple[tuple[str, Type], ...]
    result: Type
    body: Expr
    decreases: Expr | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    """A method with its contract; ``body`` is ``None`` where only the contract is written."""

    name: str
    params: tuple[tuple[str, Type], ...]
    returns: tuple[tuple[str, Type], ...]
    requires: tuple[Expr, ...]
    ensures: tuple[Expr, ...]
    body: tuple[Statement, ...] | None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Functions, and the one method they serve."""

    functions: tuple[Function, ...]
    method: Method

    @property
    def signature(self) -> tuple[Any, ...]:
        return self.method.name, self.method.params, self.method.returns


def nodes(tree: Any) -> Iterator[Any]:
    """Yield every expression, statement and function below ``tree``, itself included."""
    if isinstance(tree, tuple):
        for one in tree:
            yield from nodes(one)
    elif is_dataclass(tree):
        yield tree
        for field in fields(tree):
            yield from nodes(getattr(tree, field.name))


def shown(e: Expr) -> str:
    """An expression as text, with the brackets that it needs."""
    return _shown(e, 0)


def _shown(e: Expr, around: int) -> str:
    args, op = e.args, e.op
    match op:
        case "int":
            return str(e.value) if e.value >= 0 else f"({e.value})"
        case "bool":
            return "true" if e.value else "false"
        case "name":
            return str(e.value)
        case "len":
            return f"|{shown(args[0])}|"
        case "at":
            return f"{_shown(args[0], 9)}[{shown(args[1])}]"
        case "put":
            return f"{_shown(args[0], 9)}[{shown(args[1])} := {shown(args[2])}]"
        case "slice":
            return f"{_shown(args[0], 9)}[{shown(args[1])}..{shown(args[2])}]"
        case "seq":
            return f"[{', '.join(map(shown, args))}]"
        case "call":
            return f"{e.value}({', '.join(map(shown, args))})"
        case "if":
            return f"(if {shown(args[0])} then {shown(args[1])} else {shown(args[2])})"
        case "forall" | "exists":
            return f"({op} {', '.join(e.value)} :: {shown(args[0])})"
    if len(args) == 1:
        return f"{op}{_shown(args[0], 8)}"
    mine = LOOSEST.get(op, 4)
    # From the left go sums, products, and rows of one of && and ||, which do not stand side by side.
    free = mine >= 6 or (mine == LOOSEST["&&"] and args[0].op == op)
    text = f"{_shown(args[0], mine + (not free))} {op} {_shown(args[1], mine + 1)}"
    return f"({text})" if mine < around else text


def written(program: Program, proof: bool = True, contract: bool = True) -> str:
    """A program in one layout; without ``proof`` the annotations are left out: what is left is what was to be proved.

    Invariants, ``decreases`` of loops and assertions are annotations. An assumption is none, so that it is never lost.
    """
    out: list[str] = []
    for f in program.functions if contract else ():
        out.append(f"function {f.name}({_params(f.params)}): {f.result}")
        if f.decreases is not None:
            out.append(f"  decreases {shown(f.decreases)}")
        out.append(f"{{ {shown(f.body)} }}")
    m = program.method
    out.append(f"method {m.name}({_params(m.params)}) returns ({_params(m.returns)})")
    if contract:
        out += [f"  requires {shown(e)}" for e in m.requires] + [f"  ensures {shown(e)}" for e in m.ensures]
    if m.body is not None:
        out += ["{", *_block(m.body, 1, proof), "}"]
    return "\n".join(out) + "\n"


def _params(names: tuple[tuple[str, Type], ...]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in names)


def _block(body: tuple[Statement, ...], depth: int, proof: bool) -> Iterator[str]:
    pad = "  " * depth
    for s in body:
        match s:
            case Assign(names, values):
                yield f"{pad}{', '.join(names)} := {', '.join(map(shown, values))};"
            case Declare(names, types, values):
                told = ", ".join(n if t is None else f"{n}: {t}" for n, t in zip(names, types, strict=True))
                yield f"{pad}var {told}{' := ' + ', '.join(map(shown, values)) if values else ''};"
            case If(condition, then, other):
                yield f"{pad}if {shown(condition)} {{"
                yield from _block(then, depth + 1, proof)
                if other:
                    yield f"{pad}}} else {{"
                    yield from _block(other, depth + 1, proof)
                yield f"{pad}}}"
            case While(condition, invariants, decreases, inner):
                yield f"{pad}while {shown(condition)}"
                if proof:
                    yield from (f"{pad}  invariant {shown(e)}" for e in invariants)
                    if decreases is not None:
                        yield f"{pad}  decreases {shown(decreases)}"
                yield f"{pad}{{"
                yield from _block(inner, depth + 1, proof)
                yield f"{pad}}}"
            case Claimed(word, condition):
                if proof or word == "assume":
                    yield f"{pad}{word} {shown(condition)};"
            case Leave(word, values):
                yield f"{pad}{word}{' ' if values else ''}{', '.join(map(shown, values))};"
