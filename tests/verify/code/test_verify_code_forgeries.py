"""Nothing but a right program passes, and nothing a program does gets it an abstention."""

from __future__ import annotations

import pytest
from forgeries import ABSTENTIONS, FORGERIES, NAMES, OBJECTS, Forgery
from sandbox.support import needs_sandbox

from assay.types import Task, Verdict
from assay.verify.code.verifier import Code

pytestmark = needs_sandbox
VERIFIER = Code(seconds=1, memory=128)


def judge(row: Forgery, source: str) -> Verdict:
    return VERIFIER(Task("t", "", row.reference, "code"), f"```python\n{source}\n```")


SLOW = ("slowly", "processor time, for calls", "processor time, in C's way", "a signal of a timer")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name.endswith(SLOW) else name for name in FORGERIES]
)
def test_forgeries_earn_nothing(name: str) -> None:
    row = FORGERIES[name]
    forged = judge(row, row.forged)
    assert forged.passed is (None if row.broken else False), forged
    assert forged.score == 0
    if row.right:
        right = judge(row, row.right)
        assert right.passed is True, right


def test_there_are_enough_of_them() -> None:
    assert len(OBJECTS) >= 30 and len(NAMES) >= 25 and len(ABSTENTIONS) >= 20
