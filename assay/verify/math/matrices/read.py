r"""A formula in LaTeX as a tree, in which bold letters are matrices and vectors.

``\mathbf{H}``, a bold capital, is a matrix, ``\mathbf{h}`` a vector (a column), everything else a number;
``\mathbf{I}`` is the identity and ``\mathbf{0}`` nothing but zeros. Indices belong to a name.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

Node = tuple[Any, ...]
MAX_LENGTH, MAX_DEPTH = 2000, 40
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\S", re.DOTALL)
_SKIPPED = frozenset(
    r"\left \right \big \Big \bigg \Bigg \bigl \bigr \Bigl \Bigr \displaystyle \, \; \: \! \quad \qquad $ ~ &".split()  # noqa: SIM905
) | {"\\ "}
BOLD = frozenset(r"\mathbf \boldsymbol \bm \pmb \mathbfit".split())  # noqa: SIM905
_DECORATED = frozenset(r"\hat \widehat \bar \overline \tilde \widetilde \dot \check \breve".split())  # noqa: SIM905
_FONTS = frozenset(r"\mathrm \mathit \mathcal \mathsf \mathtt \text \textrm \operatorname".split())  # noqa: SIM905
_SMALL = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho varrho sigma "
    "tau upsilon phi varphi chi psi omega ell"
)
_LARGE = "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
_GREEK = frozenset(f"\\{name}" for name in f"{_SMALL} {_LARGE}".split())
_CALLED = {
    f"\\{n}": n for n in ["log", "ln", "lg", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "det", "Re", "Im"]
}
_CALLED |= {n: n for n in ("log", "ln", "exp", "det", "tr", "Re", "Im")} | {
    "Tr": "tr",
    "trace": "tr",
    "\\tr": "tr",
    "\\Tr": "tr",
}
_TIMES = frozenset([r"\cdot", r"\times", r"*"])
_CLOSES = {"(": ")", "[": "]", "\\{": "\\}", "\\lvert": "\\rvert", "\\lVert": "\\rVert", "|": "|", "\\|": "\\|"}
_BARS = frozenset({"|", "\\|"})
_SIZES = _BARS | {"\\lvert", "\\lVert"}
_TURNED = {"H": "H", "\\dagger": "H", "\\dag": "H", "T": "T", "\\top": "T", "\\intercal": "T", "*": "*", "\\ast": "*"}
_COUNT = itertools.count()
_ZEROS: tuple[Node, ...] = (("zero",), ("num", 0.0))


class Unreadable(Exception):
    """The text is no formula of this kind."""


@dataclass(slots=True)
class Reader:
    """Reads tokens from left to right; see :func:`formula`."""

    tokens: list[str]
    at: int = 0
    depth: int = 0
    bars: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise Unreadable(f"{wanted or 'more'} is missing")
        self.at += 1
        return token

    def sum(self) -> Node:
        """Terms with signs between them."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("too deep")
        terms = [self._signed()]
        while self.peek() in ("+", "-"):
            terms.append(self._signed())
        self.depth -= 1
        return ("add", *terms) if len(terms) > 1 else terms[0]

    def _signed(self) -> Node:
        negative = False
        while self.peek() in ("+", "-"):
            negative ^= self.take() == "-"
        term = self.product()
        return ("neg", term) if negative else term

    def product(self) -> Node:
        out = self.factor()
        while True:
            token = self.peek()
            if token in _TIMES:
                self.take()
                out = ("mul", out, self.factor())
            elif token == "/":
                self.take()
                out = ("div", out, self.factor())
            elif token in ("\\odot", "\\otimes"):
                self.take()
                out = ("had" if token == "\\odot" else "kron", out, self.factor())
            elif token and self._begins(token):
                out = ("mul", out, self.factor())
            else:
                return out

    def _begins(self, token: str) -> bool:
        """Whether a token begins a factor; a bar does where none is open."""
        if token in _BARS:
            return not self.bars
        return (
            token not in ("+", "-", "=", "\\triangleq", "}", ",", ";", ":", "^", "_", "<", ">", "&")
            and token not in _CLOSES.values()
        )

    def factor(self) -> Node:
        """One thing and its exponents."""
        if self.peek() == "-":
            self.take()
            return ("neg", self.factor())
        base = self.atom()
        raised: list[Node | str] = []
        while self.peek() in ("_", "^", "'") or (_is_bold(base) and self._argument()):
            if self.peek() not in ("_", "^", "'"):
                start = self.at
                self.at += len(self._argument())
                base = ("sym", base[1], base[2] + "".join(self.tokens[start : self.at]))
                continue
            token = self.take()
            if token == "_":
                if base[0] == "sym":
                    base = ("sym", base[1], f"{base[2]}_{plain(self.raw())}")
                elif base[0] == "norm" and base[2] == "":
                    base = ("norm", base[1], plain(self.raw()))
                elif base[0] in ("eye", "zero"):
                    self.raw()
                else:
                    raise Unreadable("an index of what has no name")
            elif token == "'":
                if base[0] != "sym":
                    raise Unreadable("a prime of what has no name")
                base = ("sym", base[1], f"{base[2]}'")
            else:
                raised.append(self.exponent())
        for power in raised:
            base = self._raise(base, power)
        return base

    def _argument(self) -> list[str]:
        """What a bold name is a function of, in brackets: names and numbers, nothing bold and no sum."""
        if self.peek() != "(" or ")" not in self.tokens[self.at :]:
            return []
        found = self.tokens[self.at : self.tokens.index(")", self.at) + 1]
        plain = all(t[0].isalnum() or t in _GREEK or t in ("_", ",", "{", "}", "(", ")") for t in found)
        return found if plain and len(found) > 2 and found.count("(") == 1 else []

    def exponent(self) -> Node | str:
        """``H``, ``T`` or ``*``, such a letter with a minus before it, or an expression."""
        inner = self.raw()
        text = "".join(inner)
        if text in _TURNED or (text[:1] == "-" and text[1:] in _TURNED and text[1:] != "*"):
            return text
        if len(inner) == 2 and inner[0] in ("\\mathrm", "\\mathsf", "\\text"):
            raise Unreadable("an exponent")
        stripped = [t for t in inner if t not in ("{", "}") and t not in _FONTS]
        if "".join(stripped) in _TURNED:
            return "".join(stripped)
        reader = Reader(inner, depth=self.depth)
        found = reader.sum()
        if reader.peek():
            raise Unreadable("an exponent")
        return found

    def _raise(self, base: Node, power: Node | str) -> Node:
        if not isinstance(power, str):
            return ("call", "exp", power, None) if base == ("sym", "scalar", "e") else ("pow", base, power)
        turned = ("sup", base, _TURNED[power.lstrip("-")])
        return ("pow", turned, ("num", -1.0)) if power[0] == "-" else turned

    def raw(self) -> list[str]:
        """The tokens of the group in braces that comes next, or the token that does."""
        if self.peek() != "{":
            token = self.take()
            return [token, *self.raw_group()] if token in BOLD | _FONTS | _DECORATED and self.peek() == "{" else [token]
        return self.raw_group()[1:-1]

    def raw_group(self) -> list[str]:
        start, open_ = self.at, 0
        while True:
            token = self.take()
            open_ += (token == "{") - (token == "}")
            if not open_:
                return self.tokens[start : self.at]

    def atom(self) -> Node:
        token = self.take()
        if token[0] in "0123456789":
            return ("num", float(token))
        if token in BOLD:
            return bold(self.raw())
        if token in _DECORATED:
            inner = Reader(self.raw(), depth=self.depth + 1)
            base = inner.factor()
            if base[0] != "sym" or inner.peek():
                raise Unreadable("a mark over more than a name")
            return ("sym", base[1], f"{token}{base[2]}")
        if token in _FONTS:
            name = plain(self.raw())
            if name in _CALLED:
                return self._called(_CALLED[name])
            if len(name) > 1 and self.peek() in _CLOSES:
                raise Unreadable(f"a function {name}")
            return ("sym", "scalar", name)
        if token in _CALLED:
            return self._called(_CALLED[token])
        if token in ("\\frac", "\\dfrac", "\\tfrac"):
            return ("div", self._braced(), self._braced())
        if token == "\\sqrt":
            if self.peek() == "[":
                raise Unreadable("a root of another order")
            return ("pow", self._braced(), ("num", 0.5))
        if token in ("\\sum", "\\prod"):
            return self._over(token[1:])
        if token == "{":
            self.at -= 1
            return self._braced()
        if token in _CLOSES:
            return self._enclosed(token)
        if token in _GREEK or (len(token) == 1 and token.isalpha()):
            return ("sym", "scalar", token)
        raise Unreadable(token)

    def _braced(self) -> Node:
        inner = Reader(self.raw(), depth=self.depth + 1)
        found = inner.sum()
        if inner.peek():
            raise Unreadable(inner.peek())
        return found

    def _enclosed(self, token: str) -> Node:
        bars, self.bars = self.bars, int(token in _BARS)
        inner = self.sum()
        self.take(_CLOSES[token])
        self.bars = bars
        if token in ("|", "\\lvert"):
            return ("abs", inner)
        return ("norm", inner, "") if token in ("\\|", "\\lVert") else inner

    def _called(self, name: str) -> Node:
        base: Node | None = None
        power: Node | str | None = None
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                inner = Reader(self.raw(), depth=self.depth + 1)
                base = inner.factor()
            else:
                power = self.exponent()
        enclosed = self.peek() == "{" or (self.peek() in _CLOSES and self.peek() not in _SIZES)
        argument = self.atom() if enclosed else self.factor()
        made: Node = ("call", name, argument, base)
        return made if power is None else self._raise(made, power)

    def _over(self, kind: str) -> Node:
        """A sum or product over an index: its limits, and the product behind it."""
        limits = {"_": "", "^": ""}
        while self.peek() in limits:
            sign = self.take()
            limits[sign] = plain(self.raw())
        found = re.match(r"([A-Za-z])(?=$|=|\\in|\\ne|\\neq|<|\\le)", limits["_"])
        if found is None:
            raise Unreadable(f"{kind} over no index")
        index = found[1]
        named = re.sub(r"(?<![A-Za-z\\])" + index + r"(?![A-Za-z])", "#", limits["_"])
        bounds = f"{named}^{limits['^']}"
        return ("over", kind, index, bounds, self.product())


