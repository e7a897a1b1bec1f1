"""S150: the loop finds the tests that are missing, drops those that are wrong, and says to the model what happened."""

from __future__ import annotations

import numpy as np
import pytest
from sandbox.support import needs_sandbox
from suite_programs import ABOVE_ZERO, CRASHES, FIRST, LARGEST, LAST, PROBLEM, RIGHT, WRONG, Scripted

from assay import catalogue
from assay.audit.suite import auc, ceiling, diversity, mean_correlation, suite_rates, verifier_accuracy
from assay.audit.suite.trials import OURS, Cell, Problem, Test, Trial, trial
from assay.engines.writing import patched, pieces, shortened
from assay.errors import UsageError
from assay.papers.data.s150_codecontests_o import MOST, Plan, codecontests_o, revised
from assay.registry import build
from assay.sandbox import Limits, Outcome, Program
from assay.types import Task

GENERATOR = "import sys\nprint(len(sys.argv) - 1)\nprint(*sys.argv[1:])"


def opening(*commands: str, generator: str = GENERATOR) -> str:
    listed = "\n".join(commands)
    return (
        f"Sure.\n<constraints>1 <= n <= 5</constraints>\n<generator>\n```python\n{generator}\n```\n</generator>\n"
        f"<commands>\n{listed}\n</commands>"
    )


def test_it_is_registered_with_what_it_stands_for() -> None:
    row = catalogue.find("codecontests-o")
    assert row.id == "S150" and row.factory is codecontests_o and row.seams == ("tasks", "verify", "evaluate")
    with pytest.raises(UsageError):
        catalogue.make("S150")


def test_worked_example_of_the_rates() -> None:
    """9 of 10 right programs accepted: TPR 0.9; 17 of 20 wrong ones rejected: TNR 0.85."""
    right, wrong = np.ones((10, 3), dtype=bool), np.zeros((20, 3), dtype=bool)
    right[4, 1] = False
    wrong[:3] = True
    rates = suite_rates(right, wrong)
    assert rates.tpr is not None and rates.tnr is not None
    assert rates.tpr.value == pytest.approx(0.9) and rates.tnr.value == pytest.approx(0.85)
    assert rates.false_negatives == (4,) and rates.false_positives == (0, 1, 2)
    assert rates.balanced == pytest.approx(0.875)


@needs_sandbox
def test_a_killing_test_a_round_raises_the_detection_rate_until_nothing_is_left() -> None:
    # 3 is first, last and above zero, so that only a program that crashes on five numbers fails.
    killers = {FIRST: "1 2", LAST: "2 1", ABOVE_ZERO: "-3 -4", CRASHES: "1 1 1 1 1"}

    def kill_one(prompt: str) -> str:
        survivor = next(source for source in WRONG if source in prompt.partition("Wrong programs that pass")[2])
        return f"<add>\n{killers[survivor]}\n</add>"

    engine = Scripted(opening("3"), *[kill_one] * 9)
    made = codecontests_o(PROBLEM, RIGHT, WRONG, engine, rounds=9)
    detected = [one.rates.tnr.value for one in made.rounds if one.rates.tnr is not None]
    assert detected == [0, 0.25, 0.5, 0.75, 1], "one more program is rejected after every round"
    assert len(engine.asked) == 5 and made.rounds[-1].settled and made.kept is made.rounds[-1]
    assert [test.input for test in made.kept.tests] == [
        "1\n3\n",
        "2\n1 2\n",
        "2\n2 1\n",
        "2\n-3 -4\n",
        "5\n1 1 1 1 1\n",
    ]
    assert [test.output for test in made.kept.tests] == ["3\n", "2\n", "2\n", "-3\n", "1\n"]
    for number, prompt in enumerate(engine.asked[1:]):
        for source in WRONG[number:]:
            assert source in prompt, "the text of every surviving program is shown"
        for source in WRONG[:number]:
            assert source not in prompt, "and of no other"
        assert PROBLEM.statement in prompt and "1 <= n <= 5" in prompt
        assert GENERATOR in prompt and "## Commands\n\n3\n" in prompt
    # Each reply is drawn with a seed of its own.
    assert engine.seeds == [0, 1, 2, 3, 4]


