# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Numbers with units, currencies or nouns: ``5 km/h``, ``$5.00``, ``2 hours 30 minutes``, ``5 apples``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from assay.verify.math.expressions.nodes import PI, Node, Unreadable, add, mentions, mul, variables
from assay.verify.math.expressions.units import CURRENCY, Unit, lookup, read_unit
from assay.verify.math.expressions.values import Scalar
from assay.verify.math.read.parse import Parser
from assay.verify.math.read.tokens import Token
from assay.verify.math.read.written import literal
from assay.verify.math.words.number_words import NUMBER_WORDS

HEDGES = frozenset(
    (
        "or not maybe perhaps possibly either but otherwise unless nor neither never no isn't aren't wasn't "
        "except excluding besides apart without wrong incorrect than least most if though although however "
        "instead actually and verdict equivalent "
        "reference correct to minus plus times divided by less fewer more squared ou oder o o或 不 非"
    ).split()
)
_NUMBERS = NUMBER_WORDS - {"second", "seconds"}
_STOP = frozenset(
    (
        "in for on at is are was were the a an so because since each every per as that this with from left "
        "total altogether all of out which who when there here he she they it his her their its we you i "
        "will would remaining overall"
    ).split()
)
_SYMBOLS = frozenset("°%'\"€£¥₹₽₩$¢")
MAX_WORDS = 24
UNIT_TOKENS = 9


def quantity(tokens: list[Token]) -> list[Scalar]:
    """Return the readings of ``tokens`` as a number with a unit, none if there is none."""
    prefix = _currency(tokens)
    if prefix is not None:
        return prefix
    found: list[Scalar] = []
    for place in range(1, len(tokens)):
        token = tokens[place]
        if token.kind not in ("id", "word") and token.text not in _SYMBOLS:
            continue
        previous = tokens[place - 1]
        if previous.kind not in ("num", "id") and previous.text not in (")", "}", "%"):
            continue
        if token.kind == "id" and (
            token.text in ("π", "e", "i", "x", "y", "z", "n") or (previous.kind == "id" and not token.spaced)
        ):
            continue
        head, tail = tokens[:place], tokens[place:]
        value = _expression(head)
        if value is None:
            continue
        unit = _unit_of(tail)
        if unit is not None and unit.known:
            tight = token.kind == "id" and not token.spaced and token.text not in "원円元"
            found.append(_with_unit(value, unit, tight))
            break
        if token.text == "%":
            continue
        together = _compound(value, tail)
        if together is not None:
            found.append(together)
            break
        if previous.kind != "id" or previous.text == "π":
            loose = _prose(value, tail, unit)
            if loose is not None:
                found.append(loose)
            break
    return found


def _text(tokens: list[Token]) -> str:
    return "".join((" " if t.spaced else "") + t.text for t in tokens).strip()


def _unit_of(tokens: list[Token]) -> Unit | None:
    return None if len(tokens) > UNIT_TOKENS else read_unit(_text(tokens))


def _with_unit(value: Scalar, unit: Unit, tight: bool = False) -> Scalar:
    return replace(value, unit=unit, tight=tight)


def _expression(tokens: list[Token]) -> Scalar | None:
    try:
        parser = Parser(tokens)
        node = parser.expression()
    except Unreadable:
        return None
    return None if parser.kind() else literal(node, tokens)


