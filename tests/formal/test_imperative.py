"""The language of the built-in prover: read, written again, typed and run."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tasks.contracts import problems
from assay.verify.formal.imperative.parse import HIGHEST, expression, parse
from assay.verify.formal.imperative.run import Crash, Exhausted, Run, Unbounded, execute, holds
from assay.verify.formal.imperative.sample import search
from assay.verify.formal.imperative.syntax import BadProgram, Expr, Program, shown, written

NAMES = {"a": 3, "b": -2, "s": (4, 5, 6), "t": (), "p": True}


def value(text: str, **names: object) -> object:
    return Run({}).value(expression(text), {**NAMES, **names})  # type: ignore[dict-item]


BY_HAND = {
    "a + b * 2": -1,
    "a - b - 1": 4,
    "a - (b - 1)": 6,
    "-a": -3,
    "7 / 2": 3,
    "-7 / 2": -4,
    "-7 % 2": 1,
    "7 / -2": -3,
    "7 % -2": 1,
    "|s| + |t|": 3,
    "s[1]": 5,
    "s[1 := 9]": (4, 9, 6),
    "s[1..]": (5, 6),
    "s[..1]": (4,),
    "s[1..2] + [a, b]": (5, 3, -2),
    "s[..] == s": True,
    "5 in s && !(3 in s)": True,
    "0 <= a < 4": True,
    "b < a < 3": False,
    "p ==> false ==> true": True,
    "(p ==> false) ==> false": True,
    "a < 0 || b < 0": True,
    "true <==> a == 3": True,
    "if a > 3 then 1 else 2": 2,
    "forall i :: 0 <= i < |s| ==> s[i] > 3": True,
    "forall i :: 0 <= i < |s| ==> s[i] > 4": False,
    "exists i :: 0 <= i < |s| && s[i] == 6": True,
    "exists i :: 0 <= i && i <= 2 && s[i] == 7": False,
    "forall i, j :: 0 <= i < j < |s| ==> s[i] < s[j]": True,
    "exists i, j :: 0 <= i < |s| && i < j && j < |s| && s[i] + s[j] == 11": True,
    "forall x :: x in s ==> x >= 4": True,
    "exists x :: x in t && x == x": False,
    "forall i :: i == 2 ==> s[i] == 6": True,
    "forall i :: 5 > i >= 3 ==> i * i <= 16": True,
}


@pytest.mark.parametrize("text", BY_HAND)
def test_values_by_hand(text: str) -> None:
    assert value(text) == BY_HAND[text]
    assert Run({}).value(expression(shown(expression(text))), NAMES) == BY_HAND[text], "written again it is another"


@given(st.integers(-50, 50), st.integers(-50, 50).filter(bool))
def test_division_is_euclids(a: int, b: int) -> None:
    q, r = value("a / b", a=a, b=b), value("a % b", a=a, b=b)
    assert isinstance(q, int) and isinstance(r, int)
    assert a == b * q + r and 0 <= r < abs(b)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("s[3]", Crash),
        ("s[b]", Crash),
        ("s[2..1]", Crash),
        ("s[..4]", Crash),
        ("s[3 := 0]", Crash),
        ("a / 0", Crash),
        ("a % (b + 2)", Crash),
        ("forall i :: i > 0 ==> i != a", Unbounded),
        ("exists i :: i < 4", Unbounded),
        ("forall i, j :: 0 <= i < j ==> i != j", Unbounded),
        ("forall i :: 0 <= i < 1000000 ==> i != b", Exhausted),
    ],
)
def test_what_has_no_value(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        value(text)


OPERANDS = st.sampled_from(["a", "b", "1", "0"])
INTS = st.recursive(
    OPERANDS.map(expression),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*"), inner, inner).map(lambda t: Expr(t[0], (t[1], t[2]))),
        inner.map(lambda e: Expr("-", (e,)) if e.op != "int" else e),
        st.tuples(inner, inner).map(lambda t: Expr("if", (Expr("<", t), *t))),
    ),
    max_leaves=8,
)


@given(INTS)
def test_writing_and_reading_are_inverse(e: Expr) -> None:
    again = expression(shown(e))
    assert Run({}).value(again, NAMES) == Run({}).value(e, NAMES)
    assert shown(again) == shown(e)


def test_programs_are_written_in_one_layout() -> None:
    for problem in problems():
        text = written(parse(problem.source))
        assert written(parse(text)) == text
        bare = written(parse(problem.source), proof=False)
        assert "invariant" not in bare and "requires" not in written(parse(text), contract=False)
        assert written(parse(bare)) == bare


def program(body: str, head: str = "method m(x: int, s: seq<int>) returns (r: int)") -> Program:
    return parse(f"{head} {{ {body} }}")


def test_runs_by_hand() -> None:
    def of(body: str, x: int = 5) -> object:
        return execute(program(body), [x, (1, 2, 3)])[0][0]

    assert of("r := x; while r > 0 { r := r - 2; }") == -1
    assert of("r := 0; while true { r := r + 1; if r == 7 { break; } }") == 7
    assert of("r := 0; while true { while true { break; } r := r + 1; if r > 2 { return; } }") == 3
    assert of("r := 1; if x > 4 { return x * 2; } r := 3;") == 10
    assert of("r := 1; if x > 4 { return; } r := 3;", 4) == 3
    assert of("var y: int; r := y;") == 0
    assert of("var y, z := 1, 2; y, z := z, y; r := 10 * y + z;") == 21
    assert of("if x < 0 { r := 1; } else if x < 9 { r := 2; } else { r := 3; }") == 2
    assert of("var i := 0; r := 0; while i < |s| { var t := s[i]; r := r + t; i := i + 1; }") == 6
    assert of("assert false; r := 4;") == 4, "assertions are a part of the proof"


@pytest.mark.parametrize("body", ["while true { }", "r := 2; while true { r := r * r; }", "while true { r := r + 1; }"])
def test_runs_that_do_not_end_are_ended(body: str) -> None:
    with pytest.raises(Exhausted):
        execute(program(body), [0, ()])


BAD = [
    "",
    "method m() returns (r: int)",  # nothing wrong with it but for the second method below
    "method m( returns (r: int)",
    "method m() returns (r: nat)",
    "method m() returns (r: int) { r := 'a'; }",
    "method m() returns (r: int) { r := 1 }",
    "method m() returns (r: int) { q := 1; }",
    "method m(x: int) returns (r: int) { x := 1; }",
    "method m(x: int, x: int) returns (r: int)",
    "method m(x: int) returns (x: int)",
    "method m() returns (r: int) { r := true; }",
    "method m() returns (r: int) { r := 1 < 2 < true; }",
    "method m() returns (r: int) { if 1 { } }",
    "method m() returns (r: int) { break; }",
    "method m() returns (r: int) { return 1, 2; }",
    "method m() returns (r: int) { var r := 1; }",
    "method m() returns (r: int) { var y; }",
    "method m() returns (r: int) { r, r := 1, 2; }",
    "method m() returns (r: int) { r := f(1); }",
    "method m() returns (r: int) ensures f(1) == 2",
    "method m() returns (r: int) requires r == 1",
    "method m() returns (r: int) { while r < 1 decreases true { r := 1; } }",
    "method m() returns (r: int) { if true && false || true { } }",
    "function f(x: int): int { f(x) } method m() returns (r: int)",
    "function f(x: int): seq<int> { [x] } method m() returns (r: int)",
    "function f(x: int): int { x } method m() returns (r: int) { r := f(1); }",
    "method m(s: seq<int>) returns (r: bool) { r := forall i :: 0 <= i < |s| ==> s[i] > 0; }",
    "method m(s: seq<int>) returns (r: int) { while exists i :: 0 <= i < |s| && s[i] > r { r := r + 1; } }",
    "function m(x: int): int { x } method m() returns (r: int)",
    "method m() returns (r: int) { var match := 1; }",
    "method m() returns (r: int) ensures r == " + "(" * 200 + "1" + ")" * 200,
    "method m() returns (r: int) ensures r == " + " + ".join("1" * 1 for _ in range(HIGHEST + 2)),
    "method m() returns (r: int) { " + "if true { " * 200 + "}" * 200 + " }",
    "method m() returns (r: int) ensures r == " + "9" * 101,
    "method m() returns (r: int) " + "x" * 60_000,
]


@pytest.mark.parametrize("text", [b for b in BAD if b != BAD[1]])
def test_what_is_no_program(text: str) -> None:
    with pytest.raises(BadProgram):
        parse(text)


def test_there_is_one_method() -> None:
    parse(BAD[1])
    with pytest.raises(BadProgram, match="2 methods"):
        parse(BAD[1] + BAD[1].replace("m(", "n("))


@given(st.text(alphabet="method(x:int)returns{}=<>&|![].+-*/% rsq\n;,0123", max_size=200))
def test_any_text_is_a_program_or_not(text: str) -> None:
    for whole in (text, f"method m(x: int) returns (r: int) ensures {text} {{ r := x; }}"):
        with contextlib.suppress(BadProgram):
            parse(whole)


def test_holds_says_of_a_contract_whether_it_does() -> None:
    contract = parse("method m(x: int) returns (r: int) requires x > 0 ensures r > x ensures r < 10")
    assert holds(contract, contract.method.ensures, {"x": 1, "r": 9})
    assert not holds(contract, contract.method.ensures, {"x": 1, "r": 10})


@pytest.mark.parametrize(
    ("post", "found"),
    [
        ("r == 1", (True, "")),
        ("r == 2", (False, "")),
        ("forall k :: k * k >= 0", (None, "forall")),
        ("forall k :: k < 90 || r == 2", (False, "")),
        ("forall k :: k < 900 || r == 2", (None, "forall")),
        ("forall k :: k > 80 && k > r ==> k != 90", (False, "")),
        ("exists k :: k > 60", (True, "")),
        ("exists k :: k > 600", (None, "exists")),
        ("(forall k :: k * k >= 0) && r == 1", (None, "")),
    ],
)
def test_random_values_settle_what_they_can(post: str, found: tuple[bool | None, str]) -> None:
    contract = parse(f"method m(x: int) returns (r: int) ensures {post}")
    assert search(contract, contract.method.ensures, {"x": 0, "r": 1}) == found


def test_conditions_are_searched_one_by_one() -> None:
    contract = parse("method m() returns (r: int) ensures forall k :: k * k >= 0 ensures exists k :: k > 600")
    assert search(contract, contract.method.ensures, {"r": 1}) == (None, "")
    contract = parse("method m() returns (r: int) ensures forall k :: k * k >= 0 ensures r == 2")
    assert search(contract, contract.method.ensures, {"r": 1}) == (False, "")
