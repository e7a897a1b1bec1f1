# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Reading an expression: tokens to a :data:`~assay.verify.math.expressions.nodes.Node`, by precedence climbing."""

from __future__ import annotations

from fractions import Fraction

from assay.verify.math.expressions.nodes import (
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
from assay.verify.math.expressions.units import lookup
from assay.verify.math.read.atoms import ENDS, Atoms
from assay.verify.math.read.tokens import Token

MAX_DEPTH = 60
_SPLIT_WORDS = frozenset("abc xyz ab xy yz xz bc ac abcd mn pq rs uv cd ax bx cx ay by cy dx dy dt ij jk".split())
_NONWORD = frozenset("or and to of by in is it at an as if no so we he up on be do go my us".split())


def splits(word: str) -> bool:
    """Say whether a run of letters stands for a product of variables (``xy``) rather than for a word."""
    if word in _SPLIT_WORDS or (word.isupper() and 2 <= len(word) <= 3):
        return True
    return len(word) == 2 and word.isalpha() and word.isascii() and word.islower() and word not in _NONWORD


class Parser(Atoms):
    """Reads one expression from ``tokens`` at ``place``; stops at what cannot continue it.

    ``place`` is then where it stopped. Percent signs divide by 100; a degree sign counts in the argument of a function,
    and is left to the units elsewhere.
    """

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deep")
        items = [self.term()]
        while (sign := self.peek()) in ("+", "-"):
            self.place += 1
            term = self.term()
            items.append(neg(term) if sign == "-" else term)
        self.depth -= 1
        return add(items)

    def term(self) -> Node:
        minus = self.signs()
        items = [self.mixed()]
        while (token := self.tokens[self.place]).kind:
            symbol = token.text
            if symbol == "*":
                self.place += 1
                items.append(self.signed_power())
            elif symbol == "/":
                self.place += 1
                items.append(inverse(self.signed_power()))
            elif symbol == "∠":
                self.place += 1
                items.append(power(E, mul([I, self.angle()])))
            elif self.juxtaposed():
                items.append(self.power())
            else:
                break
        product = mul(items)
        return neg(product) if minus else product

    def angle(self) -> Node:
        """The argument of a function or of ``2∠60°``, where a degree sign counts."""
        self.angles += 1
        found = self.signed_power()
        if self.peek() == "/":
            self.place += 1
            found = div(found, self.signed_power())
        self.angles -= 1
        return found

    def juxtaposed(self) -> bool:
        """Say whether a factor without a sign comes next."""
        kind = self.kind()
        if kind in ("func", "id"):
            return self.peek() != "∞"
        if kind == "num":
            # "2 3" is not a product, and neither is "x 3"; "(2)3" and "\sqrt{2}3" are.
            previous = self.tokens[self.place - 1]
            if previous.text == "!":
                return self.tokens[self.place + 1].text == "!"  # "4! 2!"
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
        if self.tokens[self.place].spaced and previous.kind == "num":
            return True
        # "56nm + 49m^2" is a product of letters, "56nm" a length.
        following = self.tokens[self.place + 1].text
        return lookup(self.peek()) is not None and following not in ("+", "-", ")", "^")

    def mixed(self) -> Node:
        """A factor, where ``3 1/2`` and ``3\\frac{1}{2}`` are mixed numbers."""
        first = self.tokens[self.place]
        if first.kind != "num" or first.value is None or first.value.denominator != 1:
            return self.signed_power()
        part: Fraction | None = None
        length = 0
        behind = self.tokens[self.place + 1]
        if behind.text == "\\frac":
            ahead = self.tokens[self.place + 1 : self.place + 8]
            texts = [t.text for t in ahead]
            if len(ahead) >= 7 and texts[1] == texts[4] == "{" and texts[3] == texts[6] == "}":
                part, length = _part(ahead[2], ahead[5]), 7
        elif behind.kind == "num" and behind.spaced and self.tokens[self.place + 2].text == "/":
            part, length = _part(behind, self.tokens[self.place + 3]), 3
        if part is None:
            return self.signed_power()
        if self.tokens[self.place + 1 + length].text in ("^", "!"):
            return self.signed_power()
        self.place += 1 + length
        return self.postfix(first.value + part)

    def signed_power(self) -> Node:
        minus = self.signs()
        factor = self.power()
        return neg(factor) if minus else factor

    def signs(self) -> bool:
        """Take the signs that come next; say whether they make a minus."""
        minus = False
        while (sign := self.peek()) in ("+", "-"):
            minus ^= sign == "-"
            self.place += 1
        return minus

    def power(self) -> Node:
        base = self.postfix(self.primary())
        if self.peek() == "^":
            self.place += 1
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise Unreadable("nested too deep")
            exponent = self.exponent()
            self.depth -= 1
            return self.postfix(power(base, exponent))
        return base

    def exponent(self) -> Node:
        if (sign := self.peek()) in ("+", "-"):
            self.place += 1
            exponent = self.exponent()
            return neg(exponent) if sign == "-" else exponent
        return self.power()

    def postfix(self, node: Node) -> Node:
        while (sign := self.peek()) in ("!", "%", "°"):
            if sign == "!":
                node = call("factorial", node)
            elif sign == "%":
                node = div(node, Fraction(100))
            elif self.angles:
                node = mul([node, PI, Fraction(1, 180)])
            else:
                break
            self.place += 1
        return node

    def primary(self) -> Node:
        token = self.tokens[self.place]
        kind, text = token.kind, token.text
        if not kind:
            raise Unreadable("it ends too early")
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
            if text in ENDS:
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
        self.take(ENDS[text])
        self.bars = bars
        if text in "⌊⌈":
            return call("floor" if text == "⌊" else "ceil", inner)
        return inner


def _part(top: Token, bottom: Token) -> Fraction | None:
    """The proper fraction of a mixed number."""
    if top.value is None or bottom.value is None or top.value.denominator != 1 or bottom.value.denominator != 1:
        return None
    if not 0 < top.value < bottom.value:
        return None
    return top.value / bottom.value