@needs_sandbox
def test_a_test_that_refuses_a_right_program_is_removed_by_replacement() -> None:
    """An invalid input, on which right programs differ: one of them is a false negative until it is replaced."""
    empty = "n = int(input())\na = [int(x) for x in (input() if n else '').split()]\nprint(max(a) if a else 0)\n"
    lenient = Problem(PROBLEM.statement, empty)
    # Of no numbers LARGEST fails, and the truth prints 0; there is no command line for that, so a generator makes it.
    generator = (
        "import sys\na = sys.argv[1:]\nprint(len(a) if a != ['none'] else 0)\nprint(*([] if a == ['none'] else a))"
    )
    engine = Scripted(
        opening("1 2", "2 1", "-3 -4", "1 1 1 1 1", "none", generator=generator),
        "<replace>\nnone => 7\nzzz => 1\n</replace>",
    )
    made = codecontests_o(lenient, [empty, LARGEST], WRONG, engine)
    first, second = made.rounds
    assert first.rates.false_negatives == (1,) and first.rates.false_positives == ()
    prompt = engine.asked[1]
    told = prompt.partition("Right programs that fail")[2]
    assert (
        LARGEST in told and "Command: none" in told and "Expected:\n0" in told and "[it ended with exit code 1]" in told
    )
    assert empty not in told
    assert second.plan.commands == ("1 2", "2 1", "-3 -4", "1 1 1 1 1", "7")
    assert second.faults == ("'zzz => 1' replaces no command",)
    assert second.settled and made.kept is second


@needs_sandbox
def test_the_last_round_is_kept_or_the_best_even_if_the_last_is_worse() -> None:
    replies = (opening("1 2", "2 1"), "<replace>\n1 2 => 5\n2 1 => 6\n</replace>", "nothing to say")
    made = codecontests_o(PROBLEM, RIGHT, WRONG, Scripted(*replies), keep="best")
    assert [one.rates.balanced for one in made.rounds] == [0.75, 0.5, 0.5]
    assert made.kept is made.rounds[0]
    last = codecontests_o(PROBLEM, RIGHT, WRONG, Scripted(*replies))
    assert last.kept is last.rounds[2] and last.rounds[2].plan == last.rounds[1].plan


@needs_sandbox
def test_generators_that_fail_and_inputs_that_are_invalid_are_reported() -> None:
    broken = "import sys\nif sys.argv[1] == 'bad': raise KeyError('here')\nprint(sys.argv[1])\nprint(sys.argv[2])"
    engine = Scripted(
        opening("bad", "1 2", "x y", "'unclosed", "1 2", generator=broken),
        "<patch>\n<<<<<<< SEARCH\nraise KeyError('here')\n=======\nprint(1); print(4); sys.exit()\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\nnowhere\n=======\n>>>>>>> REPLACE\n</patch>",
        "",
    )
    made = codecontests_o(PROBLEM, RIGHT, WRONG, engine)
    first, second, _ = made.rounds
    assert [test.input for test in first.tests] == ["1\n2\n"]
    assert len(first.faults) == 3 and any("KeyError: 'here'" in fault for fault in first.faults)
    assert any("No closing quotation" in fault for fault in first.faults)
    assert any("the right program fails on it" in fault for fault in first.faults)
    assert all(fault in engine.asked[1] for fault in first.faults)
    # The first patch applies, and the command that failed makes a test; the second one does not apply.
    assert [test.input for test in second.tests] == ["1\n4\n", "1\n2\n"]
    assert "patch 2: its search text occurs 0 times" in second.faults


def test_nothing_from_the_model_is_no_suite() -> None:
    made = codecontests_o(PROBLEM, RIGHT, WRONG, Scripted("I cannot.", "", ""))
    assert made.kept.tests == () and not made.kept.settled and made.kept.faults == ("there is no generator",)


