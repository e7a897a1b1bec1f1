# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Reading an expression: tokens to a :data:`~assay.verify.math.nodes.Node`, by precedence climbing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from assay.verify.math.nodes import (
    MINUS_ONE,
    ONE,
    PI,
    E,
    I,
    Node,
    Unreadable,
    add,
    call,
    div,
    inverse,
    mul,
    neg,
    power,
)
from assay.verify.math.tokens import Token
from assay.verify.math.units import lookup

MAX_DEPTH = 60
_ENDS = {"(": ")", "[": "]", "{": "}", "⌊": "⌋", "⌈": "⌉"}
_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsec": "asec", "arccsc": "acsc",
    "sign": "sgn", "Re": "re", "Im": "im",
}  # fmt: skip
_INVERSES = frozenset(["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"])
_SPLIT_WORDS = frozenset("abc xyz ab xy yz xz bc ac abcd mn pq rs uv cd ax bx cx ay by cy dx dy dt ij jk".split())
_NONWORD = frozenset("or and to of by in is it at an as if no so we he up on be do go my us".split())


def splits(word: str) -> bool:
    """Say whether a run of letters stands for a product of variables (``xy``) rather than for a word."""
    if word in _SPLIT_WORDS or (word.isupper() and 2 <= len(word) <= 3):
        return True
    return len(word) == 2 and word.isalpha() and word.isascii() and word.islower() and word not in _NONWORD


