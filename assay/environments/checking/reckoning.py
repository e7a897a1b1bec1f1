"""A calculator and a calendar whose mistakes are texts."""

from __future__ import annotations

import ast
import datetime
import operator
from collections.abc import Callable
from fractions import Fraction

OPERATIONS: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
LONGEST, WIDEST = 300, 4096
"""Characters of an expression, and bits of a power."""
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def calculate(expression: str) -> str:
    """Return what an expression of numbers, + - * / % ** and parentheses comes to: whole, or to 12 digits.

    Raises:
        ValueError: it is none such, divides by 0 or has a power that is too large; the message says so.
    """
    if len(expression) > LONGEST:
        raise ValueError(f"the expression has more than {LONGEST} characters")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{expression!r} is no expression") from None
    except ZeroDivisionError:
        raise ValueError("division by 0") from None
    try:
        return str(value) if value.denominator == 1 else f"{float(value):.12g}"
    except OverflowError:
        raise ValueError("the value is too large") from None


def _value(node: ast.AST) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            size = max(left.numerator.bit_length(), left.denominator.bit_length())
            if right.denominator != 1 or size * abs(right) > WIDEST:
                raise ValueError("a power has to be a whole number, and not too large")
            return left ** int(right)
        if type(node.op) in OPERATIONS:
            return OPERATIONS[type(node.op)](left, right)
    raise ValueError("an expression has numbers, + - * / % ** and parentheses")


def date_of(text: str) -> datetime.date:
    """Return a date such as 2024-02-29; raise ValueError for what is none."""
    try:
        return datetime.date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no date such as 2024-02-29") from None


def weekday(date: str) -> str:
    """Return the day of the week."""
    return DAYS[date_of(date).weekday()]


def shifted(date: str, days: int) -> str:
    """Return the date so many days later, or earlier; raise ValueError beyond the calendar."""
    try:
        return (date_of(date) + datetime.timedelta(days)).isoformat()
    except OverflowError:
        raise ValueError("that is beyond the calendar") from None


def between(first: str, second: str) -> int:
    """Return the days from the first date to the second."""
    return (date_of(second) - date_of(first)).days
