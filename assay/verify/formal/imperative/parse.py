"""Reading programs: every text is a program with types that fit, or a :class:`BadProgram` that says why not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from assay.verify.formal.imperative.syntax import (
    Assign,
    BadProgram,
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
)
from assay.verify.formal.imperative.typed import typed

T = TypeVar("T")
LONGEST = 50_000
"""Characters of a program, at most."""
DEEPEST = 40
"""Brackets and blocks within each other, at most."""
HIGHEST = 120
"""Operators above each other in one expression, at most: so many terms may be added in a row."""
_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<number>[0-9]+)|(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<mark><==>|==>|:=|::|&&|\|\||==|!=|<=|>=|\.\.|[-+*/%<>!()\[\]{},:;|])",
    re.DOTALL,
)
_OWN = """method function predicate returns requires ensures invariant decreases if then else while var assert assume
    return break forall exists true false in int bool seq"""
_DAFNYS = """array as by calc case char class const datatype export extends fresh ghost import include iterator label
    lemma map match modifies module multiset nat new newtype null object old print reads real refines set static string
    this trait type unchanged where witness yield ORDINAL"""
_WORDS = frozenset(f"{_OWN} {_DAFNYS}".split())
"""No names; Dafny's among them, so that what is a program here is one there."""
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")


def parse(text: str) -> Program:
    """Return the program that ``text`` is: functions and one method, in any order.

    Raises:
        BadProgram: it is none, its types do not fit, or it is too long or too deep.
    """
    program = _Reader(text).program()
    typed(program)
    return program


def expression(text: str) -> Expr:
    """Return the expression that ``text`` is; its types are not checked."""
    reader = _Reader(text)
    found = reader.expr()
    reader.end()
    return found


