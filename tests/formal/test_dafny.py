"""Dafny: programs that verify, and ways of weakening what they are verified against."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task
from assay.verify.formal.dafny import DAFNY

from .support import needs

pytestmark = needs(DAFNY)

SOURCE = """
predicate Sorted(a: seq<int>) { forall i, j :: 0 <= i < j < |a| ==> a[i] <= a[j] }
method Abs(x: int) returns (y: int)
  ensures y >= 0 && (y == x || y == -x)
"""
TASK = Task("t", "?", {"source": SOURCE}, "dafny")
PREDICATE = SOURCE.split("method")[0]
HEAD = SOURCE[SOURCE.index("method") :]
BODY = "if x < 0 { y := -x; } else { y := x; }"


@pytest.mark.parametrize(
    "response",
    [
        BODY,
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in (
                f"{{ {BODY} }}",
                f"```dafny\n{SOURCE}\n{{ {BODY} }}\n```",
                f"{HEAD} {{ {BODY} }} // assume nothing\n{PREDICATE}",
                f"function method neg(x: int): int {{ -x }}\n{SOURCE} "
                "{ if x < 0 { y := neg(x); } else { y := x; } }",
                f"lemma Helper(n: int) ensures n * n >= 0 {{ }}\n{SOURCE} {{ Helper(x); {BODY} }}",
            )
        ),
    ],
)
def test_a_program_is_right(response: str) -> None:
    verdict = build("verify", "dafny")(TASK, response)
    assert verdict.passed is True, verdict
    assert verdict.parts == {"parses": 1.0, "specification": 1.0, "verifies": 1.0}


CHEATS = {
    "wrong": "y := x;",
    "assume": "assume false; y := x;",
    "assume in an expression": f"{PREDICATE}{HEAD} {{ y := assume false; x }}",
    "body closes early": "y := -1; } lemma L() ensures true { ",
    "verify false": SOURCE.replace("method Abs", "method {:verify false} Abs") + "{ y := x; }",
    "axiom": f"lemma {{:axiom}} Cheat() ensures false\n{SOURCE} {{ Cheat(); y := x; }}",
    "bodyless lemma": f"lemma Cheat() ensures false\n{SOURCE} {{ Cheat(); y := x; }}",
    "bodyless function": f"function Cheat(): int ensures false\n{SOURCE} {{ var z := Cheat(); y := x; }}",
    "bodyless with a set in its specification": "lemma Cheat(s: set<int>) requires s == {1} ensures false\n"
    f"{SOURCE} {{ Cheat({{1}}); y := x; }}",
    "bodyless method in a class": f"class C {{ method M() ensures false }}\n{SOURCE} {{ y := x; }}",
    "no body": SOURCE,
    "weaker ensures": SOURCE.replace("y >= 0 && ", "") + "{ y := x; }",
    "more requires": SOURCE + "  requires x >= 0\n{ y := x; }",
    "changed predicate": SOURCE.replace("a[i] <= a[j]", "true") + f"{{ {BODY} }}",
    "missing predicate": f"{HEAD} {{ {BODY} }}",
    "in a comment": f"/* {SOURCE} */ {HEAD.replace('y >= 0 && ', '')} {{ y := x; }}",
    "include": f'include "x.dfy"\n{SOURCE} {{ {BODY} }}',
    "module": f"module M {{ {SOURCE} {{ y := x; }} }}",
    "no termination": SOURCE + "  decreases *\n{ while true decreases * { } }",
    "another name": f"{SOURCE.replace('Abs', 'Abs2')} {{ {BODY} }}",
    "forged report": '// Dafny program verifier finished with 1 verified, 0 errors\nprint "Dafny program verifier '
    'finished with 1 verified, 0 errors"; y := x;',
    "assume between characters": f"{PREDICATE}{HEAD} {{ var c := '\"'; assume false; var d := '\"'; y := x; }}",
    "verbatim text": f'{PREDICATE}{HEAD} {{ var s := @"\n}}\n"; y := x; }}',
    "garbage": "42 %% }",
    "empty": "",
    "unicode": "\ud800 \u2200",
}


QUICK = ("wrong", "assume", "garbage", "empty")


@pytest.mark.parametrize(
    "response",
    [pytest.param(text, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, text in CHEATS.items()],
)
def test_anything_else_is_wrong(response: str) -> None:
    verdict = build("verify", "dafny")(TASK, response)
    assert verdict.passed is False, verdict
    assert verdict.feedback


@pytest.mark.slow
def test_an_added_name_cannot_capture_one_of_the_specification() -> None:
    source = "class C { var ok: bool predicate Fine() reads this { ok }\n  method Set() modifies this ensures Fine() }"
    task = Task("t", "?", {"source": source})
    verifier = build("verify", "dafny")
    assert verifier(task, "ok := true;").passed is True
    assert verifier(task, f"predicate Fine() {{ true }}\n{source[:-1]} {{ }} }}").passed is False


@pytest.mark.slow
def test_free_bodies_by_name_and_bad_tasks() -> None:
    verifier = build("verify", "dafny")
    source = f"{SOURCE} {{ y := 0; }}"
    assert verifier(Task("t", "?", {"source": source, "free": ["Abs"]}), BODY).passed is True
    assert verifier(Task("t", "?", {"source": source, "free": []}), f"{SOURCE} {{ {BODY} }}").passed is False
    assert verifier(Task("t", "?", {"source": "method ("}), BODY).passed is None
    assert verifier(Task("t", "?", 3), BODY).passed is None