@needs_sandbox
def test_the_suite_is_a_task_for_the_verifier_of_programs() -> None:
    engine = Scripted(opening("1 2", "2 1", "-3 -4", "1 1 1 1 1"))
    made = codecontests_o(PROBLEM, RIGHT, WRONG, engine)
    task, verifier = Task("t", PROBLEM.statement, made.reference(), "code"), build("verify", "code")
    assert all(verifier(task, f"```python\n{source}```").passed is True for source in RIGHT)
    assert all(verifier(task, f"```python\n{source}```").passed is False for source in WRONG)


@needs_sandbox
def test_a_checker_judges_where_several_outputs_are_right() -> None:
    checker = {
        "source": "def ok(given, out, answer): return sum(map(int, out.split())) == int(given)",
        "function": "ok",
    }
    problem = Problem("Print two integers that add up to n.", "print(0, int(input()))", checker=checker)
    right, wrong = ["n = int(input())\nprint(n, 0)", "print(int(input()) - 1, 1)"], ["print(int(input()))\nprint(1)"]
    made = codecontests_o(problem, right, wrong, Scripted(opening("5", generator="import sys\nprint(sys.argv[1])")))
    assert made.kept.settled and made.reference()["checker"] == checker
    # Compared with the truth's output, right programs would be refused.
    plain = Problem(problem.statement, problem.truth)
    assert trial(plain, [Test("5\n", "0 5\n")], right, wrong).rates.false_negatives == (0, 1)


def test_what_the_sandbox_failed_at_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.audit.suite import trials as module
    from assay.sandbox import Outcome

    lost = Outcome("infrastructure", reason="the worker is gone")
    monkeypatch.setattr(
        module, "_run", lambda _, source, inputs: [lost if source == "lost" else Outcome("ok", b"1")] * len(inputs)
    )
    tests = [Test("a", "1"), Test("b", "1")]
    found = trial(PROBLEM, tests, ["good", "lost"], ["lost", "good"])
    assert found.untold == 2 and (found.rates.right, found.rates.wrong) == (1, 1)
    assert found.rates.false_negatives == () and found.rates.false_positives == (1,)
    assert found.detection.tolist() == [[False, False]]
    assert [output for output, _ in module.answers(Problem("", "lost"), ["a"])] == [None]


def test_all_programs_judge_and_some_are_shown() -> None:
    """Without tests every wrong program survives; which of them a prompt shows is drawn for each."""
    many = [f"print({n:02})" for n in range(30)]
    one, two = (codecontests_o(PROBLEM, many, many, Scripted("", "", ""), programs=4, seed=s) for s in (0, 0))
    assert one == two
    assert len(one.kept.trial.right) == len(one.kept.trial.wrong) == 30
    shown = [{source for source in many if source in made.prompt} for made in one.rounds]
    assert [len(some) for some in shown] == [0, 4, 4] and shown[1] != shown[2]
    every = codecontests_o(PROBLEM, many, many, Scripted("", "", ""), programs=None)
    assert all(source in every.rounds[1].prompt for source in many)
    for right, wrong, rounds in (([], WRONG, 1), (RIGHT, [], 1), (RIGHT, WRONG, 0)):
        with pytest.raises(UsageError, match="one round or more"):
            codecontests_o(PROBLEM, right, wrong, Scripted(""), rounds=rounds)


def test_patches_apply_where_their_text_stands_exactly_once() -> None:
    def block(old: str, new: str) -> str:
        return f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"

    source = "a = 1\nb = 2\nb = 2\n"
    assert patched(source, block("a = 1\n", "a = 3\nc = 4\n")) == ("a = 3\nc = 4\nb = 2\nb = 2\n", [])
    assert patched(source, block("b = 2\n", "")) == (source, ["patch 1: its search text occurs 2 times"])
    assert patched(source, block("b = 2\nb = 2\n", "")) == ("a = 1\n", [])
    assert patched("x", block("x\n", "y\n") + block("y\n", "z\n")) == ("z\n", [])
    assert (
        patched(source, block("", "y\n"))[1] and patched(source, "a -> b")[1] and patched(source, "  ") == (source, [])
    )
    assert pieces("<a>\n```py\nx\n```\n</a> <a>y</a>", "a") == ["x", "y"]
    assert len(shortened("x" * 10_000, 1000)) < 1050 and shortened("x" * 1000, 1000) == "x" * 1000


