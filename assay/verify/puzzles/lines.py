"""Puzzles whose answer is a line of text, by their rules: an expression, names or numbers in any order, a value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from assay.verify.puzzles.countdown import expression_of
from assay.verify.puzzles.expression import ExpressionError, evaluate
from assay.verify.puzzles.puzzle import BadAnswer
from assay.verify.puzzles.reading import integers, labels, shown
from assay.verify.text.compare import parse_number
from assay.verify.text.exact import shorten

LineRules = Callable[[str, Mapping[str, Any]], str]
"""From an answer and a puzzle's data to what is wrong first; empty where nothing is."""
CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
HALF_A_HUNDREDTH = Fraction(1, 200)
_TYPED = str.maketrans({"×": "*", "·": "*", "÷": "/", "\N{MINUS SIGN}": "-", "[": "", "]": "", "$": ""})
_LATEX = (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("\\%", "%"))


def chain_value(text: str) -> Fraction | None:
    """Return the value of numbers with ``+ - * / %`` between them, the last three first; ``None``: division by zero."""
    total, term, add, operator = Fraction(0), Fraction(1), 1, "*"
    for number, following in re.findall(r"([0-9]+)([-+*/%]?)", text):
        value = Fraction(int(number))
        if operator != "*" and not value:
            return None
        term = term * value if operator == "*" else term / value if operator == "/" else term % value
        operator = following
        if following in ("+", "-", ""):
            total, term = total + add * term, Fraction(1)
            add, operator = -1 if following == "-" else 1, "*"
    return total


def math_path(answer: str, data: Mapping[str, Any]) -> str:
    """``equation`` with a digit in place of each ``?``, so that it is true; its left side alone will do."""
    wanted = "".join(str(data["equation"]).split())
    for latex, plain in _LATEX:
        answer = answer.replace(latex, plain)
    given = "".join(answer.translate(_TYPED).split()).rstrip(".")
    left, _, right = wanted.partition("=")
    given = given if "=" in given else f"{given}={right}"
    fits = len(given) == len(wanted) and all(
        b in "0123456789" if a == "?" else a == b for a, b in zip(wanted, given, strict=True)
    )
    if not fits:
        raise BadAnswer(f"{shorten(given, 60)!r} is not {wanted} with a digit for each ?")
    value = chain_value(given[: len(left)])
    if value is None:
        return "there is a division by zero"
    return "" if value == Fraction(right) else f"the left side is {value}, not {right}"


def mathador(answer: str, data: Mapping[str, Any]) -> str:
    """An expression that has each of ``numbers`` at most once and comes to ``target``."""
    try:
        value, used = evaluate(expression_of(answer))
    except ExpressionError as error:
        raise BadAnswer(f"{shorten(answer, 60)!r} is not an arithmetic expression: {error}") from None
    over = Counter(used) - Counter(data["numbers"])
    if over:
        return f"{shown(next(iter(over)))} is used more often than it is given"
    return "" if value == data["target"] else f"it comes to {shorten(str(value), 30)}, not {data['target']}"


def space_reasoning_tree(answer: str, data: Mapping[str, Any]) -> str:
    """The names of all cousins of ``of`` in the tree ``children``, by parent, in any order."""
    given = {name.lower() for name in labels(answer)} - {"and"}
    wanted = cousins(data["children"], data["of"])
    if extra := sorted(given - wanted):
        return f"{shorten(extra[0], 30)!r} is no cousin of {data['of']}"
    missing = sorted(wanted - given)
    return f"{missing[0]!r} is a cousin of {data['of']} too" if missing else ""


def cousins(children: Mapping[str, list[str]], of: str) -> set[str]:
    """Return those whose parents are brothers or sisters of the parent of ``of``."""
    parent = {child: name for name, born in children.items() for child in born}
    uncles = set(children[parent[parent[of]]]) - {parent[of]}
    return {child for uncle in uncles for child in children.get(uncle, ())}


def dyck_reasoning_errors(answer: str, data: Mapping[str, Any]) -> str:
    """The numbers, from 1, of those of ``stacks`` that are not what is open so far in ``sequence``; 0 where none is."""
    given = set(integers(answer))
    wrong = {i + 1 for i, told in enumerate(data["stacks"]) if told != open_brackets(data["sequence"][: i + 1])} or {0}
    if given == wrong:
        return ""
    odd = min(given ^ wrong)
    return f"{shown(odd)} is {'missing' if odd in wrong else 'not to be named'}"


def open_brackets(text: str) -> str:
    """Return the brackets that a beginning of a proper sequence leaves open, the outermost first."""
    stack = ""
    for bracket in text:
        stack = stack[:-1] if bracket in CLOSING else stack + bracket
    return stack


def buggy_tables(answer: str, data: Mapping[str, Any]) -> str:
    """A number that is ``value``, a fraction as text, when this is rounded to two decimals."""
    given = parse_number(answer)
    if given is None:
        raise BadAnswer(f"{shorten(answer, 60)!r} is no number")
    # A value half-way between two hundredths may be rounded either way.
    right = abs(given - Fraction(data["value"])) <= HALF_A_HUNDREDTH
    return "" if right else f"it is {float(Fraction(data['value'])):.2f}"


LINES: dict[str, LineRules] = {
    "math_path": math_path, "mathador": mathador, "space_reasoning_tree": space_reasoning_tree,
    "dyck_reasoning_errors": dyck_reasoning_errors, "buggy_tables": buggy_tables,
}  # fmt: skip
"""By family."""
