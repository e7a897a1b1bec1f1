"""Arithmetic expressions over integers, parsed and evaluated exactly."""

from __future__ import annotations

import re
from fractions import Fraction

MAX_LENGTH = 1000
MAX_DEPTH = 50

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([-+*/()]))")


class ExpressionError(ValueError):
    """The text is not an expression that can be evaluated; the message says why."""


def evaluate(text: str) -> tuple[Fraction, list[int]]:
    """Return the value of ``text`` and the integers in it, in order.

    Grammar: ``+ - * /``, parentheses, a leading sign, integers in digits 0-9. At most :data:`MAX_LENGTH` characters and
    :data:`MAX_DEPTH` nested parentheses and signs, so that time and memory are bounded.

    Raises:
        ExpressionError: something else than that, or a division by zero.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    parser = _Parser(text)
    value = parser.sum(0)
    if parser.token:
        raise ExpressionError(f"unexpected {parser.token!r}")
    return value, parser.integers


class _Parser:
    """Recursive descent with one token of lookahead; the empty token is the end."""

    def __init__(self, text: str):
        self.text = text.rstrip()
        self.position = 0
        self.integers: list[int] = []
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        if match is None and self.position < len(self.text):
            raise ExpressionError(f"unexpected {self.text[self.position :].lstrip()[:10]!r}")
        self.token = "" if match is None else match[1] or match[2]
        self.position = len(self.text) if match is None else match.end()

    def sum(self, depth: int) -> Fraction:
        value = self.product(depth)
        while self.token in ("+", "-"):
            operator = self.token
            self.advance()
            term = self.product(depth)
            value = value + term if operator == "+" else value - term
        return value

    def product(self, depth: int) -> Fraction:
        value = self.atom(depth)
        while self.token in ("*", "/"):
            operator = self.token
            self.advance()
            factor = self.atom(depth)
            if operator == "/" and factor == 0:
                raise ExpressionError("division by zero")
            value = value * factor if operator == "*" else value / factor
        return value

    def atom(self, depth: int) -> Fraction:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH}")
        token = self.token
        if token.isdigit():
            self.advance()
            self.integers.append(int(token))
            return Fraction(self.integers[-1])
        if token in ("-", "+"):
            self.advance()
            value = self.atom(depth + 1)
            return -value if token == "-" else value
        if token == "(":
            self.advance()
            value = self.sum(depth + 1)
            if self.token != ")":
                raise ExpressionError("a parenthesis is not closed")
            self.advance()
            return value
        raise ExpressionError(f"unexpected {token!r}" if token else "it ends too early")
