# ruff: noqa: SIM905  (signs in a row read better than a list of quoted signs)
"""Reading the text of an answer: its tokens, words that describe a set, and values compared at sampled points."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.verify.math.expressions.identity import equal
from assay.verify.math.expressions.nodes import call, mul, power
from assay.verify.math.expressions.values import Scalar
from assay.verify.math.read.reading import read
from assay.verify.math.read.tokens import Token, tokenize

PIECES = "x y 7 40 3.5 .5 1,234 \\frac cm ( ) [ ] { } , + - * / ^ = <= >= != ** == -> => : := < > ; | ! % _ ° '".split()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("x->2", ["x", "⇒", "2"]),
        ("x==2**3", ["x", "=", "2", "^", "3"]),
        ("x=>2-1", ["x", ">=", "2", "-", "1"]),
        ("a-b=-c*d", ["a", "-", "b", "=", "-", "c", "*", "d"]),
        ("2,345", ["2,345"]),
        ("(2,345)", ["(", "2", ",", "345", ")"]),
        ("7.5x", ["7.5", "x"]),
        ("3.14...", ["3.14"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert [token.text.replace("2345", "2,345") for token in tokenize(text)] == tokens


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_pieces_apart_are_read_one_by_one(text: str) -> None:
    """Where blanks stand between them, what a piece is cannot depend on its neighbours."""
    told = [piece._replace(spaced=False) for piece in tokenize(text, grouping=False)]
    alone: list[Token] = []
    for word in text.split():
        alone += [piece._replace(spaced=False) for piece in tokenize(word, grouping=False)]
    assert told == alone


def test_a_reference_that_is_not_real_everywhere_is_compared_where_it_is() -> None:
    minus = mul([Fraction(-1), ("v", "x")])
    left = power(minus, Fraction(1, 2))
    assert equal(left, power(call("abs", ("v", "x")), Fraction(1, 2)))
    assert not equal(left, power(call("abs", ("v", "x")), Fraction(1, 3)))


@pytest.mark.parametrize("text", ["two squared", "ten times the square root of six", "three to the tenth power"])
def test_formulas_in_words_are_numbers(text: str) -> None:
    assert isinstance(read(text)[0], Scalar)
