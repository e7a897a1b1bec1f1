"""S063: tests drawn from what right programs guard against, and from how wrong ones were mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.audit.suite.trials import OURS, Problem, Quality, Test, answers, quality, reference, trial
from assay.catalogue import paper
from assay.engines.base import Engine, Sampling
from assay.engines.writing import WRITING, ask, listed, pieces, shortened
from assay.errors import UsageError

CASE_SECONDS = 10.0
"""Processor seconds of one generator or validator."""


@dataclass(frozen=True, slots=True)
class Written:
    """A test as a model writes it: a function ``generate()`` that returns an input, a function ``validate(text)`` that
    says whether an input keeps to the constraints, and why the test is there."""

    generator: str
    validator: str
    why: str
    source: Literal["solutions", "pair"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A test that could not be used, and the reason."""

    written: Written
    reason: str


@dataclass(frozen=True, slots=True)
class Saga:
    """A suite and what became of the tests that are not in it.

    Attributes:
        problem: whose tests these are.
        tests: those of both analyses, without repeated inputs; ``written`` is where each comes from.
        dropped: tests that failed after they were corrected, or could not be run.
    """

    problem: Problem
    tests: tuple[Test, ...]
    written: tuple[Written, ...]
    dropped: tuple[Dropped, ...]

    def measure(self, wrong: Sequence[str]) -> Quality:
        """Return detection rate, verifier accuracy, diversity and ceiling on ``wrong`` programs, in the sandbox.

        Raises:
            ValueError: no tests, or no program that could be told.
        """
        return quality(trial(self.problem, self.tests, [], wrong).detection)

    def reference(self) -> dict[str, Any]:
        """The suite as the reference of a task of the kind ``code``."""
        return reference(self.problem, self.tests)


@paper(
    "S063",
    "SAGA",
    arxiv="2507.06920",
    seams=["tasks", "verify", "evaluate"],
    essentials={
        "tests from an analysis of right programs, and from wrong ones beside their mended form": (
            "test_the_suite_is_the_union_of_both_analyses"
        ),
        "a test is a generator, a validator and a reason; the right program gives the output": (
            "test_what_fails_is_sent_back_once_and_then_dropped"
        ),
        "detection rate, verifier accuracy, distinct error patterns and diversity ratio": (
            "test_worked_example_of_detection"
        ),
        "AUC@N: verifier accuracy over the number of tests": (
            "audit/test_suite_quality.py::test_area_under_verifier_accuracy"
        ),
        "the ceiling that correlated tests have": "test_worked_example_of_the_ceiling",
        "the suite judges programs: it is the verifier of a task": "test_the_suite_is_the_union_of_both_analyses",
    },
    choices=(
        "AUC@N begins at k_min = 1 test, which the paper, that divides by N - k_min, does not say",
        "error patterns are over the wrong programs of a problem, and the correlation of tests is Pearson's",
        "right programs are read together, where the prompt that the authors released shows one",
        "every test has its own validator, where a reply of the authors' has one for all of its tests",
        "what fails is sent back once; the words of prompts; 4,000 characters of a program are shown",
    ),
)
def saga(
    problem: Problem,
    right: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    engine: Engine,
    shown: int = 4000,
    sampling: Sampling = WRITING,
    seed: int = 0,
) -> Saga:
    """Have a model analyse known programs and write tests; keep those whose input is valid and has an output.

    One reply comes from the right programs together: what constraints, defences and edge cases they handle. One more
    comes from each pair of a wrong program and the same author's mended one: which constraint, guard or step made the
    difference. Every test is run: ``generate()``, then ``validate`` on its input, then ``problem.truth``. What fails is
    sent back once with the reason; what fails again is dropped. The suite is the union.

    How good it is, is for :meth:`Saga.measure`: the share of wrong programs it rejects (DR), whether it rejects all
    (VAcc), how many different sets of programs its tests reject (DEPC), and the ceiling that correlated tests have; and
    for :func:`assay.audit.suite.auc` and :func:`assay.audit.suite.verifier_accuracy` over problems.

    Args:
        problem: with a right program, whose outputs are expected.
        right: right programs to be analysed; the paper takes ten.
        pairs: (wrong, mended) programs; the paper takes an author's right one and the wrong one just before it.
        engine: what writes; anything that follows :class:`assay.engines.base.Engine`.
        shown: characters of a program in a prompt.
        sampling: of the model's replies.
        seed: of the replies.

    Raises:
        UsageError: neither right programs nor pairs.
        SandboxUnavailable: programs cannot be run on this machine.

    Source: "Rethinking Verification for LLM Code Generation" (arXiv 2507.06920), sections 2 and 3, and its authors'
    prompts.
    """
    if not right and not pairs:
        raise UsageError("SAGA analyses right programs, or wrong ones with their mended forms; give some")
    prompts: list[tuple[Literal["solutions", "pair"], str]] = []
    if right:
        programs = [f"Program {n}:\n{shortened(source, shown)}" for n, source in enumerate(right, 1)]
        prompts.append(("solutions", _ask_about(problem, listed("Right programs", programs) + _SOLUTIONS)))
    for bad, mended in pairs:
        both = [f"Wrong:\n{shortened(bad, shown)}", f"Mended by its author:\n{shortened(mended, shown)}"]
        prompts.append(("pair", _ask_about(problem, listed("A program before and after", both) + _PAIR)))
    tests: dict[str, tuple[Test, Written]] = {}
    dropped: list[Dropped] = []
    for number, (source, prompt) in enumerate(prompts):
        good, failed = _try(problem, _read(ask(engine, prompt, sampling, seed + 2 * number), source))
        theirs = [one for one in failed if not one.reason.startswith(OURS)]
        dropped += [one for one in failed if one.reason.startswith(OURS)]
        if theirs:
            again = ask(engine, prompt + _correction(theirs, shown), sampling, seed + 2 * number + 1)
            repaired, failed = _try(problem, _read(again, source))
            good += repaired
            # Those for which nothing came back are dropped as they were.
            dropped += failed + theirs[len(repaired) + len(failed) :]
        for test, written in good:
            tests.setdefault(test.input, (test, written))
    return Saga(problem, tuple(t for t, _ in tests.values()), tuple(w for _, w in tests.values()), tuple(dropped))


