"""S063: the measures on the numbers of the paper's definitions, and the suite that two analyses make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sandbox.support import needs_sandbox
from suite_programs import ABOVE_ZERO, CRASHES, LARGEST, LAST, PROBLEM, RIGHT, WRONG, Scripted

from assay import catalogue
from assay.audit.suite import auc, ceiling, diversity, suite_rates, verifier_accuracy
from assay.audit.suite.trials import quality
from assay.errors import UsageError
from assay.papers.data.s063_saga import saga
from assay.registry import build
from assay.sandbox import Call, CallOutcome, Limits, Outcome, Program
from assay.types import Task

VALID = (
    "def validate(text):\n    n, a = text.split('\\n')[:2]\n    a = [int(x) for x in a.split()]\n"
    "    return int(n) == len(a) and 1 <= len(a) <= 5 and all(abs(x) <= 9 for x in a)"
)


def written(text: str, why: str = "an edge", validator: str = VALID) -> str:
    return (
        f"<test>\n<why>{why}</why>\n<generator>\n```python\ndef generate():\n    return {text!r}\n```\n</generator>\n"
        f"<validator>\n{validator}\n</validator>\n</test>\n"
    )


def test_it_is_registered_with_what_it_stands_for() -> None:
    row = catalogue.find("saga")
    assert row.id == "S063" and row.factory is saga and row.seams == ("tasks", "verify", "evaluate")


def test_worked_example_of_detection() -> None:
    """W x T detection [[1,0,0],[1,1,0],[0,0,0],[1,0,1]]: DR 0.75, VAcc 0, DEPC 3, ratio 1."""
    found = quality([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]])
    assert (found.detection, found.accurate, found.patterns, found.ratio) == (0.75, False, 3, 1.0)
    assert found.single == pytest.approx(5 / 12)
    rates = suite_rates(np.ones((2, 3)), 1 - np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]]))
    assert rates.tnr is not None and rates.tnr.value == 0.75 and verifier_accuracy([rates]).value == 0


def test_a_clone_of_a_test_lowers_the_ratio_alone() -> None:
    found = quality([[1, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 1]])
    assert (found.detection, found.patterns, found.ratio) == (0.75, 3, 0.75)


def test_worked_example_of_the_ceiling() -> None:
    """p = 0.3, rho = 0.2: n = 10 has n_eff 3.5714 and reaches 0.7202, n = 100 0.8200; no n passes 0.83193."""
    assert round(10 / (1 + 9 * 0.2), 4) == 3.5714
    assert ceiling(0.3, 0.2, 10) == pytest.approx(0.7202, abs=1e-4)
    assert ceiling(0.3, 0.2, 100) == pytest.approx(0.8200, abs=1e-4)
    assert ceiling(0.3, 0.2) == pytest.approx(0.83193, abs=1e-5)


def test_the_bound_is_that_of_the_tests_at_hand() -> None:
    table = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0]])
    found = quality(table)
    pairs = [np.corrcoef(table[:, i], table[:, j])[0, 1] for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found.correlation == pytest.approx(np.mean(pairs)) and found.correlation < 0
    # Tests that complement each other are bounded as independent ones are.
    assert found.bound == pytest.approx(1 - (1 - 0.5) ** 3) and found.limit == 1
    alike = quality([[1, 1, 1], [0, 0, 0], [1, 1, 1]])
    assert alike.correlation == pytest.approx(1) and alike.bound == pytest.approx(2 / 3) == pytest.approx(alike.limit)
    assert alike.detection == pytest.approx(2 / 3), "tests that are all alike do no more than one"
    assert math.isnan(quality([[1], [0]]).bound) and quality([[1], [1]]).accurate
    for empty in ([], [[]], [1, 0]):
        with pytest.raises(ValueError, match="table"):
            quality(empty)
    assert auc([[[1, 0, 0], [0, 1, 0]]]) == pytest.approx(0.75) and diversity([[0, 0], [0, 0]]) == (0, 0.0)


@needs_sandbox
def test_the_suite_is_the_union_of_both_analyses() -> None:
    engine = Scripted(
        written("2\n1 2\n", "the largest is not the first") + written("2\n2 1\n", "nor the last"),
        written("2\n-3 -4\n", "nothing is above zero") + written("2\n2 1\n", "again"),
        written("5\n1 1 1 1 1\n", "as many as there may be"),
    )
    made = saga(PROBLEM, RIGHT[:2], [(ABOVE_ZERO, LARGEST), (CRASHES, LARGEST)], engine)
    assert [test.input for test in made.tests] == ["2\n1 2\n", "2\n2 1\n", "2\n-3 -4\n", "5\n1 1 1 1 1\n"]
    assert [test.output for test in made.tests] == ["2\n", "2\n", "-3\n", "1\n"]
    assert [one.source for one in made.written] == ["solutions", "solutions", "pair", "pair"]
    assert made.tests[0].why == "the largest is not the first" and made.dropped == ()
    assert engine.seeds == [0, 2, 4]
    first, second, third = engine.asked
    assert "Program 1:" in first and "Program 2:" in first and "Wrong:" in second
    assert RIGHT[0] in first and RIGHT[1] in first and ABOVE_ZERO not in first
    assert ABOVE_ZERO in second and LARGEST in second and CRASHES not in second and CRASHES in third
    assert all(PROBLEM.statement in prompt for prompt in engine.asked) and len(set(engine.seeds)) == 3
    measured = made.measure(WRONG)
    # FIRST fails the first test, LAST the second, ABOVE_ZERO the third, CRASHES the fourth.
    assert (measured.detection, measured.accurate, measured.patterns, measured.ratio) == (1, True, 4, 1)
    assert measured.single == pytest.approx(5 / 16), "FIRST and LAST: -3 is the first and not the last of -3, -4"
    task, verifier = Task("t", "", made.reference(), "code"), build("verify", "code")
    assert (
        verifier(task, f"```python\n{RIGHT[2]}```").passed and verifier(task, f"```python\n{LAST}```").passed is False
    )


@needs_sandbox
def test_what_fails_is_sent_back_once_and_then_dropped() -> None:
    raising = written("x").replace("return 'x'", "raise OSError('no luck')")
    refused = written("6\n1 1 1 1 1 1\n", "too many")
    crashing = written("2\na b\n", "no numbers", "def validate(text): return True")
    engine = Scripted(
        written("1\n4\n") + raising + refused + crashing,
        written("1\n5\n") + refused,
    )
    made = saga(PROBLEM, RIGHT[:1], [], engine)
    assert [test.input for test in made.tests] == ["1\n4\n", "1\n5\n"]
    assert len(engine.asked) == 2
    correction = engine.asked[1].partition("could not be used")[2]
    for said in ("OSError: no luck", "its own validator refuses the input", "the right program fails on it"):
        assert said in correction
    assert "return '1\\n4\\n'" not in correction, "what was good is not asked for again"
    # One came back wrong again, one did not come back.
    assert len(made.dropped) == 2 and made.dropped[0].reason == "its own validator refuses the input"


@needs_sandbox
def test_tests_that_are_none() -> None:
    no_text = written("1").replace("return '1'", "return 7")
    engine = Scripted(no_text + "<test><why>empty</why></test>" + "<test>", "Sorry.")
    made = saga(PROBLEM, RIGHT[:1], [], engine)
    assert made.tests == () and [one.reason for one in made.dropped] == [
        "generate() returned a int, not a text",
        "there is no generate()",
    ]
    assert saga(PROBLEM, RIGHT[:1], [], Scripted("nothing")).dropped == ()
    with pytest.raises(UsageError, match="give some"):
        saga(PROBLEM, [], [], Scripted())


def test_a_failing_sandbox_is_not_the_models_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.sandbox import CallOutcome, Outcome, Sandbox

    lost = Outcome("infrastructure", reason="the worker is gone")
    monkeypatch.setattr(Sandbox, "call", lambda *_: CallOutcome((), lost))
    engine = Scripted(written("1\n4\n"))
    made = saga(PROBLEM, RIGHT[:1], [], engine)
    assert made.tests == () and len(engine.asked) == 1, "nothing is sent back"
    assert [one.reason for one in made.dropped] == ["the sandbox failed: the worker is gone"]


class Recorder:
    """A sandbox that keeps what it was asked to run, and the limits; generators give a line, validators agree."""

    def __init__(self) -> None:
        self.limits: list[Limits] = []

    def call(self, program: Program, function: str, cases: object, limits: Limits) -> CallOutcome:
        self.limits.append(limits)
        value = "1\n4\n" if function == "generate" else True
        return CallOutcome((Call(True, value),), Outcome("ok"))


def test_what_a_test_may_use_and_how_much_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds of a processor, three times that of waiting; 4,000 characters of a program."""
    from assay import sandbox
    from assay.papers.data import s063_saga as module

    box = Recorder()
    monkeypatch.setattr(sandbox, "sandbox", lambda: box)
    monkeypatch.setattr(module, "answers", lambda problem, inputs: [("4\n", "")] * len(inputs))
    engine = Scripted(written("ignored"))
    made = saga(PROBLEM, ["#" * 4000 + "\n", "x = 1\n" * 600], [], engine)
    assert [test.input for test in made.tests] == ["1\n4\n"]
    assert [(one.cpu_seconds, one.wall_seconds) for one in box.limits] == [(10, 30)] * 2
    assert "[1 characters]" in engine.asked[0] and "x = 1\n" * 600 in engine.asked[0]


@needs_sandbox
def test_corrections_of_each_analysis_have_seeds_and_reasons_of_their_own() -> None:
    """A generator that is no program is told by the last line of what it said, in 500 characters at most."""
    early = written("x").replace("def generate():", "raise ValueError('early')\ndef generate():")
    long = written("x").replace("return 'x'", "raise OSError('no luck ' * 100)")
    flood = written("x").replace("def generate():", "raise ValueError('flood ' * 200)\ndef generate():")
    engine = Scripted(early + long + flood, "", early, "")
    made = saga(PROBLEM, RIGHT[:1], [(ABOVE_ZERO, LARGEST)], engine, seed=7)
    assert engine.seeds == [7, 8, 9, 10] and len(made.dropped) == 4
    first, second, third, fourth = (one.reason for one in made.dropped)
    assert first == fourth and first.startswith("generate() gave nothing: ")
    assert first.endswith("; ValueError: early") and first.count(";") == 1
    assert second.startswith("generate() raised OSError: no luck") and len(second) == len(third) == 500
