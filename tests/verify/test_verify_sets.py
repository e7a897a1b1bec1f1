"""Sets of items against counts by hand and by brute force."""

from __future__ import annotations

import time
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.lists.items import item_key, read_items
from assay.verify.lists.sets import overlap


def judge(reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": "set", **options})(Task("t", "?", reference, "set"), response)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a, b, c", ["a", "b", "c"]),
        ("a, b, and c", ["a", "b", "c"]),
        ("a; b, c", ["a", "b, c"]),
        ("- a\n- b, c\n", ["a", "b, c"]),
        ("1. a\n2) b", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ('["a, b", 2, [1]]', ["a, b", "2", "[1]"]),
        ("\\{1, 2\\}", ["1", "2"]),
        ("$\\left\\{1, 2\\right\\}$", ["1", "2"]),
        ("{x, y}", ["x", "y"]),
        ("(1, 2), (3, 4)", ["(1, 2)", "(3, 4)"]),
        ("[a, b]", ["a", "b"]),
        ("```\na\nb\n```", ["a", "b"]),
        ("\\emptyset", []),
        ("None.", []),
        ("{}", []),
        ("", []),
        ("a,,b,", ["a", "b"]),
        ("rock and roll", ["rock and roll"]),
        ("and roll", ["and roll"]),
        ("a, and b", ["a", "b"]),
        # A bullet stands at the beginning of a line, and there is one.
        ("Mr. Smith\nwell - known\n  - c", ["Mr. Smith", "well - known", "c"]),
        ("- - a\nb", ["- a", "b"]),
        ("1. 2. a", ["2. a"]),
        ("f((a, b), c), d", ["f((a, b), c)", "d"]),
        ("a), b", ["a)", "b"]),
        ("((a), b)", ["(a)", "b"]),
        ("()", []),
        ("(a b", ["(a b"]),
        ('[{"b": 1, "a": 2}]', ['{"a": 2, "b": 1}']),
    ],
)
def test_read_items(text, items):
    assert read_items(text) == items


def test_equal_items_have_one_key():
    assert item_key(" A") == item_key("a") == "a" and item_key("0.5") == item_key("1/2") == Fraction(1, 2)


def test_scores_by_hand():
    verdict = judge(["a", "b", "c", "d"], "<answer>a, B, x</answer>")
    # 2 common of 3 given and 4 wanted.
    assert verdict.parts["precision"] == pytest.approx(2 / 3)
    assert verdict.parts["recall"] == 0.5
    assert verdict.score == verdict.parts["f"] == pytest.approx(2 * 2 / 7)
    assert verdict.parts["jaccard"] == pytest.approx(2 / 5)
    assert verdict.passed is False and verdict.feedback == "misses 'c', adds 'x'"
    assert judge(["1/2", "3"], "\\boxed{\\{0.5, 3\\}}").passed
    assert judge(["1/2", "3"], "0.5, 3", numeric=False).passed is False
    assert judge("a, b", "b\na").passed
    assert judge(["a", "b"], "a", measure="recall", threshold=0.5).passed
    assert judge(["A"], "a", ignore_case=False).passed is False


def test_repeats():
    assert judge(["a", "b"], "a, b, a").passed
    verdict = judge([0, 5], "0, 0, 5", repeats="penalise", beta=2.0)
    assert verdict.score == pytest.approx(0.909091, abs=1e-6) and verdict.passed is False
    assert judge(["a", "a", "b"], "a, b", repeats="multiset").parts["recall"] == pytest.approx(2 / 3)
    assert judge(["a", "a", "b"], "b, a, a", repeats="multiset").passed


def test_empty_sets():
    assert judge([], "none").passed
    assert judge([], "a").passed is False
    assert judge(["a"], "none").score == 0
    assert judge(["a"], "").passed is False
    assert judge(None, "a").passed is None
    assert judge(5, "a").passed is None


ITEMS = st.lists(st.sampled_from("abcde"), max_size=8)


@given(ITEMS, ITEMS)
def test_counts_by_brute_force(given_, wanted):
    left = list(wanted)
    common = 0
    for item in given_:
        if item in left:
            left.remove(item)
            common += 1
    many = overlap(given_, wanted, "multiset")
    assert (many.common, many.given, many.wanted) == (common, len(given_), len(wanted))
    once = overlap(given_, wanted)
    assert once.jaccard == (len(set(given_) & set(wanted)) / len(set(given_) | set(wanted)) if given_ or wanted else 1)
    assert (once.f() == 1) == (set(given_) == set(wanted))
    assert (many.f() == 1) == (Counter(given_) == Counter(wanted))
    # Listing an item once more never helps.
    if given_:
        assert overlap([*given_, given_[0]], wanted, "penalise").f(2) <= overlap(given_, wanted, "penalise").f(2)


@given(st.text() | st.text(alphabet="[]{}(),;\n-1a\\ ", max_size=60))
@settings(deadline=None)
def test_never_raises(text):
    verdict = judge(["a", "1"], text)
    assert verdict.passed is not None and 0 <= verdict.score <= 1


@pytest.mark.parametrize(
    "text",
    ["a," * 99_000, "(" * 190_000, "- \n" * 60_000, " " * 190_000, "9" * 190_000, "\n" * 10**6, "\ufdfa," * 90_000],
)
def test_long_answers_are_read_in_seconds(text):
    started = time.process_time()
    judge(["a", "b"], text)
    assert time.process_time() - started < 3


def test_options():
    with pytest.raises(UsageError, match="threshold"):
        build("verify", {"name": "set", "threshold": 0.0})
