"""The built-in prover: what it proves holds of every run, what it refutes fails on the values it shows."""

from __future__ import annotations

import itertools

import pytest

from assay.tasks.contracts import problems
from assay.verify.formal.backends import BACKENDS, BuiltIn, Checked
from assay.verify.formal.dafny import DAFNY
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.run import execute, holds
from assay.verify.formal.imperative.syntax import written
from formal.support import needs

pytest.importorskip("z3")
ABS = "method m(x: int) returns (r: int) ensures {} {{ if x {} 0 {{ r := x; }} else {{ r := -x; }} }}"
POST = "r >= 0 && (r == x || r == -x)"


def check(source: str) -> Checked:
    found = BuiltIn(effort=1_000_000).check(source)
    assert found.verified is not None, found.fault
    return found


def test_by_hand() -> None:
    assert check(ABS.format(POST, ">=")).proved
    assert check(ABS.format(POST, ">")).proved, "0 is its own negative"
    refuted = check(ABS.format(POST, "<"))
    assert not refuted.verified and "might not hold at its end" in refuted.errors[0]
    assert dict(check(ABS.format(POST.replace(">=", ">"), ">=")).counter) == {"x": 0}


def test_what_refutes_is_an_input_on_which_it_fails() -> None:
    for source in (ABS.format(POST, "<"), ABS.format("r > x", ">="), ABS.format("r == x", ">=")):
        program = parse(source)
        shown = dict(check(source).counter)
        [r], _ = execute(program, [shown["x"]])  # type: ignore[list-item]
        assert not holds(program, program.method.ensures, {**shown, "r": r})  # type: ignore[dict-item]


LOOP = """
method divided(a: int, b: int) returns (q: int, r: int)
  requires a >= 0 && b > 0
  ensures a == q * b + r && 0 <= r < b
{{ q, r := 0, a; while r >= b {} {{ q, r := q + 1, r - b; }} }}
"""


def test_loops_are_known_by_their_invariants() -> None:
    assert check(LOOP.format("invariant a == q * b + r && r >= 0 decreases r")).proved
    assert check(LOOP.format("invariant a == q * b + r && r >= 0")).proved, "r - b is suggested by the condition"
    assert "might not hold at its end" in check(LOOP.format("invariant r >= 0")).errors[0]
    assert "might not hold on entry" in check(LOOP.format("invariant a == q * b + r && r < b")).errors[0]
    assert "might not be kept" in check(LOOP.format("invariant a == q * b + r && q <= 3")).errors[0]
    assert "might not decrease" in check(LOOP.format("invariant a == q * b + r && r >= 0 decreases q")).errors[0]


NEVER_ENDS = [
    "method m() returns (r: int) ensures r == 7 { r := 0; while true { } }",
    "method m() returns (r: int) ensures r == 7 { r := 0; while r != 7 { } }",
    "method m(n: int) returns (r: int) ensures r == 7 { r := 0; while n > 0 decreases n { } }",
    "method m(n: int) returns (r: int) ensures r == 7 { r := n; while r < 0 decreases r { r := r - 1; } r := 7; }",
    "function f(n: int): int decreases n { f(n) + 1 } method m() returns (r: int) ensures r == 7 { r := 4; }",
    "function f(n: int): int decreases n { f(n - 1) + 1 } method m() returns (r: int) ensures r == 7 { r := 4; }",
    "predicate p(n: int) decreases n { !p(n) } method m() returns (r: int) ensures r == 7 { r := 4; }",
]


@pytest.mark.parametrize("source", NEVER_ENDS)
def test_what_does_not_end_proves_nothing(source: str) -> None:
    assert not check(source).verified


UNDEFINED = [
    "method m(s: seq<int>) returns (r: int) { r := s[0]; }",
    "method m(s: seq<int>) returns (r: int) { r := s[|s|]; }",
    "method m(s: seq<int>) returns (r: seq<int>) { r := s[0 := 1]; }",
    "method m(s: seq<int>) returns (r: seq<int>) { r := s[1..]; }",
    "method m(s: seq<int>, n: int) returns (r: seq<int>) requires n <= |s| { r := s[..n]; }",
    "method m(a: int, b: int) returns (r: int) { r := a / b; }",
    "method m(a: int, b: int) returns (r: int) { r := a % b; }",
    "method m(a: int, b: int) returns (r: bool) { r := a / b > 0 && b != 0; }",
    "method m(s: seq<int>) returns (r: int) ensures s[r] == 0 { r := 0; }",
    "method m(s: seq<int>) returns (r: int) requires s[0] == 0 { r := 0; }",
    "method m(s: seq<int>) returns (r: int) ensures forall i :: 0 <= i <= |s| ==> s[i] == s[i] { r := 0; }",
    "method m(a: int) returns (r: int) { r := 0; if a > 0 { assert a > 1; } }",
]


@pytest.mark.parametrize("source", UNDEFINED)
def test_what_may_not_be_defined_is_refused(source: str) -> None:
    assert not check(source).verified