def test_a_plan_is_bounded() -> None:
    plan, faults = revised(Plan(), "<add>\n" + "\n".join(map(str, range(1000))) + "\n</add>")
    assert len(plan.commands) == MOST and len(faults) == 1
    assert revised(Plan(commands=("a", "b")), "<replace>\na =>\n</replace>")[0].commands == ("b",)
    assert revised(Plan(commands=("a", "b")), "<commands>\nc\n</commands><add>c\nd</add>")[0].commands == ("c", "d")
    most = ("<add>\n" + "\n".join(map(str, range(MOST))) + "\n</add>", MOST)
    assert MOST == 200 and len(revised(Plan(), most[0])[0].commands) == 200 and revised(Plan(), most[0])[1] == []
    plan, faults = revised(Plan(commands=("a", "b", "c")), "<replace>\nz => 1\nno arrow\nb => 2\n</replace>")
    assert plan.commands == ("a", "2", "c") and len(faults) == 2, "what comes after a fault is still read"
    both = (
        "<constraints>old</constraints><constraints> new </constraints><generator>x</generator><generator>y</generator>"
    )
    assert revised(Plan(), both)[0] == Plan("new", "y"), "the last of several"


def test_what_a_run_does_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds, all programs, ten of each kind shown, 1,000 characters of each and four times that of the right
    one."""
    from assay.papers.data import s150_codecontests_o as module

    many = [f"print({n})  {'#' * 1001}" for n in range(11)]
    long = Problem(PROBLEM.statement, "#" * 4001)
    cell = Cell(True, "")
    drawn: list[list[str]] = []

    def judged(problem: Problem, tests: list[Test], right: list[str], wrong: list[str]) -> Trial:
        drawn.append(right)
        return trial_of([[cell]] * len(right), [[cell]] * len(wrong))

    faults = ["the generator stopped", f"{OURS}: no machine"]
    monkeypatch.setattr(module, "suite", lambda problem, plan: ([Test("a", "1", "c")], faults))
    monkeypatch.setattr(module, "trial", judged)
    engine = Scripted("", "", "", "")
    made = codecontests_o(long, many, many, engine, keep="best")
    assert len(made.rounds) == 3 and engine.seeds == [0, 1, 2]
    assert len(made.kept.trial.right) == len(made.kept.trial.wrong) == 11
    assert "[1 characters]" in engine.asked[0] and engine.asked[0].count("#") > 4000
    assert made.kept is made.rounds[-1], "of equal ones the latest"
    # What the model did not write has no heading, and what failed here is not its fault.
    assert not any(f"## {what}" in engine.asked[1] for what in ("Constraints", "Generator", "Commands"))
    assert "the generator stopped" in engine.asked[1] and "no machine" not in engine.asked[1]
    assert drawn == [many] * 3, "all of them, as they were given"
    # A survivor is cut by the 12 or 13 characters that it has beyond 1,000; all are shown at their length elsewhere.
    assert engine.asked[1].count("characters] ...") == 10
    every = codecontests_o(long, many, many, Scripted("", ""), rounds=2, programs=11)
    assert every.rounds[1].prompt.count("characters] ...") == 11


def test_rates_of_nothing_and_ceilings_at_their_bounds() -> None:
    """Rates without programs count as 1; p and rho in [0, 1], one test or more."""
    right, none = suite_rates(np.ones((2, 1)), []), suite_rates([], np.ones((2, 1)))
    assert (right.balanced, none.balanced, suite_rates([], []).balanced) == (1, 0.5, 1)
    assert right.tnr is None and none.tpr is None and none.rejected == 0 and right.accurate and not none.accurate
    assert suite_rates(np.ones((0, 3)), np.ones((1, 2))).wrong == 1, "without programs there is no number of tests"
    for left, other in (([[1, 0]], [[1]]), ([[1]], [[1, 0]])):
        with pytest.raises(ValueError, match="ran"):
            suite_rates(left, other)
    assert diversity(np.ones((2, 0))) == (0, 0.0) and diversity([[1, 1], [1, 0]]) == (2, 1.0)
    # Verifier accuracy of one, then of two tests: 0 and 1; where a suite has three, the third does not count.
    assert auc([[[1, 0], [0, 1]], [[1, 0, 0], [0, 1, 0]]]) == 0.5
    for p, rho, n, expected in (
        (0.0, 0.5, None, 0.0),
        (1.0, 0.5, None, 1.0),
        (0.36, 0.5, None, 1 - 0.64**2),
        (0.3, 1.0, None, 0.3),
        (0.3, 0.2, 1, 0.3),
        (0.5, 0.0, 3, 0.875),
        (0.36, 1 / 3, 2, 1 - 0.64**1.5),
    ):
        assert ceiling(p, rho, n) == pytest.approx(expected)
    for p, rho, n in ((-0.1, 0.5, 1), (1.1, 0.5, 1), (0.5, -0.1, 1), (0.5, 1.1, 1), (0.5, 0.5, 0.5)):
        with pytest.raises(ValueError, match="ceiling needs"):
            ceiling(p, rho, n)
    # Two tests of which each rejects the other's program; a third that rejects both tells nothing apart.
    assert mean_correlation([[1, 0, 1], [0, 1, 1]]) == pytest.approx(-1)
    assert np.isnan(mean_correlation([])) and np.isnan(mean_correlation([[1, 1], [0, 1]]))
    for bad in ([1, 0], [[[1]]]):
        with pytest.raises(ValueError, match="table"):
            diversity(bad)
    with pytest.raises(ValueError, match="one problem"):
        verifier_accuracy([])
    with pytest.raises(ValueError, match="two tests"):
        auc([])


def trial_of(right: list[list[Cell]], wrong: list[list[Cell]]) -> Trial:
    passes = [[[cell.passed for cell in row] for row in side] for side in (right, wrong)]
    return Trial(tuple(map(tuple, right)), tuple(map(tuple, wrong)), suite_rates(*passes), 0)


class Recorder:
    """A sandbox that keeps what it was asked to run, and ends in turn as it is told to."""

    def __init__(self, *ends: Outcome):
        self.ends, self.limits = list(ends), list[Limits]()

    def run(self, program: Program, limits: Limits) -> Outcome:
        self.limits.append(limits)
        return self.ends.pop(0)


def test_a_generator_has_twenty_seconds_and_its_faults_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay import sandbox
    from assay.papers.data import s150_codecontests_o as module

    ends = (
        Outcome("ok", b"in"),
        Outcome("error", stderr=b"Traceback\nValueError: " + b"x" * 600, reason="it ended"),
        Outcome("infrastructure", reason="the worker is gone " * 40),
        Outcome("error", stderr=b"Traceback\n  File\nKeyError: 1\n", reason="it ended"),
        Outcome("ok", b"in"),
        Outcome("ok", b"other"),
        Outcome("ok", b"lost"),
    )
    box = Recorder(*ends)
    told = {"in": ("7", ""), "other": (None, "fails " * 100), "lost": (None, f"{OURS}: no machine")}
    monkeypatch.setattr(sandbox, "sandbox", lambda: box)
    monkeypatch.setattr(module, "answers", lambda problem, inputs: [told[text] for text in inputs])
    tests, faults = module.suite(PROBLEM, Plan("", "x", ("a", "b", "c", "'", "d", "e", "f", "g")))
    assert tests == [Test("in", "7", "a")], "of equal inputs the first command"
    assert [(one.cpu_seconds, one.wall_seconds) for one in box.limits] == [(20, 60)] * 7
    long, ours, unread, short, wrong, lost = faults
    assert long.startswith("command 'b': the generator failed: it ended; ValueError: xx")
    assert len(long) == len(ours) == len(wrong) == 500 and ours.startswith(f"{OURS}: command 'c': the worker")
    assert unread == 'command "\'" cannot be read: No closing quotation'
    assert short == "command 'd': the generator failed: it ended; KeyError: 1"
    assert wrong.startswith("command 'f': fails") and lost == f"{OURS}: no machine"