def _currency(tokens: list[Token]) -> list[Scalar] | None:
    """``$5``, ``-$5``, ``$-5``, ``USD 5``, ``US$5``, ``$5 million``, ``$5 per hour``."""
    start = 1 if tokens[0].text == "-" else 0
    if start >= len(tokens) - 1:
        return None
    first = tokens[start]
    if first.kind == "word" and first.text in (
        "US",
        "USD",
        "EUR",
        "GBP",
        "JPY",
        "INR",
        "CNY",
        "RMB",
        "Rs",
        "CAD",
        "AUD",
    ):
        unit = lookup(first.text) if first.text not in ("US", "CAD", "AUD") else lookup("dollar")
        start += 1
        if tokens[start].text == "$":
            start += 1
    elif first.text in CURRENCY and first.kind in ("op", "id", "word"):
        unit = lookup(CURRENCY[first.text])
        start += 1
        # "$5 dollars" says it twice.
    else:
        return None
    if unit is None or start >= len(tokens):
        return None
    sign = [tokens[0]] if tokens[0].text == "-" else []
    body = sign + tokens[start:]
    value = _expression(body)
    if value is not None:
        return [replace(value, unit=unit)]
    for place in range(len(sign) + 1, len(body)):
        if body[place].kind not in ("word", "id") and body[place].text not in ("/", "¢"):
            continue
        value = _expression(body[:place])
        if value is None:
            continue
        tail = body[place:]
        scale = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}.get(tail[0].text)
        if scale is not None:
            return [Scalar(mul([value.node, Fraction(scale)]), unit)]
        other = _unit_of(tail)
        if other is not None and (other.dimension == unit.dimension):
            return [replace(value, unit=unit)]
        whole = (
            read_unit("dollar " + _text(tail))
            if other is None or not other.known or tail[0].text in ("/", "per")
            else None
        )
        if whole is not None and tail[0].text in ("/", "per", "a", "an", "each"):
            return [replace(value, unit=whole if unit == lookup("dollar") else unit)]
        loose = _prose(replace(value, unit=unit), tail, None)
        return [replace(loose, unit=unit, loose=False)] if loose is not None else []
    return []


def _compound(value: Scalar, tail: list[Token]) -> Scalar | None:
    """``2 hours 30 minutes``: the sum of quantities in ever smaller units of one dimension."""
    total: list[Node] = []
    current: Node = value.node
    unit: Unit | None = None
    last = Fraction(0)
    words: list[Token] = []
    for token in [*tail, None]:
        if token is None or token.kind == "num":
            smaller = read_unit(_text(words)) if words else None
            if smaller is None or not smaller.known:
                return None
            if unit is not None and (smaller.dimension != unit.dimension or smaller.factor >= last):
                return None
            unit = unit or smaller
            last = smaller.factor
            total.append(mul([current, smaller.factor]))
            words = []
            if token is not None:
                current = token.value
        elif token.text not in (",", "and"):
            words.append(token)
        if len(words) > 3 or len(total) > 5:
            return None
    if len(total) < 2 or unit is None:
        return None
    return Scalar(add(total), Unit(unit.dimension, Fraction(1)))


def _prose(value: Scalar, tail: list[Token], unit: Unit | None) -> Scalar | None:
    """``5 apples``, ``5 apples are left``: the words may not hold a number, a hedge or a formula."""
    if len(tail) > MAX_WORDS or (not isinstance(value.node, Fraction) and not _mentions_pi(value.node)):
        return None
    for place, token in enumerate(tail):
        if token.text == "." and place < len(tail) - 1 and tail[place + 1].spaced:
            return None  # another sentence
        if token.kind not in ("word", "id") and token.text not in (
            ".",
            ",",
            "'",
            "-",
            "/",
            "(",
            ")",
            "!",
            "*",
            '"',
            ":",
        ):
            return None
        low = token.text.casefold()
        if low in HEDGES or low in _NUMBERS or "不" in low or "或" in low:
            return None
    if unit is not None and len(tail) <= 3 and tail[0].text.casefold() not in _STOP and not _measured(tail):
        return replace(value, unit=unit)
    for length in (3, 2, 1):
        known = read_unit(_text(tail[:length])) if len(tail) >= length else None
        if known is not None and known.known and tail[0].text not in ("in", "a", "as", "at", "so"):
            return replace(value, unit=known)
    if tail[0].kind != "word":
        return None
    if tail[0].text.casefold() in _STOP:
        return replace(value, unit=None, loose=True)
    first = tail[: next((k for k, t in enumerate(tail) if t.text.casefold() in _STOP or t.kind == "op"), len(tail))][:4]
    return replace(value, unit=read_unit(_text(first)), loose=True)


def _measured(tail: list[Token]) -> bool:
    """``minutes together``: a unit in the plural and a word that is none."""
    if len(tail) < 2 or tail[1].kind != "word" or tail[1].text.casefold() in _STOP:
        return False
    name = tail[0].text
    unit = lookup(name) if len(name) > 4 and name.endswith("s") else None
    return unit is not None and unit.known and lookup(tail[1].text) is None


def _mentions_pi(node: Node) -> bool:
    return not variables(node) or mentions(node, PI)
