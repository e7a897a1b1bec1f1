"""Reading the smallest parts of an expression: names with subscripts, roots, functions and their arguments."""

from __future__ import annotations

from fractions import Fraction

from assay.verify.math.expressions.nodes import (
    MINUS_ONE,
    ONE,
    PI,
    E,
    I,
    Node,
    Unreadable,
    call,
    div,
    inverse,
    mul,
    power,
)
from assay.verify.math.read.tokens import Token

ENDS = {"(": ")", "[": "]", "{": "}", "⌊": "⌋", "⌈": "⌉"}
_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsec": "asec", "arccsc": "acsc",
    "sign": "sgn", "Re": "re", "Im": "im",
}  # fmt: skip
_END = Token("", "")
_INVERSES = frozenset(["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"])


class Atoms:
    """Tokens and a place in them; :class:`~assay.verify.math.read.parse.Parser` adds sums, products and powers."""

    def __init__(self, tokens: list[Token]):
        self.tokens, self.place, self.depth = [*tokens, _END], 0, 0
        self.bars = self.angles = 0

    def peek(self) -> str:
        """The text of the next token, empty at the end."""
        return self.tokens[self.place].text

    def kind(self) -> str:
        """The kind of the next token, empty at the end."""
        return self.tokens[self.place].kind

    def take(self, text: str) -> None:
        if self.peek() != text:
            raise Unreadable(f"{text} expected")
        self.place += 1

    def expression(self) -> Node:
        raise NotImplementedError

    def power(self) -> Node:
        raise NotImplementedError

    def exponent(self) -> Node:
        raise NotImplementedError

    def primary(self) -> Node:
        raise NotImplementedError

    def bracket(self, text: str) -> Node:
        raise NotImplementedError

    def juxtaposed(self) -> bool:
        raise NotImplementedError

    def letter(self, name: str) -> Node:
        return {"π": PI, "e": E, "i": I}.get(name) or ("v", name)

    def name(self, name: str) -> Node:
        """A constant or a variable with its subscript and primes."""
        if name == "∞":
            raise Unreadable("infinity")
        node = self.letter(name)
        if self.peek() == "_":
            self.place += 1
            subscript = self.raw_argument()
            return ("v", f"{name}_{subscript}")
        primes = 0
        while self.peek() == "'":
            self.place, primes = self.place + 1, primes + 1
        return ("v", name + "'" * primes) if primes else node

    def raw_argument(self) -> str:
        """The text of one token or of one group in braces."""
        if self.peek() != "{":
            if not self.kind():
                raise Unreadable("a subscript expected")
            self.place += 1
            return self.tokens[self.place - 1].text
        pieces: list[str] = []
        depth = 0
        while self.kind():
            text = self.peek()
            self.place += 1
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return "".join(pieces[1:])
            pieces.append(text)
        raise Unreadable("} expected")

    def argument(self) -> Node:
        """A group in braces, or one digit or letter."""
        if self.peek() == "{":
            self.place += 1
            return self.bracket("{")
        token = self.tokens[self.place]
        if token.kind == "num" and len(token.text) > 1 and token.text.isdecimal():
            rest = token.text[1:]
            self.tokens[self.place] = token._replace(text=rest, value=Fraction(int(rest)), spaced=False)
            return Fraction(int(token.text[0]))
        return self.primary()

    def root(self) -> Node:
        degree: Node = Fraction(2)
        if self.peek() == "[":
            self.place += 1
            degree = self.bracket("[")
        # "\sqrt 34" and "\sqrt34" mean the root of 34.
        radicand = self.bracket_or_primary()
        return power(radicand, inverse(degree))

    def bracket_or_primary(self) -> Node:
        if self.peek() == "{":
            self.place += 1
            return self.bracket("{")
        return self.primary()

    def function(self, name: str) -> Node:
        exponent: Node = ONE
        base: Node | None = None
        for _ in range(2):
            if self.peek() == "^":
                self.place += 1
                exponent = self.exponent()
            elif self.peek() == "_":
                self.place += 1
                base = self.bracket_or_primary()
        name = _NAMES.get(name, name)
        if exponent == MINUS_ONE and name in _INVERSES:
            name, exponent = f"a{name}", ONE
        self.angles += 1
        arguments = self.arguments(name not in ("sqrt", "cbrt"))
        self.angles -= 1
        if name == "lg":
            name, base = "log", Fraction(10)
        if name == "cis":
            return power(E, mul([I, arguments[0]]))
        if name in ("sqrt", "cbrt"):
            node = power(arguments[0], Fraction(1, 2 if name == "sqrt" else 3))
        elif name == "log" and (base is not None or len(arguments) == 2):
            base = base if base is not None else arguments.pop()
            node = div(call("ln", arguments[0]), call("ln", base))
        elif name == "ln" and arguments[0] == ONE:
            node = Fraction(0)
        else:
            node = call(name, *arguments)
        return power(node, exponent)

    def arguments(self, quotient: bool) -> list[Node]:
        """``(a, b)``, ``{a}``, or the product that follows without a sign, ``sin 2x``; ``sin pi/3`` if ``quotient``."""
        opening = self.peek()
        if opening in ("(", "{", "["):
            self.place += 1
            bars, self.bars = self.bars, 0
            found = [self.expression()]
            while self.peek() == ",":
                self.place += 1
                found.append(self.expression())
            self.take(ENDS[opening])
            self.bars = bars
            return found
        items = [self.power()]
        while self.kind() in ("id", "num", "cmd") and self.juxtaposed():
            items.append(self.power())
        over = self.peek() == "/" and all(isinstance(a, Fraction) or a == PI for a in items)
        # "ln 5 / ln 2" divides logarithms, "sin pi/3" an angle.
        if quotient and over and self.tokens[self.place + 1].kind in ("num", "id"):
            self.place += 1
            items.append(inverse(self.power()))
        return [mul(items)]
