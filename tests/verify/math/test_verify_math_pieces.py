"""Functions in pieces: every piece with its condition, in any order, and no other."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task
from assay.verify.math.equal.pieces import pieces

REFERENCE = r"\begin{cases} x - 9 & x \ge 9 \\ -x + 9 & x < 9 \end{cases}"


def table(*rows: str) -> str:
    return r"f(x) = \begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        (table(r"x - 9 & x \ge 9", "-x + 9 & x < 9"), True),
        (table(r"9 - x, & \text{if } x < 9", r"x - 9, & \text{if } x \geq 9"), True),
        (table(r"x - 9 & \mbox{for } x \geqslant 9", r"-(x-9) & \mbox{for } x<9"), True),
        (table(r"-x + 9 & x \ge 9", "x - 9 & x < 9"), False),
        (table(r"x - 9 & x \ge 9", "x + 9 & x < 9"), False),
        (table(r"x - 9 & x \ge 8", "-x + 9 & x < 8"), False),
        (table(r"x - 9 & x \ge 9"), False),
        (table(r"x - 9 & x \ge 9", "-x + 9 & x < 9", "0 & x = 9"), False),
        (table(r"x - 9 & x \ge 9", r"-x + 9 & \text{otherwise}"), False),
    ],
)
def test_a_function_in_pieces(answer: str, passed: bool) -> None:
    verify = build("verify", "math")
    for response in (rf"So $\boxed{{{answer}}}$.", f"<answer>${answer}$</answer>"):
        assert verify(Task("t", "Write |x - 9| in pieces.", REFERENCE, "math"), response).passed is passed


def test_otherwise_is_otherwise() -> None:
    reference = r"\begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}"
    task, verify = Task("t", "", reference, "math"), build("verify", "math")
    right, wrong = table(r"0 & \text{else}", "1 & x > 0"), table(r"1 & \text{else}", "0 & x > 0")
    assert verify(task, rf"\boxed{{{right}}}").passed is True
    assert verify(task, rf"\boxed{{{wrong}}}").passed is False


def test_what_is_no_table_of_pieces() -> None:
    assert pieces("x = 1") is None
    assert pieces(r"\begin{cases} x = 1 \\ y = 2 \end{cases}") is None
    assert pieces(r"\begin{cases}" + r"1 & x \\" * 13 + r"\end{cases}") is None
    assert pieces(r"\begin{cases}" * 10_000) is None
