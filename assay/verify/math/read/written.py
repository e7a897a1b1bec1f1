"""Parts of an answer as they are written: names, expressions, numerals, vectors of unit vectors."""

from __future__ import annotations

import re
from fractions import Fraction

from assay.verify.math.expressions.nodes import Node, Unreadable, add, mul, variables
from assay.verify.math.expressions.values import Items, Scalar
from assay.verify.math.read.latex import UNIT_VECTORS
from assay.verify.math.read.parse import Parser
from assay.verify.math.read.tokens import Token


def is_op(token: Token, *texts: str) -> bool:
    return token.kind == "op" and token.text in texts


_DERIVATIVE = re.compile(r"(?:\\frac\{d([a-z])\}\{d[a-z]\}|d([a-z])/d[a-z])")
# The derivative or integral of something written out, the coefficient of a power in a product.
_OPERATION = re.compile(r"(?:\\frac\{d\}\{d[a-z]\}|d/d[a-z]|\[[a-z]\^\{?[0-9]{1,4}\}?\]).{1,80}", re.DOTALL)
_CALLED = re.compile(r"([A-Za-z](?:_\{?[a-z0-9]\}?)?)(?:\^\{?(-1)\}?)?('{0,3})\(([a-z0-9,]{1,10})\)")
_COMPOSED = re.compile(r"\(([fghFGH])[°∘]([fghFGH])\)\(([a-z0-9])\)|([fghFGH])\(([fghFGH])\(([a-z0-9])\)\)")


def name_of(tokens: list[Token]) -> str:
    """The name on the left of an equation: ``x``, ``x_1``, ``f(x)``, ``y'``, ``dy/dx``, ``∠ABC``; else ``""``."""
    if (derivative := _DERIVATIVE.fullmatch("".join(t.text for t in tokens[:9]))) is not None:
        return f"{derivative[1] or derivative[2]}'"
    if not tokens:
        return ""
    if len(tokens) <= 14 and tokens[-1].text == ")":
        joined = "".join(t.text for t in tokens)
        if (
            tokens[0].kind == "id"
            and (called := _CALLED.fullmatch(joined)) is not None
            and (called[2] or called[3] or called[4] in ("n", "k", "x", "t"))
        ):
            return f"{called[1]}{called[3]}{'⁻¹' if called[2] else ''}({called[4]})"
        if (composed := _COMPOSED.fullmatch(joined)) is not None:
            f, g, x = composed.groups()[:3] if composed[1] else composed.groups()[3:]
            return f"{f}∘{g}({x})"
    if tokens[0].kind not in ("id", "word") or tokens[0].text in ("π", "∞"):
        if tokens and is_op(tokens[0], "∠", "△") and len(tokens) < 6:
            return "".join(t.text for t in tokens)
        return ""
    first, rest = tokens[0], tokens[1:]
    if not rest and (first.kind == "id" or (first.text.isupper() and len(first.text) < 4)):
        return first.text
    texts = [t.text for t in rest]
    if (
        texts
        and texts[0] == "_"
        and (len(texts) == 2 or (texts[1] == "{" and texts.index("}") == len(texts) - 1 if "}" in texts else False))
    ):
        return first.text + "_" + "".join(texts[1:]).strip("{}")
    if all(t == "'" for t in texts) and first.kind == "id":
        return first.text + "".join(texts)
    if texts and first.text in "fghFGHPpAVSTNQRyuvsr" and texts[0] == "(" and texts[-1] == ")" and len(texts) <= 12:
        return first.text + "".join(texts)
    return ""


def numeral(tokens: list[Token]) -> Fraction | None:
    """The value of tokens that are one number, with or without a minus sign."""
    if len(tokens) > 2 or tokens[-1].kind != "num":
        return None
    value = tokens[-1].value
    if len(tokens) == 1:
        return value
    return -value if value is not None and is_op(tokens[0], "-") else None


def expression(tokens: list[Token]) -> Node:
    """Read all of ``tokens`` as one expression."""
    if tokens and (number := numeral(tokens)) is not None:
        return number
    parser = Parser(tokens)
    node = parser.expression()
    if parser.kind():
        raise Unreadable(f"unexpected {parser.peek()[:20]!r}")
    return node


def expression_or_infinity(tokens: list[Token]) -> Node | str:
    texts = [t.text for t in tokens]
    if texts in (["∞"], ["+", "∞"]):
        return "∞"
    return "-∞" if texts == ["-", "∞"] else expression(tokens)


def operation(tokens: list[Token]) -> bool:
    """Say whether the left side of an equation names what its right side is the result of."""
    return _OPERATION.fullmatch("".join(t.text for t in tokens[:100])) is not None


def computed(tokens: list[Token]) -> bool:
    """Say whether tokens are sums, differences or products of numbers, but no mixed number or power of ten."""
    binary = [
        place
        for place, t in enumerate(tokens)
        if t.text in ("+", "-", "*")
        and t.kind == "op"
        and 0 < place < len(tokens) - 1
        and tokens[place - 1].text not in "(+-*/^{|"
    ]
    if not binary or any(t.kind not in ("num", "op") or t.text in ("^", "!") for t in tokens):
        return False
    return not (len(binary) == 1 and tokens[binary[0]].text == "+" and "/" in (t.text for t in tokens[binary[0] :]))


def literal(node: Node, tokens: list[Token]) -> Scalar:
    """A scalar that remembers how it was written: as one numeral, or as arithmetic to be carried out."""
    body = tokens[1:] if tokens and is_op(tokens[0], "-", "+") else tokens
    percent = bool(body) and is_op(body[-1], "%")
    if percent:
        body = body[:-1]
    if len(body) != 1 or body[0].kind != "num":
        return Scalar(node, percent=percent, computed=len(body) > 2 and isinstance(node, Fraction) and computed(body))
    token = body[0]
    if token.decimals is None:
        return Scalar(node, inexact=token.inexact, percent=percent)
    digits = token.text.partition("e")[0].partition("E")[0].replace(".", "").lstrip("0")
    return Scalar(node, None, token.decimals, len(digits), token.inexact, percent)


def components(node: Node) -> Items | None:
    """Read ``a î + b ĵ + c k̂`` as a vector."""
    names = variables(node)
    if not any(name in names for name in UNIT_VECTORS):
        return None
    found: list[list[Node]] = [[], [], []]
    for term in node[1] if node[0] == "+" else (node,):
        factors = list(term[1]) if not isinstance(term, Fraction) and term[0] == "*" else [term]
        places = [k for k, vector in enumerate(UNIT_VECTORS) if ("v", vector) in factors]
        if len(places) != 1:
            raise Unreadable("a vector")
        factors.remove(("v", UNIT_VECTORS[places[0]]))
        found[places[0]].append(mul(factors))
    size = 3 if found[2] or UNIT_VECTORS[2] in names else 2
    return Items(tuple(Scalar(add(parts)) for parts in found[:size]), "v")
