"""Weighted checks on files: what each looks at, when it counts, and which lists of them are refused."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.errors import UsageError
from assay.tasks.workspaces.checks import Check, graded, outcome, read_checks

FILES = {"out/a.txt": b" 42 \n", "b.json": b'{"total": 7, "ok": true, "rows": [{"x": "y"}]}', "old.txt": b"old"}
START = {"old.txt": b"old", "gone.tmp": b""}


def wrong(**what: Any) -> str:
    [check] = read_checks([{"id": "one", "weight": 1, **what}], "here")
    [found] = graded([check], FILES, START)
    assert found.passed == (not found.wrong) and outcome([found]) == float(found.passed)
    return found.wrong


@needs_sandbox
@pytest.mark.parametrize(
    ("what", "found"),
    [
        ({"file": "out/a.txt", "is": "42"}, ""),
        ({"file": "out/a.txt", "is": "4 2"}, "content"),
        ({"file": "a.txt", "is": "42"}, "missing"),
        ({"file": "old.txt", "sha256": hashlib.sha256(b"old").hexdigest().upper()}, ""),
        ({"file": "old.txt", "sha256": hashlib.sha256(b"old\n").hexdigest()}, "content"),
        ({"file": "new.txt", "sha256": "00"}, "missing"),
        ({"file": "b.json", "json": ["total"], "is": 7}, ""),
        ({"file": "b.json", "json": ["rows", 0, "x"], "is": "y"}, ""),
        ({"file": "b.json", "json": [], "is": {"total": 7, "ok": True, "rows": [{"x": "y"}]}}, ""),
        ({"file": "b.json", "json": ["total"], "is": 8}, "content"),
        ({"file": "b.json", "json": ["ok"], "is": 1}, "content"),
        ({"file": "b.json", "json": ["rows", 1], "is": 1}, "format"),
        ({"file": "b.json", "json": ["none"], "is": 1}, "format"),
        ({"file": "b.json", "json": ["total", "x"], "is": 1}, "format"),
        ({"file": "old.txt", "json": ["total"], "is": 7}, "format"),
        ({"file": "c.json", "json": ["total"], "is": 7}, "missing"),
        ({"file": "out/a.txt", "matches": r"^\s*4\d"}, ""),
        ({"file": "out/a.txt", "matches": "43"}, "content"),
        ({"file": "x", "matches": "43"}, "missing"),
        ({"gone": ["gone.tmp", "other.tmp"]}, ""),
        ({"gone": ["gone.tmp", "old.txt"]}, "content"),
        ({"kept": ["old.txt"]}, ""),
        ({"kept": ["old.txt", "gone.tmp"]}, "content"),
        ({"kept": ["out/a.txt"]}, "content"),
        ({"command": "grep -q 42 out/a.txt"}, ""),
        ({"command": "grep -q 43 out/a.txt"}, "content"),
    ],
)
def test_each_kind_of_check(what: dict[str, Any], found: str) -> None:
    assert wrong(**what) == found


def test_what_counts_beside_others_and_after_others() -> None:
    checks = (
        Check("made", 0.5, "is", {"file": "x", "is": "1"}),
        Check("gone", 0.25, "gone", {"gone": ["t"]}, needs=("kept",)),
        Check("kept", 0.25, "kept", {"kept": ["k"]}, beside=True, guard=True),
    )
    start = {"k": b"k", "t": b""}
    for files, passed, worth in (
        (start, (False, False, False), 0.0),
        ({}, (False, False, False), 0.0),
        ({"k": b"k"}, (False, True, True), 0.5),
        ({"k": b"k", "t": b"", "x": b"1"}, (True, False, True), 0.75),
        ({"k": b"other", "x": b"1"}, (True, False, False), 0.5),
        ({"k": b"k", "x": b"1"}, (True, True, True), 1.0),
    ):
        found = graded(checks, files, start)
        assert tuple(f.passed for f in found) == passed and outcome(found) == worth
    # What holds and does not count has nothing wrong with it.
    assert [f.wrong for f in graded(checks, start, start)] == ["missing", "content", ""]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.data())
def test_an_outcome_is_the_sum_of_weights_and_exactly_one_where_all_pass(counts: list[int], data: Any) -> None:
    total = sum(counts)
    checks = [Check(f"c{i}", n / total, "is", {"file": f"c{i}", "is": "1"}) for i, n in enumerate(counts)]
    passed = data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    files = {f"c{i}": b"1" for i, one in enumerate(passed) if one}
    found = outcome(graded(checks, files, {}))
    assert found == pytest.approx(sum(n for n, one in zip(counts, passed, strict=True) if one) / total)
    assert (found == 1) == all(passed)


def test_more_kinds_of_a_callers_own() -> None:
    check = Check("long", 1.0, "longer", {"longer": 3})
    looks = {"longer": lambda what, files, start: "" if len(files) > what["longer"] else "content"}
    assert outcome(graded([check], dict.fromkeys("abcd", b""), {}, looks)) == 1
    assert outcome(graded([check], dict.fromkeys("abc", b""), {}, looks)) == 0
    [read] = read_checks([{"id": "long", "weight": 1, "longer": 3}], "here", ["longer"])
    assert read.kind == "longer"


ONE = {"id": "a", "weight": 1.0, "file": "x", "is": "1"}


def test_options_are_read() -> None:
    a, b = read_checks(
        [
            {**ONE, "weight": 0.5},
            {"id": "b", "weight": 0.5, "kept": ["k"], "needs": ["a"], "beside": True, "guard": True},
        ],
        "here",
    )
    assert (a.needs, a.beside, a.guard) == ((), False, False)
    assert (b.needs, b.beside, b.guard, b.kind, b.weight) == (("a",), True, True, "kept", 0.5)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "must be a list"),
        ([], "must be a list"),
        ([3], "an object with an id"),
        ([{"weight": 1}], "an object with an id"),
        ([{"id": "a", "weight": 1, "file": "x"}], "looks at nothing there is"),
        ([{"id": "a", "weight": 1, "file": "x", "match": "y"}], "did you mean 'matches'"),
        ([{"id": "a", "weight": 1, "file": "x", "is": "1", "matches": "1"}], "looks at nothing there is"),
        ([{**ONE, "weight": 0}], "a weight above 0"),
        ([{**ONE, "weight": True}], "a weight above 0"),
        ([{**ONE, "weight": 1.5}], "a weight above 0"),
        ([{**ONE, "is": 3}], "kind 'is' cannot be read"),
        ([{"id": "a", "weight": 1, "file": "x", "json": "total", "is": 1}], "kind 'json' cannot be read"),
        ([{"id": "a", "weight": 1, "file": "x", "json": ["total"]}], "kind 'json' cannot be read"),
        ([{"id": "a", "weight": 1, "matches": "x"}], "kind 'matches' cannot be read"),
        ([{"id": "a", "weight": 1, "file": "x", "matches": "("}], "no pattern"),
        ([{"id": "a", "weight": 1, "gone": "x"}], "kind 'gone' cannot be read"),
        ([{"id": "a", "weight": 1, "command": 1}], "kind 'command' cannot be read"),
        ([{**ONE, "weight": 0.5}, {**ONE, "weight": 0.5}], "ids of their own"),
        ([{**ONE, "needs": ["b"]}], "need only what there is"),
        ([{**ONE, "weight": 0.9}], "sum to 0.9, not to 1"),
    ],
)  # fmt: skip
def test_what_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_checks(given, "here")
