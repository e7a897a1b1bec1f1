"""What needs no tool: reading sources and reports, and what is said where a tool is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task
from assay.verify.formal import coq, dafny, lean, verus
from assay.verify.formal.circuit import escape
from assay.verify.formal.simulate import agrees
from assay.verify.formal.tool import Tool, balanced, blank, program_of

from .support import needs

ALL = [coq.SYNTAX, dafny.SYNTAX, lean.SYNTAX]


def test_a_missing_tool_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name, word in (("coq", "coqc"), ("dafny", "dafny"), ("verilog", "yosys"), ("lean", "lean"), ("verus", "verus")):
        with pytest.raises(UsageError, match=f"verifier '{name}': {word} is not installed: "):
            build("verify", name)


def test_comments_and_texts_are_blanked() -> None:
    assert blank('a (* b (* c *) d *) "x(*y" e', coq.SYNTAX) == 'a                   "    " e'
    assert blank('a // b "c\nd /* e /* f */ g */ h "i\\"j" k', dafny.SYNTAX).split() == ["a", "d", "h", '"', '"', "k"]
    assert "sorry" not in blank("-- sorry\n/- sorry /- sorry -/ sorry -/ x", lean.SYNTAX)
    assert blank('x /* " */ assume', dafny.SYNTAX).endswith("assume")


@given(st.text(alphabet='ab"\\\n/*(){}-', max_size=60), st.sampled_from(ALL))
def test_blanking_keeps_length_and_lines(source: str, syntax: object) -> None:
    out = blank(source, syntax)  # type: ignore[arg-type]
    assert len(out) == len(source)
    assert [i for i, c in enumerate(out) if c == "\n"] == [i for i, c in enumerate(source) if c == "\n"]
    assert all(a in (b, " ") for a, b in zip(out, source, strict=True))


def test_braces() -> None:
    assert balanced("{ { } }") and balanced("")
    assert not balanced("} {") and not balanced("{")


@given(st.text(max_size=200))
def test_reading_never_fails(text: str) -> None:
    program_of(text, ("coq",))
    escape(text, text)
    verus.body_of(text)
    coq.unproved(text)
    lean.unproved(text, ())


def test_the_last_marked_block_is_the_program() -> None:
    text = "```coq\na\n```\n```python\nb\n```\n```coq\nc\n```"
    assert program_of(text, ("coq",)) == "c\n"
    assert program_of("```\na\n```", ("coq",)) == "a\n"
    assert program_of("plain", ("coq",)) == "plain"
    assert program_of("```python\nb\n```", ("coq",)) is None


def test_outputs_are_compared_bit_by_bit() -> None:
    assert agrees("0101", 5, 4) and agrees("1111", -1, 4) and agrees("0101", "01x1", 4)
    assert not agrees("x101", 5, 4) and not agrees("101", 5, 4) and not agrees("0101", "0111", 4)


def test_reports_of_lean() -> None:
    assert lean.unproved("'assay_checked' does not depend on any axioms\n", ()) == ""
    assert lean.unproved("'assay_checked' depends on axioms: [propext, Quot.sound]", lean.STANDARD) == ""
    assert lean.unproved("'assay_checked' depends on axioms: [propext,\n sorryAx]", lean.STANDARD) == "sorryAx"
    assert lean.unproved("", lean.STANDARD) != ""


@pytest.mark.parametrize(
    "body",
    ["assume(false);", "} fn g() {", "#[verifier::external_body]", "admit();", "x /* ", 'let s = "', "unsafe { }", ""],
)
def test_bodies_that_verus_is_not_shown(body: str) -> None:
    assert verus.body_of(body)[1]


def test_bodies_that_verus_is_shown() -> None:
    assert verus.body_of("```rust\nif x < 0 { -x } else { x } // assume nothing\n```")[1] == ""


@needs(lean.LEAN)
def test_lean_proves() -> None:
    task = Task("t", "?", {"name": "t", "statement": "forall n : Nat, n + 0 = n"})
    verifier = build("verify", "lean")
    assert verifier(task, "by intro n; rfl").passed is True
    for wrong in (
        "by sorry",
        "axiom m : False\ntheorem t : forall n : Nat, n + 0 = n := m.elim",
        "theorem t : True := trivial",
    ):
        assert verifier(task, wrong).passed is False


@needs(verus.VERUS)
def test_verus_verifies() -> None:
    source = (
        "use vstd::prelude::*;\nverus! {\nfn f(x: u8) -> (y: u16) ensures y == x + 1 { {{body}} }\nfn main() {}\n}\n"
    )
    verifier = build("verify", "verus")
    assert verifier(Task("t", "?", {"source": source}), "x as u16 + 1").passed is True
    assert verifier(Task("t", "?", {"source": source}), "x as u16").passed is False


def test_tools_in_folders_of_their_own_are_found() -> None:
    assert Tool("sh", "").missing == ""
