"""Cutting an answer in its plain spelling into tokens, in one pass."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from assay.verify.math.expressions.nodes import Unreadable
from assay.verify.math.read.latex import FUNCTIONS

MAX_TOKENS = 1500
_FUNCTION_WORDS = frozenset(FUNCTIONS)
_CONSTANTS = {"pi": "π", "inf": "∞", "infinity": "∞", "oo": "∞", "Infinity": "∞", "infty": "∞"}


class Token(NamedTuple):
    """``kind`` is ``num``, ``id`` (a variable or constant), ``func``, ``cmd``, ``word`` or ``op``.

    ``spaced`` tells whether white space comes before; ``value`` and ``decimals`` (digits after the point, ``None`` for
    an integer) belong to numbers, and ``inexact`` to those that end in an ellipsis.
    """

    kind: str
    text: str
    spaced: bool = False
    value: Fraction | None = None
    decimals: int | None = None
    inexact: bool = False
    grouped: bool = False


_TOKEN = re.compile(
    r"""(?P<ws>[ \t]+)
    |(?P<rep>[0-9]*\.[0-9]*(?:⟦[0-9]+⟧|\([0-9]+\)(?![0-9(])))
    |(?P<dots>[0-9]*\.[0-9]+(?=\.\.\.)|[0-9]+(?=\.\.\.))
    |(?P<grp>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4}(?![0-9]))?
        |[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?![0-9])(?:\.[0-9]+)?)
    |(?P<num>(?:[0-9]+(?:\.[0-9]*(?!\.\.))?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4}(?![0-9]))?)
    |(?P<cmd>\\[A-Za-z]+)
    |(?P<vec>î|ĵ|k̂)
    |(?P<word>[^\W\d_]+(?:'(?:s|t)\b)?)
    |(?P<op>\*\*|<=|>=|!=|==|=<|=>|->|:=|\.\.\.|[^\s])
    |(?P<nl>\s)
    """,
    re.VERBOSE,
)
_OPEN, _CLOSE = "([{⦃⟨⌊⌈⟪", ")]}⦄⟩⌋⌉⟫"
_DEEPER = dict.fromkeys(_OPEN, 1) | dict.fromkeys(_CLOSE, -1)
_SIGNS = {c: (Token("op", c), Token("op", c, True)) for c in "()[]{}⦃⦄,+/^;|%_°-=*"}
"""Half of all tokens, without and with white space before."""
_LONGER = {"-": frozenset(">"), "=": frozenset("=<>"), "*": frozenset("*")}
"""What behind them makes a longer token."""


def tokenize(text: str, grouping: bool = True) -> list[Token]:
    """Return the tokens of ``text``; a comma groups digits only if ``grouping``, and never inside brackets.

    Raises:
        Unreadable: too many tokens, or a number too long.
    """
    tokens: list[Token] = []
    spaced, depth, start = False, 0, 0
    end = len(text)
    while start < end:
        c = text[start]
        if (sign := _SIGNS.get(c)) is not None and text[start + 1 : start + 2] not in _LONGER.get(c, ()):
            tokens.append(sign[spaced])
            if (depth := depth + _DEEPER.get(c, 0)) < 0:
                depth = 0
            start, spaced = start + 1, False
            continue
        if c == " ":
            start, spaced = start + 1, True
            continue
        if (alone := _ALONE.get(c)) is not None and text[start + 1 : start + 2] in _APART:
            tokens.append(alone[spaced])
            start, spaced = start + 1, False
            continue
        match = _TOKEN.match(text, start)
        assert match is not None
        kind, piece = match.lastgroup or "", match.group()
        if kind == "grp" and (not grouping or depth):
            match = _PLAIN_NUMBER.match(text, start)
            assert match is not None
            kind, piece = "num", match.group()
        start = match.end()
        if kind == "ws":
            spaced = True
            continue
        if kind == "word":
            _words(piece, spaced, tokens)
        elif kind == "num":
            tokens.append(_number(piece, spaced))
        elif kind == "grp":
            tokens.append(_number(piece.replace(",", ""), spaced)._replace(grouped=True))
        elif kind == "rep":
            tokens.append(Token("num", piece, spaced, _repeating(piece), None))
        elif kind == "dots":
            tokens.append(_ellipsis(piece, spaced))
            start += 3
        elif kind == "vec":
            tokens.append(Token("id", piece, spaced))
        elif kind == "nl":
            tokens.append(Token("op", "\n", spaced))
        else:
            if kind == "op":
                depth = max(depth + _DEEPER.get(piece, 0), 0)
                piece = _OPERATORS.get(piece, piece)
            tokens.append(Token(kind, piece, spaced))
        spaced = False
    if len(tokens) > MAX_TOKENS:
        raise Unreadable("too many symbols")
    return tokens


_PLAIN_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SMALL = tuple(map(Fraction, range(100)))
_ALONE = {c: (Token("id", c), Token("id", c, True)) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_ALONE |= {str(n): (Token("num", str(n), False, _SMALL[n]), Token("num", str(n), True, _SMALL[n])) for n in range(10)}
_APART = frozenset(("", *"()[]{}⦃⦄+-*/^;|%_° =<>"))
"""What behind a letter or a digit says that it is a token of its own; a comma may group digits."""
_OPERATORS = {"**": "^", "==": "=", "=<": "<=", "=>": ">=", "->": "⇒", ":=": "="}


def _number(piece: str, spaced: bool) -> Token:
    if len(piece) > 4200:
        raise Unreadable("a number too long")
    if piece.isdecimal():
        return Token("num", piece, spaced, Fraction(int(piece)) if len(piece) > 2 else _SMALL[int(piece)])
    mantissa, _, exponent = piece.replace("E", "e").partition("e")
    whole, _, digits = mantissa.partition(".")
    value = Fraction(int(whole + digits or "0"), 10 ** len(digits))
    decimals = len(digits) if digits else None
    if exponent:
        power = int(exponent)
        value *= Fraction(10) ** power
        if decimals is not None:
            decimals = max(decimals - power, 0) or None
    return Token("num", piece, spaced, value, decimals)


def _repeating(piece: str) -> Fraction:
    """The value of ``0.1⟦6⟧`` or ``0.1(6)``."""
    head, cycle = re.split(r"[⟦(]", piece[:-1])
    whole, _, fixed = head.partition(".")
    if len(piece) > 400:
        raise Unreadable("a number too long")
    scale = 10 ** len(fixed)
    start = Fraction(int(whole + fixed or "0"), scale)
    return start + Fraction(int(cycle), scale * (10 ** len(cycle) - 1))


def _ellipsis(piece: str, spaced: bool) -> Token:
    """``0.1666...``: the shortest block of digits written at least twice at the end repeats, else it is inexact."""
    whole, _, digits = piece[:400].partition(".")
    for length in range(1, len(digits) // 2 + 1):
        times = 3 if length == 1 else 2
        block = digits[-length:]
        if len(digits) >= times * length and digits.endswith(block * times):
            head = digits
            while head.endswith(block):
                head = head[:-length]
            return Token("num", piece, spaced, _repeating(f"{whole}.{head}({block})"))
    if not digits:
        raise Unreadable("an ellipsis")
    return _number(piece, spaced)._replace(inexact=True)


def _words(piece: str, spaced: bool, tokens: list[Token]) -> None:
    """A run of letters: a variable, a function, a word; or, if short and touching mathematics, a product."""
    if piece in _CONSTANTS:
        tokens.append(Token("id", _CONSTANTS[piece], spaced))
    elif len(piece) == 1:
        tokens.append(Token("id", piece, spaced))
    elif piece in ("min", "sec") and tokens and tokens[-1].kind == "num":
        tokens.append(Token("word", piece, spaced))
    elif piece in _FUNCTION_WORDS:
        tokens.append(Token("func", piece, spaced))
    elif not piece.isascii() and all(c in "πθαβγδεζηικλμνξρστυφχψωΔΓΛΩΣΦΨΘ∞abcdefghijklmnopqrstuvwxyz" for c in piece):
        for place, letter in enumerate(piece):
            tokens.append(Token("id", letter, spaced and place == 0))
    else:
        tokens.append(Token("word", piece, spaced))