DEFINED = [
    "method m(a: int, b: int) returns (r: bool) { r := b != 0 && a / b > 0; }",
    "method m(a: int, b: int) returns (r: bool) { r := b == 0 || a / b > 0; }",
    "method m(a: int, b: int) returns (r: int) { r := if b == 0 then 0 else a % b; assert 0 <= r; }",
    "method m(s: seq<int>) returns (r: seq<int>) requires |s| > 2 ensures |r| == |s| - 1 && r[0] == s[1] "
    "{ r := s[1..]; }",
    "method m(s: seq<int>) returns (r: seq<int>) ensures r == s { r := s[..] + []; }",
    "method m(s: seq<int>, t: seq<int>) returns (r: seq<int>) ensures |r| == |s| + |t| && "
    "(forall i :: 0 <= i < |t| ==> r[|s| + i] == t[i]) && (forall i :: 0 <= i < |s| ==> r[i] == s[i]) { r := s + t; }",
    "method m() returns (r: seq<int>) ensures 3 in r && !(4 in r) && |r| == 2 && r[1] == 3 { r := [1, 3]; }",
    "method m(x: int) returns (r: int) ensures r == x || r == 5 "
    "{ r := x; while true invariant r <= x decreases r - x + 10 { if r < x { r := 5; break; } r := r - 1; "
    "if r == x - 1 { r := 5; return; } } r := 5; }",
    "method m(a: int, b: int) returns (x: int, y: int) ensures x == b && y == a { x, y := a, b; x, y := y, x; }",
    "method m(a: int) returns (r: int) ensures r >= 0 { var x; x := a * a; r := x; }".replace(
        "var x; x", "var x := 0; x"
    ),
    "method m(b: bool) returns (r: bool) ensures r <==> !b { r := !b; }",
    "method m(a: int) returns (r: int) ensures a == 4 * r + a % 4 { r := a / 4; }",
]


@pytest.mark.parametrize("source", DEFINED)
def test_what_is_defined_and_holds_is_proved(source: str) -> None:
    assert check(source).proved, check(source)


def test_a_loop_left_by_break_or_return_keeps_what_it_knew() -> None:
    head = "method m(s: seq<int>) returns (k: int) ensures 0 <= k <= |s| && (k < |s| ==> s[k] == 0) "
    body = "{{ k := 0; while k < |s| invariant 0 <= k <= |s| {{ if s[k] {} 0 {{ {}; }} k := k + 1; }} }}"
    for leave in ("break", "return"):
        assert check(head + body.format("==", leave)).proved
        assert not check(head + body.format("!=", leave)).proved
    assert not check(head.replace("0 <= k <= |s|", "k == |s|") + body.format("==", "break")).proved
    assert not check(head.replace("0 <= k <= |s|", "k < |s|") + body.format("==", "break")).proved


def test_a_variable_written_in_a_loop_is_not_known_after_it() -> None:
    assert not check("method m(n: int) returns (r: int) ensures r == 0 "
                     "{ r := 0; var i := 0; while i < n { i := i + 1; r := 1; } }").verified  # fmt: skip
    assert check("method m(n: int) returns (r: int) ensures r == 0 "
                 "{ r := 0; var i := 0; while i < n { i := i + 1; } }").proved  # fmt: skip


def test_assumptions_are_accepted_by_the_prover_and_told() -> None:
    found = check("method m() returns (r: int) ensures r == 7 { r := 0; assume false; }")
    assert found.verified and found.escapes == ("line 1: assume",) and not found.proved


def test_what_is_proved_holds_on_every_run() -> None:
    """Programs put together at random: whatever the prover accepts is run on all small inputs."""
    guards, values = ("a < b", "b >= 0", "a != 0"), ("a", "-b", "1")
    posts = ("r >= a", "r == b", "r * r >= r", "r != 2", "a < b ==> r <= b")
    proved = refuted = 0
    for guard, one, other, post in itertools.product(guards, values, values, posts):
        source = (
            f"method m(a: int, b: int) returns (r: int) ensures {post} {{ r := {other}; if {guard} {{ r := {one}; }} }}"
        )
        program = parse(source)
        runs = [((a, b), execute(program, [a, b])[0][0]) for a in range(-3, 4) for b in range(-3, 4)]
        right = all(holds(program, program.method.ensures, {"a": a, "b": b, "r": r}) for (a, b), r in runs)
        found = check(source)
        assert not found.verified or right, source
        proved, refuted = proved + bool(found.verified), refuted + (not found.verified)
        if found.counter:
            x = dict(found.counter)
            [r], _ = execute(program, [x["a"], x["b"]])  # type: ignore[list-item]
            assert not holds(program, program.method.ensures, {**x, "r": r})  # type: ignore[dict-item]
    assert proved > 15 and refuted > 15


def test_the_programs_that_ship_verify() -> None:
    for problem in problems():
        assert check(problem.source).proved, check(problem.source)
        assert not check(written(parse(problem.source), proof=False)).proved or "while" not in problem.source


@pytest.mark.slow
@needs(DAFNY)
def test_dafny_proves_them_too_and_refuses_what_is_refused_here() -> None:
    dafny = BACKENDS["dafny"]
    sound = [s.replace("method m(", f"method m{i}(") for i, s in enumerate(DEFINED)]
    whole = "\n".join([*sound, *(p.source for p in problems())])
    assert dafny.check(whole).proved, dafny.check(whole)
    broken = [*UNDEFINED, *NEVER_ENDS[:4], ABS.format(POST, "<")]
    together = "\n".join(s.replace("method m(", f"method m{i}(") for i, s in enumerate(broken))
    assert dafny.check(together).verified is False
    found = dafny.check("method m() returns (r: int) ensures r == 7 { r := 0; assume false; }")
    assert found.verified and found.escapes == ("assume",) and not found.proved