class _Reader:
    def __init__(self, text: str):
        if len(text) > LONGEST:
            raise BadProgram(f"longer than {LONGEST:,} characters")
        self.tokens: list[tuple[str, str, int]] = []
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise BadProgram(f"line {line}: {text[at]!r} is nothing of the language")
            if match.lastgroup != "space":
                self.tokens.append((str(match.lastgroup), match.group(), line))
            line += match.group().count("\n")
            at = match.end()
        self.tokens.append(("end", "", line))
        self.at = self.depth = 0
        self.heights: dict[int, int] = {}
        self.made: list[Expr] = []

    # -- tokens

    @property
    def line(self) -> int:
        return self.tokens[self.at][2]

    def wrong(self, wanted: str) -> BadProgram:
        kind, text, line = self.tokens[self.at]
        return BadProgram(f"line {line}: {wanted} is expected, not {'the end' if kind == 'end' else repr(text)}")

    def sees(self, *texts: str) -> bool:
        kind, text, _ = self.tokens[self.at]
        return kind != "end" and text in texts

    def take(self, *texts: str) -> str | None:
        """The next token if it is one of ``texts``."""
        if not self.sees(*texts):
            return None
        self.at += 1
        return self.tokens[self.at - 1][1]

    def need(self, *texts: str) -> str:
        found = self.take(*texts)
        if found is None:
            raise self.wrong(" or ".join(map(repr, texts)))
        return found

    def name(self) -> str:
        kind, text, _ = self.tokens[self.at]
        if kind != "word" or text in _WORDS:
            raise self.wrong("a name")
        self.at += 1
        return text

    def end(self) -> None:
        if self.tokens[self.at][0] != "end":
            raise self.wrong("the end")

    def many(self, one: Callable[[], T]) -> tuple[T, ...]:
        found = [one()]
        while self.take(","):
            found.append(one())
        return tuple(found)

    def inside(self, read: Callable[[], T]) -> T:
        """Read something that may hold itself."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadProgram(f"line {self.line}: more than {DEEPEST} brackets or blocks within each other")
        found = read()
        self.depth -= 1
        return found

    def node(self, op: str, *args: Expr, value: Any = None) -> Expr:
        height = 1 + max((self.heights[id(a)] for a in args), default=0)
        if height > HIGHEST:
            raise BadProgram(f"line {self.line}: more than {HIGHEST} operators in a row")
        made = Expr(op, args, value)
        self.made.append(made)  # kept, so that no two have one id
        self.heights[id(made)] = height
        return made

    # -- declarations

    def program(self) -> Program:
        functions: list[Function] = []
        methods: list[Method] = []
        while self.tokens[self.at][0] != "end":
            word = self.need("method", "function", "predicate")
            if word == "method":
                methods.append(self.method())
            else:
                functions.append(self.function(word))
        if len(methods) != 1:
            raise BadProgram(f"{len(methods)} methods, where one is expected")
        return Program(tuple(functions), methods[0])

    def function(self, word: str) -> Function:
        line, name, params = self.line, self.name(), self.params()
        result: Type = "bool"
        if word == "function":
            self.need(":")
            result = self.type()
        decreases = self.expr() if self.take("decreases") else None
        self.need("{")
        body = self.expr()
        self.need("}")
        return Function(name, params, result, body, decreases, line)

    def method(self) -> Method:
        line, name, params = self.line, self.name(), self.params()
        self.need("returns")
        returns = self.params()
        requires: list[Expr] = []
        ensures: list[Expr] = []
        while word := self.take("requires", "ensures"):
            (requires if word == "requires" else ensures).append(self.expr())
        body = self.block() if self.sees("{") else None
        return Method(name, params, returns, tuple(requires), tuple(ensures), body, line)

    def params(self) -> tuple[tuple[str, Type], ...]:
        self.need("(")
        if self.take(")"):
            return ()
        found = self.many(lambda: (self.name(), self._typed()))
        self.need(")")
        return found

    def _typed(self) -> Type:
        self.need(":")
        return self.type()

    def type(self) -> Type:
        word = self.need("int", "bool", "seq")
        if word != "seq":
            return "int" if word == "int" else "bool"
        self.need("<")
        self.need("int")
        self.need(">")
        return "seq<int>"

    # -- statements

    def block(self) -> tuple[Statement, ...]:
        def read() -> tuple[Statement, ...]:
            self.need("{")
            found: list[Statement] = []
            while not self.take("}"):
                found.append(self.statement())
            return tuple(found)

        return self.inside(read)

    def statement(self) -> Statement:
        line = self.line
        word = self.take("if", "while", "assert", "assume", "return", "break", "var")
        if word == "if":
            return self.conditional(line)
        if word == "while":
            return self.loop(line)
        made: Statement
        if word == "assert" or word == "assume":
            made = Claimed("assert" if word == "assert" else "assume", self.expr(), line)
        elif word == "return":
            made = Leave("return", () if self.sees(";") else self.many(self.expr), line)
        elif word == "break":
            made = Leave("break", (), line)
        elif word == "var":
            pairs = self.many(lambda: (self.name(), self._typed() if self.sees(":") else None))
            values = self.many(self.expr) if self.take(":=") else ()
            made = Declare(tuple(n for n, _ in pairs), tuple(t for _, t in pairs), values, line)
        else:
            names = self.many(self.name)
            self.need(":=")
            made = Assign(names, self.many(self.expr), line)
        self.need(";")
        return made

    def conditional(self, line: int) -> If:
        condition, then = self.expr(), self.block()
        other: tuple[Statement, ...] = ()
        if self.take("else"):
            start = self.line
            other = (self.inside(lambda: self.conditional(start)),) if self.take("if") else self.block()
        return If(condition, then, other, line)

    def loop(self, line: int) -> While:
        condition = self.expr()
        invariants: list[Expr] = []
        decreases: Expr | None = None
        while word := self.take("invariant", "decreases"):
            if word == "invariant":
                invariants.append(self.expr())
            elif decreases is not None:
                raise BadProgram(f"line {line}: a loop with two measures")
            else:
                decreases = self.expr()
        return While(condition, tuple(invariants), decreases, self.block(), line)

    # -- expressions, from the loosest operator to the tightest

    def expr(self) -> Expr:
        def read() -> Expr:
            left = self.implication()
            while self.take("<==>"):
                left = self.node("<==>", left, self.implication())
            return left

        return self.inside(read)

    def implication(self) -> Expr:
        left = self.junction()
        if self.take("==>"):
            return self.node("==>", left, self.inside(self.implication))
        return left

    def junction(self) -> Expr:
        left = self.comparison()
        word = self.take("&&", "||")
        while word:
            left = self.node(word, left, self.comparison())
            if self.sees("&&", "||") and not self.sees(word):
                raise BadProgram(f"line {self.line}: && and || side by side want brackets")
            word = self.take("&&", "||")
        return left

    def comparison(self) -> Expr:
        left = self.sum()
        if self.take("in"):
            return self.node("in", left, self.sum())
        found: list[Expr] = []
        while word := self.take(*_COMPARE):
            right = self.sum()
            found.append(self.node(word, left, right))
            left = right
        if not found:
            return left
        whole = found[0]
        for one in found[1:]:  # a chain such as 0 <= i < n
            whole = self.node("&&", whole, one)
        return whole

    def sum(self) -> Expr:
        left = self.product()
        while word := self.take("+", "-"):
            left = self.node(word, left, self.product())
        return left

    def product(self) -> Expr:
        left = self.unary()
        while word := self.take("*", "/", "%"):
            left = self.node(word, left, self.unary())
        return left

    def unary(self) -> Expr:
        word = self.take("-", "!")
        if word is None:
            return self.postfix()
        inner = self.inside(self.unary)
        if word == "-" and inner.op == "int":
            return self.node("int", value=-inner.value)
        return self.node(word, inner)

    def postfix(self) -> Expr:
        found = self.atom()
        while self.take("["):
            length = self.node("len", found)
            first = self.node("int", value=0) if self.sees("..") else self.expr()
            if self.take(".."):
                last = length if self.sees("]") else self.expr()
                found = self.node("slice", found, first, last)
            elif self.take(":="):
                found = self.node("put", found, first, self.expr())
            else:
                found = self.node("at", found, first)
            self.need("]")
        return found

    def atom(self) -> Expr:
        kind, text, _ = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            if len(text) > 100:
                raise BadProgram(f"line {self.line}: a number of {len(text)} digits")
            return self.node("int", value=int(text))
        if self.take("("):
            found = self.expr()
            self.need(")")
            return found
        if self.take("|"):
            found = self.inside(self.sum)
            self.need("|")
            return self.node("len", found)
        if self.take("["):
            items: tuple[Expr, ...] = () if self.sees("]") else self.many(self.expr)
            self.need("]")
            return self.node("seq", *items)
        if word := self.take("true", "false"):
            return self.node("bool", value=word == "true")
        if self.take("if"):
            condition = self.expr()
            self.need("then")
            then = self.expr()
            self.need("else")
            return self.node("if", condition, then, self.expr())
        if word := self.take("forall", "exists"):
            names = self.many(self.bound)
            self.need("::")
            return self.node(word, self.expr(), value=names)
        name: Any = self.name()
        if self.take("("):
            given: tuple[Expr, ...] = () if self.sees(")") else self.many(self.expr)
            self.need(")")
            return self.node("call", *given, value=name)
        return self.node("name", value=name)

    def bound(self) -> str:
        name = self.name()
        if self.take(":"):
            self.need("int")
        return name