def _read(reply: str, source: Literal["solutions", "pair"]) -> list[Written]:
    found = []
    for test in pieces(reply, "test"):
        parts = {tag: (pieces(test, tag) or [""])[0] for tag in ("generator", "validator", "why")}
        found.append(Written(parts["generator"], parts["validator"], " ".join(parts["why"].split()), source))
    return found


def _try(problem: Problem, written: Sequence[Written]) -> tuple[list[tuple[Test, Written]], list[Dropped]]:
    """Run generators and validators, then the right program on the inputs that are valid."""
    inputs: list[tuple[str, Written]] = []
    dropped: list[Dropped] = []
    for one in written:
        text, reason = _input(one)
        if text is None:
            dropped.append(Dropped(one, reason))
        else:
            inputs.append((text, one))
    good = []
    for (text, one), (output, why) in zip(inputs, answers(problem, [text for text, _ in inputs]), strict=True):
        if output is None:
            dropped.append(Dropped(one, why))
        else:
            good.append((Test(text, output, one.why), one))
    return good, dropped


def _input(one: Written) -> tuple[str | None, str]:
    """Return the input that a test's generator makes, or ``None`` and why there is none that is valid."""
    text, reason = _call(one.generator, "generate", ())
    if reason:
        return None, reason
    if not isinstance(text, str):
        return None, f"generate() returned a {type(text).__name__}, not a text"
    valid, reason = _call(one.validator, "validate", (text,))
    if reason:
        return None, reason
    return (text, "") if valid is True else (None, "its own validator refuses the input")


def _call(source: str, function: str, args: tuple[Any, ...]) -> tuple[Any, str]:
    """Return a function's value and no reason, or why there is no value."""
    from assay.sandbox import Limits, Program, sandbox

    if not source.strip():
        return None, f"there is no {function}()"
    done = sandbox().call(Program(source), function, [(args, {})], Limits(CASE_SECONDS, 3 * CASE_SECONDS))
    if done.outcome.failed_here:
        return None, f"{OURS}: {done.outcome.reason}"
    if not done.calls:
        last = done.outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return None, f"{function}() gave nothing: {'; '.join([done.outcome.reason, *last])}"[:500]
    call = done.calls[0]
    return (call.value, "") if call.returned else (None, f"{function}() raised {call.exception}"[:500])


_TASK = """You write tests for a programming problem. Programs read standard input and write standard output.

## Problem

{statement}

"""
_SOLUTIONS = """Study what these programs do about the constraints of the problem, what they defend themselves against,
and which cases they treat apart. For each such point write a test that a program without it would fail.

"""
_PAIR = """Find what made the difference: a constraint read wrongly, a guard that was missing, or a step whose error
carries on. Write tests that the first program fails and the second passes, and that others with the same flaw fail.

"""
_FORMAT = """## Reply

For each test:

<test>
<why>what it is for</why>
<generator>
a Python function generate() that returns the whole input as a text
</generator>
<validator>
a Python function validate(text) that returns True if the input keeps to every constraint, else False
</validator>
</test>
"""


def _ask_about(problem: Problem, middle: str) -> str:
    return _TASK.format(statement=problem.statement.strip()) + middle + _FORMAT


def _correction(failed: Sequence[Dropped], shown: int) -> str:
    entries = [
        f"<why>{one.written.why}</why>\n<generator>\n{shortened(one.written.generator, shown)}\n</generator>\n"
        f"<validator>\n{shortened(one.written.validator, shown)}\n</validator>\nReason: {one.reason}"
        for one in failed
    ]
    return "\n" + listed("These tests of yours could not be used; write them again, corrected", entries)