class Parser:
    """Reads one expression from ``tokens`` at ``place``; stops at what cannot continue it.

    ``place`` is then where it stopped. Percent signs divide by 100; a degree sign counts in the argument of a function,
    and is left to the units elsewhere.
    """

    def __init__(self, tokens: list[Token], place: int = 0):
        self.tokens, self.place, self.depth = tokens, place, 0
        self.bars = self.angles = 0

    def peek(self) -> str:
        """The text of the next operator, function, command or word; of nothing else."""
        return self.tokens[self.place].text if self.place < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.place].kind if self.place < len(self.tokens) else ""

    def take(self, text: str) -> None:
        if self.peek() != text:
            raise Unreadable(f"{text} expected")
        self.place += 1

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deep")
        items = [self.term()]
        while self.kind() == "op" and self.peek() in ("+", "-"):
            minus = self.peek() == "-"
            self.place += 1
            term = self.term()
            items.append(neg(term) if minus else term)
        self.depth -= 1
        return add(items)

    def term(self) -> Node:
        minus = False
        while self.kind() == "op" and self.peek() in ("+", "-"):
            minus ^= self.peek() == "-"
            self.place += 1
        items = [self.mixed()]
        while True:
            symbol = self.peek() if self.kind() == "op" else ""
            if symbol == "*":
                self.place += 1
                items.append(self.signed_power())
            elif symbol == "/":
                self.place += 1
                items.append(inverse(self.signed_power()))
            elif self.juxtaposed():
                items.append(self.power())
            else:
                break
        product = mul(items)
        return neg(product) if minus else product

    def juxtaposed(self) -> bool:
        """Say whether a factor without a sign comes next."""
        kind = self.kind()
        if kind in ("func", "id"):
            return self.peek() != "∞"
        if kind == "num":
            # "2 3" is not a product, and neither is "x 3"; "(2)3" and "\sqrt{2}3" are.
            previous = self.tokens[self.place - 1]
            if previous.text == "!":
                return self.place + 1 < len(self.tokens) and self.tokens[self.place + 1].text == "!"  # "4! 2!"
            return previous.text in (")", "}", "]") and not self.tokens[self.place].spaced
        if kind == "cmd":
            return self.peek() in ("\\frac", "\\sqrt", "\\binom")
        if kind == "word":
            return splits(self.peek()) and not self.is_unit_place()
        if self.peek() == "|":
            return self.bars == 0 and self.closing_bar()
        return kind == "op" and self.peek() in "([{√∛⌊⌈"

    def closing_bar(self) -> bool:
        return any(t.text == "|" for t in self.tokens[self.place + 1 :])

    def is_unit_place(self) -> bool:
        """A word after a number is a unit ("5 cm"), unless it touches it ("5xy")."""
        previous = self.tokens[self.place - 1]
        return (self.tokens[self.place].spaced and previous.kind == "num") or lookup(self.peek()) is not None

    def mixed(self) -> Node:
        """A factor, where ``3 1/2`` and ``3\\frac{1}{2}`` are mixed numbers."""
        first = self.tokens[self.place] if self.place < len(self.tokens) else None
        if first is None or first.kind != "num" or first.value is None or first.value.denominator != 1:
            return self.signed_power()
        ahead = self.tokens[self.place + 1 : self.place + 8]
        part: Fraction | None = None
        length = 0
        if ahead and ahead[0].text == "\\frac":
            texts = [t.text for t in ahead]
            if len(ahead) >= 7 and texts[1] == texts[4] == "{" and texts[3] == texts[6] == "}":
                part, length = _part(ahead[2], ahead[5]), 7
        elif len(ahead) >= 3 and ahead[0].kind == "num" and ahead[0].spaced and ahead[1].text == "/":
            part, length = _part(ahead[0], ahead[2]), 3
        if part is None:
            return self.signed_power()
        following = self.tokens[self.place + 1 + length : self.place + 2 + length]
        if following and following[0].text in ("^", "!"):
            return self.signed_power()
        self.place += 1 + length
        return self.postfix(first.value + part)

    def signed_power(self) -> Node:
        minus = False
        while self.kind() == "op" and self.peek() in ("+", "-"):
            minus ^= self.peek() == "-"
            self.place += 1
        factor = self.power()
        return neg(factor) if minus else factor

    def power(self) -> Node:
        base = self.postfix(self.primary())
        if self.peek() == "^" and self.kind() == "op":
            self.place += 1
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise Unreadable("nested too deep")
            exponent = self.exponent()
            self.depth -= 1
            return self.postfix(power(base, exponent))
        return base

    def exponent(self) -> Node:
        if self.kind() == "op" and self.peek() in ("+", "-"):
            minus = self.peek() == "-"
            self.place += 1
            exponent = self.exponent()
            return neg(exponent) if minus else exponent
        return self.power()

    def postfix(self, node: Node) -> Node:
        while self.kind() == "op" and self.peek() in ("!", "%", "°"):
            if self.peek() == "!":
                node = call("factorial", node)
            elif self.peek() == "%":
                node = div(node, Fraction(100))
            elif self.angles:
                node = mul([node, PI, Fraction(1, 180)])
            else:
                break
            self.place += 1
        return node

    def primary(self) -> Node:
        if self.place >= len(self.tokens):
            raise Unreadable("it ends too early")
        token = self.tokens[self.place]
        kind, text = token.kind, token.text
        self.place += 1
        if kind == "num":
            assert token.value is not None
            return token.value
        if kind == "id":
            return self.name(text)
        if kind == "func":
            return self.function(text)
        if kind == "cmd":
            if text == "\\frac":
                return div(self.argument(), self.argument())
            if text == "\\sqrt":
                return self.root()
            if text == "\\binom":
                return call("binom", self.argument(), self.argument())
        if kind == "word" and splits(text):
            # Letters of their own, so that in "xy^2" only y is squared.
            self.tokens[self.place - 1 : self.place] = [
                Token("id", c, token.spaced and not k) for k, c in enumerate(text)
            ]
            return self.name(text[0])
        if kind == "op":
            if text in _ENDS:
                return self.bracket(text)
            if text == "|":
                self.bars += 1
                inner = self.expression()
                self.take("|")
                self.bars -= 1
                return call("abs", inner)
            if text in "√∛":
                return power(self.power(), Fraction(1, 2 if text == "√" else 3))
        raise Unreadable(f"unexpected {text[:20]!r}")

    def bracket(self, text: str) -> Node:
        bars, self.bars = self.bars, 0
        inner = self.expression()
        self.take(_ENDS[text])
        self.bars = bars
        if text in "⌊⌈":
            return call("floor" if text == "⌊" else "ceil", inner)
        return inner

    def letter(self, name: str) -> Node:
        return {"π": PI, "e": E, "i": I}.get(name) or ("v", name)

    def name(self, name: str) -> Node:
        """A constant or a variable with its subscript and primes."""
        if name == "∞":
            raise Unreadable("infinity")
        node = self.letter(name)
        if self.kind() == "op" and self.peek() == "_":
            self.place += 1
            subscript = self.raw_argument()
            return ("v", f"{name}_{subscript}")
        primes = 0
        while self.kind() == "op" and self.peek() == "'":
            self.place, primes = self.place + 1, primes + 1
        return ("v", name + "'" * primes) if primes else node

    def raw_argument(self) -> str:
        """The text of one token or of one group in braces."""
        if self.peek() != "{":
            if self.place >= len(self.tokens):
                raise Unreadable("a subscript expected")
            self.place += 1
            return self.tokens[self.place - 1].text
        pieces: list[str] = []
        depth = 0
        while self.place < len(self.tokens):
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
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        if token is not None and token.kind == "num" and len(token.text) > 1 and token.text.isdecimal():
            rest = token.text[1:]
            self.tokens[self.place] = replace(token, text=rest, value=Fraction(int(rest)), spaced=False)
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
            if self.peek() == "^" and self.kind() == "op":
                self.place += 1
                exponent = self.exponent()
            elif self.peek() == "_" and self.kind() == "op":
                self.place += 1
                base = self.bracket_or_primary()
        name = _NAMES.get(name, name)
        if exponent == MINUS_ONE and name in _INVERSES:
            name, exponent = f"a{name}", ONE
        self.angles += 1
        arguments = self.arguments()
        self.angles -= 1
        if name == "lg":
            name, base = "log", Fraction(10)
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

    def arguments(self) -> list[Node]:
        """``(a, b)``, ``{a}``, or the product that follows without a sign: ``sin 2x``."""
        opening = self.peek()
        if self.kind() == "op" and opening in ("(", "{", "["):
            self.place += 1
            bars, self.bars = self.bars, 0
            found = [self.expression()]
            while self.peek() == ",":
                self.place += 1
                found.append(self.expression())
            self.take(_ENDS[opening])
            self.bars = bars
            return found
        items = [self.power()]
        while self.kind() in ("id", "num", "cmd") and self.juxtaposed():
            items.append(self.power())
        if self.kind() == "op" and self.peek() == "/" and all(isinstance(a, Fraction) or a == PI for a in items):
            self.place += 1
            items.append(inverse(self.power()))
        return [mul(items)]


def _part(top: Token, bottom: Token) -> Fraction | None:
    """The proper fraction of a mixed number."""
    if top.value is None or bottom.value is None or top.value.denominator != 1 or bottom.value.denominator != 1:
        return None
    if not 0 < top.value < bottom.value:
        return None
    return top.value / bottom.value
