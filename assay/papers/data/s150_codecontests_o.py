"""S150: tests for a programming problem, rewritten until known right and wrong programs are told apart."""

from __future__ import annotations

import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.audit.suite.rates import SuiteRates
from assay.audit.suite.trials import OURS, Problem, Test, Trial, answers, reference, trial
from assay.catalogue import paper
from assay.engines.base import Engine, Sampling
from assay.engines.writing import WRITING, ask, lines, listed, patched, pieces, shortened
from assay.errors import UsageError

MOST = 200
"""Commands of a plan; a model that writes more of them is cut off."""
GENERATING = 20.0
"""Processor seconds of one run of a generator."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a model has written: the constraints it read out of the problem, a Python program that prints an input, and
    the arguments it is run with, a line for each test."""

    summary: str = ""
    generator: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One iteration.

    Attributes:
        prompt, reply: what the model was asked, and what it said.
        plan: with the reply worked in.
        tests: of the commands that gave a valid input, without repetitions.
        trial: known programs on them.
        faults: what of the reply could not be used: patches that do not apply, commands that fail, inputs on which the
            right program does.
    """

    prompt: str
    reply: str
    plan: Plan
    tests: tuple[Test, ...]
    trial: Trial
    faults: tuple[str, ...]

    @property
    def rates(self) -> SuiteRates:
        return self.trial.rates

    @property
    def settled(self) -> bool:
        """Whether every right program passes and every wrong one is rejected."""
        return bool(self.tests) and not (self.rates.false_negatives or self.rates.false_positives)


@dataclass(frozen=True, slots=True)
class Refined:
    """A suite, and how it came about.

    Attributes:
        problem: whose tests these are.
        rounds: every iteration, in order.
        kept: the one whose suite is kept.
    """

    problem: Problem
    rounds: tuple[Round, ...]
    kept: Round

    def reference(self) -> dict[str, Any]:
        """The suite as the reference of a task of the kind ``code``."""
        return reference(self.problem, self.kept.tests)


@paper(
    "S150",
    "CodeContests-O",
    arxiv="2601.13682",
    seams=["tasks", "verify", "evaluate"],
    essentials={
        "a model writes a generator of inputs and the commands to run it with; a right program gives outputs": (
            "test_generators_that_fail_and_inputs_that_are_invalid_are_reported"
        ),
        "suites are run on known programs: false negatives and false positives": (
            "test_a_test_that_refuses_a_right_program_is_removed_by_replacement"
        ),
        "what went wrong is fed back: faults, failing right programs, surviving wrong ones": (
            "test_a_killing_test_a_round_raises_the_detection_rate_until_nothing_is_left"
        ),
        "the model adds and replaces commands and patches its generator": (
            "test_patches_apply_where_their_text_stands_exactly_once"
        ),
        "a checker where several outputs are right": "test_a_checker_judges_where_several_outputs_are_right",
        "true-positive and true-negative rates of a suite": (
            "audit/test_suite_quality.py::test_worked_example_of_the_rates"
        ),
        "the suite judges programs: it is the verifier of a task": (
            "test_the_suite_is_a_task_for_the_verifier_of_programs"
        ),
    },
    choices=(
        "a round without tests is kept only where there is no other; keep = 'best' keeps that of the best rates",
        "the loop goes on after a round without tests, of which it tells the model, where the authors end it",
        "expected outputs are those of one right program, where the authors take the most frequent of all right ones",
        "generators are in Python, where the authors' are in C++ with testlib",
        "of a right program its first failing test is shown; a patch whose text stands more than once is refused",
        "at most 200 commands; the words of prompts, of which the first shows a right program",
    ),
)
def codecontests_o(
    problem: Problem,
    right: Sequence[str],
    wrong: Sequence[str],
    engine: Engine,
    rounds: int = 3,
    programs: int | None = 10,
    keep: Literal["best", "last"] = "last",
    shown: int = 1000,
    sampling: Sampling = WRITING,
    seed: int = 0,
) -> Refined:
    """Let a model write tests, run them on known programs, tell it what went wrong, and repeat.

    Each round the model writes or patches a generator of inputs and says which commands to run it with; outputs are
    those of ``problem.truth``. A right program that fails a test is a false negative, a wrong one that passes all a
    false positive. Without any the loop ends; else the next prompt shows the faults, failing right programs with
    input, expected and actual output, surviving wrong programs, and the commands.

    Args:
        problem: with a right program and, where several outputs are right, a checker.
        right, wrong: programs known to be so.
        engine: what writes; anything that follows :class:`assay.engines.base.Engine`.
        rounds: most iterations, 1 or more.
        programs: how many failing right and how many surviving wrong programs a prompt shows, drawn for each;
            ``None`` for all. The suites are run on all programs.
        keep: the round whose suite is kept: the ``last`` (the paper's), or the ``best`` by (TPR + TNR) / 2, of equal
            ones the latest. A round without tests is kept only where there is no other.
        shown: characters of a program, input or output in a prompt.
        sampling: of the model's replies.
        seed: of the draws of programs that are shown, and of replies.

    Raises:
        UsageError: no right or no wrong program, or no round.
        SandboxUnavailable: programs cannot be run on this machine.

    Source: "CodeContests-O" (arXiv 2601.13682) and its authors' code.
    """
    if not right or not wrong or rounds < 1:
        raise UsageError("tests are refined with right and wrong programs and one round or more")
    draw = random.Random(seed)
    done: list[Round] = []
    while len(done) < rounds and not (done and done[-1].settled):
        prompt = _first(problem, shown)
        if done:
            rates = done[-1].rates
            refused, passed = (_some(found, programs, draw) for found in (rates.false_negatives, rates.false_positives))
            prompt = _again(problem, done[-1], [(i, right[i]) for i in refused], [wrong[i] for i in passed], shown)
        reply = ask(engine, prompt, sampling, seed + len(done))
        plan, faults = revised(done[-1].plan if done else Plan(), reply)
        tests, more = suite(problem, plan)
        judged = trial(problem, tests, right, wrong)
        done.append(Round(prompt, reply, plan, tuple(tests), judged, (*faults, *more)))
    # A suite without tests accepts everything: by its rates alone it would seem half good.
    key = [(bool(one.tests), one.rates.balanced if keep == "best" else 0.0, i) for i, one in enumerate(done)]
    return Refined(problem, tuple(done), done[max(key)[2]])


def _some(found: Sequence[int], most: int | None, draw: random.Random) -> list[int]:
    return list(found) if most is None or len(found) <= most else draw.sample(list(found), most)


def revised(plan: Plan, reply: str) -> tuple[Plan, list[str]]:
    """Return the plan with what a reply says worked in, and what of it could not be used.

    ``<constraints>`` and ``<generator>`` replace, ``<patch>`` changes the generator (see
    :func:`assay.engines.writing.patched`), ``<commands>`` replaces all commands, ``<add>`` adds some, and each line
    ``old => new`` of ``<replace>`` puts a command in the place of another, or nothing.
    """
    faults: list[str] = []
    if summary := pieces(reply, "constraints"):
        plan = replace(plan, summary=summary[-1].strip())
    if generator := pieces(reply, "generator"):
        plan = replace(plan, generator=generator[-1])
    for patch in pieces(reply, "patch"):
        source, wrong = patched(plan.generator, patch)
        plan, faults = replace(plan, generator=source), faults + wrong
    commands = lines(reply, "commands") if pieces(reply, "commands") else list(plan.commands)
    for line in lines(reply, "replace"):
        old, arrow, new = (part.strip() for part in line.partition("=>"))
        if not arrow or old not in commands:
            faults.append(f"{shortened(line, 200)!r} replaces no command")
            continue
        at = commands.index(old)
        commands[at : at + 1] = [new] if new else []
    commands = list(dict.fromkeys(commands + lines(reply, "add")))
    if len(commands) > MOST:
        faults.append(f"{len(commands)} commands: only the first {MOST} are kept")
    return replace(plan, commands=tuple(commands[:MOST])), faults


def suite(problem: Problem, plan: Plan) -> tuple[list[Test], list[str]]:
    """Run a plan: return its tests, and what went wrong."""
    from assay.sandbox import Limits, Program, sandbox

    if not plan.generator.strip():
        return [], ["there is no generator"]
    found: dict[str, str] = {}
    faults: list[str] = []
    for command in plan.commands:
        try:
            args = tuple(shlex.split(command))
        except ValueError as error:
            faults.append(f"command {command!r} cannot be read: {error}")
            continue
        outcome = sandbox().run(Program(plan.generator, args=args), limits=Limits(GENERATING, 3 * GENERATING))
        if outcome.status == "ok":
            found.setdefault(outcome.stdout.decode("utf-8", "replace"), command)
        elif outcome.failed_here:
            faults.append(f"{OURS}: command {command!r}: {outcome.reason}"[:500])
        else:
            last = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            faults.append(f"command {command!r}: the generator failed: {'; '.join([outcome.reason, *last])}"[:500])
    tests = []
    for (given, command), (output, why) in zip(found.items(), answers(problem, list(found)), strict=True):
        if output is None:
            faults.append((why if why.startswith(OURS) else f"command {command!r}: {why}")[:500])
        else:
            tests.append(Test(given, output, command))
    return tests, faults


_TASK = """You write tests for a programming problem. Programs read standard input and write standard output.

## Problem

{statement}

"""
_FORMAT = """## Reply

<constraints>what an input has to keep to, and what makes solutions go wrong</constraints>
<generator>
a Python program that prints one input, chosen by its command line
</generator>
<commands>
a line of arguments for each test
</commands>
"""
_REVISION = """## Reply

Change only what has to be changed:

<generator>a whole new generator</generator>, or <patch> with blocks
<<<<<<< SEARCH
lines of the generator, as they stand
=======
lines in their place
>>>>>>> REPLACE
</patch>
<replace>
a command => the command in its place, or nothing to drop it
</replace>
<add>
a line of arguments for each further test
</add>
"""


def _first(problem: Problem, shown: int) -> str:
    truth = listed("A right program", [shortened(problem.truth, 4 * shown)])
    return _TASK.format(statement=problem.statement.strip()) + truth + _FORMAT


def _again(problem: Problem, last: Round, right: Sequence[tuple[int, str]], wrong: Sequence[str], shown: int) -> str:
    def cut(text: str) -> str:
        return shortened(text, shown)

    refused = []
    for index, program in right:
        at = next(i for i, cell in enumerate(last.trial.right[index]) if cell.passed is False)
        test, cell = last.tests[at], last.trial.right[index][at]
        refused.append(
            f"Program:\n{cut(program)}\n\nCommand: {test.why}\nInput:\n{cut(test.input)}\n\n"
            f"Expected:\n{cut(test.output)}\n\nActual:\n{cut(cell.got)}"
        )
    survivors = [cut(program) for program in wrong]
    return (
        _TASK.format(statement=problem.statement.strip())
        + listed("Constraints", [last.plan.summary] if last.plan.summary else [])
        + listed("Generator", [last.plan.generator] if last.plan.generator else [])
        + listed("Commands", ["\n".join(last.plan.commands)] if last.plan.commands else [])
        # What we failed at is nothing that the model could mend.
        + listed("What could not be used", [fault for fault in last.faults if not fault.startswith(OURS)])
        + listed("Right programs that fail a test: the test is wrong, or its input is not valid", refused)
        + listed("Wrong programs that pass every test: a test that they fail is missing", survivors)
        + _REVISION
    )