def _is_bold(node: Node) -> bool:
    return node[0] == "sym" and node[1] != "scalar"


def bold(inner: list[str]) -> Node:
    """What a bold text is: a matrix, a vector, an identity (each another one, of its own size), zeros, or ones."""
    text = "".join(t for t in inner if t not in ("{", "}"))
    if text == "I":
        return ("eye", next(_COUNT))
    if text == "0":
        return ("zero",)
    if text == "1":
        return ("sym", "vector", "ones")
    letter = text[1:2] if text.startswith("\\") else text
    if not (len(text) == 1 and text.isalpha()) and text not in _GREEK:
        raise Unreadable("a bold text")
    return ("sym", "matrix" if letter.isupper() else "vector", f"bold {text}")


def plain(tokens: list[str]) -> str:
    """Return tokens as one text, without braces and fonts."""
    return "".join(t for t in tokens if t not in ("{", "}") and t not in _FONTS)


def tokens(text: str) -> list[str]:
    """Return the tokens of a formula, without spaces and the sizes of brackets."""
    return [token for token in _TOKEN.findall(text) if token not in _SKIPPED]


def formula(text: str) -> tuple[Node, ...]:
    """Return the two sides of an equation, or an expression alone; a side that is 0 is so many zeros as it has to be.

    Raises:
        Unreadable: it is neither; it is longer than :data:`MAX_LENGTH`.
    """
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    reader = Reader(tokens(text))
    sides = [reader.sum()]
    if reader.peek() in ("=", "\\triangleq"):
        reader.take()
        sides.append(reader.sum())
    if reader.peek():
        raise Unreadable(reader.peek())
    if len(sides) > 1:
        sides = [("mul", ("num", 0.0), sides[1 - i]) if side in _ZEROS else side for i, side in enumerate(sides)]
    return tuple(sides)
