"""The verifier of programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.sandbox import Limits, Program, SandboxUnavailable, sandbox
from assay.sandbox.languages import FACTORS, LANGUAGES, known, language
from assay.types import Fault, Task, Verdict
from assay.verify.code.asserted import SHARED, judge_asserted
from assay.verify.code.calls import judge_calls
from assay.verify.code.files import beside
from assay.verify.code.limits import task_limits
from assay.verify.code.reference import CallTests, CodeTests, Reference, TextTests, read
from assay.verify.code.response import Blocks, Found, find_program
from assay.verify.code.results import Abstain, Case, Scoring, verdict
from assay.verify.code.settings import Settings
from assay.verify.code.stdio import judge_text
from assay.verify.code.text import TextRule
from assay.verify.code.values import NumberRule, ValueRule
from assay.verify.code.worth import Worth, read_worth

MIB = 1 << 20
PRELUDE = (
    "from typing import *; from collections import *; from functools import *; from itertools import *; "
    "from heapq import *; from bisect import *; from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, "
    "log, log2, log10, perm, pi, sqrt; import bisect, collections, functools, heapq, itertools, math, operator, "
    "random, re, string, sys, typing"
)
"""What LeetCode and the data sets made of it take to be imported: with ``fn_name``, put before the program."""


RESERVED = ("bundle", "program", "made", "log", "main.py", *(way.file for ways in LANGUAGES.values() for way in ways))
"""What is put beside a program, or made of it, while it is judged: no file of a response is called so."""


@part("verify", "code")
@dataclass(frozen=True, slots=True)
class Code:
    """Right iff the program in the response passes the task's tests, run in the sandbox.

    ``task.reference`` (a mapping or list, or JSON text of one) says what the tests are, in the shapes data sets use:

    - ``inputs`` and ``outputs``, or ``tests``: a list of ``{input, output}``: standard input and output (APPS, TACO,
      LiveCodeBench; CodeContests' ``public_tests``, ``private_tests``, ``generated_tests``). ``checker`` is a program
      that judges outputs (:func:`~assay.verify.code.checker.check_output`), ``interactor`` one that the program talks
      to (:func:`~assay.verify.code.interactive.converse`);
    - the same with ``fn_name``: inputs are lists of arguments, outputs values; methods of ``class Solution`` too;
    - ``test`` with ``check(candidate)``, ``entry_point`` and ``prompt``: HumanEval;
    - ``test_list`` of asserts, with ``test_setup_code``: MBPP; or just a list of such texts;
    - ``pytest`` or ``unittest``: the source of a file of tests that imports the program, from ``module``;
    - ``doctest``: text with ``>>>`` examples.

    A reference may also have

    - ``language``, ``packages`` (Python packages the program may import), ``files`` (beside the program), ``main``
      (which file of a response with several is the program), ``compiler_options``;
    - ``time_limit`` in seconds, ``time_factor``, ``memory_limit``, ``stack_limit`` and ``output_limit`` in MiB,
      ``process_limit``; a test, ``time_limit`` and ``memory_limit`` of its own;
    - ``weights``, ``groups`` and ``points``, see :func:`~assay.verify.code.worth.read_worth`;
    - ``compare`` (a name in place of ``text`` or ``values`` here, or ``{source, function}`` of value, expected value
      and arguments), ``numbers``.

    Columns of the published data sets may stay; any other key is an error, for which the verifier abstains.

    The tests stand in processes apart from the program (:mod:`assay.verify.code.apart`), so that no program can read
    what is expected or say that it passed. What the program itself does, to run too long included, is a wrong answer;
    what the sandbox or the tests do wrong is an abstention, whose ``fault`` says which of them it was.

    ``parts``: a score in [0, 1] for each test that was run, and for each group, ``group NAME``; ``unisolated`` 1 if
    tests and program shared a process. With ``details`` also, for each test, ``TEST | STATUS`` 1, where the status is
    ``right``, ``partial``, ``wrong``, ``time``, ``memory``, ``output`` (too much), ``runtime error``,
    ``compile error``, ``skipped`` or ``not run``; ``TEST | seconds`` of processor time and ``TEST | MiB`` of memory at
    the most, where they are known of the test; tests that share a process have them together, ``program | seconds``
    and ``program | MiB``.

    Args:
        language: of the program, where the reference has none: python, c, cpp, java, go, rust, javascript,
            typescript, bash.
        scoring: ``all`` or nothing, or the ``fraction`` of all points that was won: of the tests, if each counts 1.
        stop: end after the first failure; by default iff ``scoring`` is ``all``, and else the tests of a group after
            its first.
        seconds: processor seconds of one run of the program, times the factor of its language; wall time is three times
            as much. Each call of a function has the time of a run; asserts of one task share one.
        memory, stack, output: MiB of one run, of its main thread's stack, and of what it writes.
        processes: processes and threads of one run at a time.
        time_factors: by language, in place of 1, and 2 for java.
        compiler_options: by language, given to the compiler after the usual ones.
        total_seconds: processor seconds of all runs for one response.
        text: how output is compared, see :func:`~assay.verify.code.text.same_text`.
        values: how values are compared, see :func:`~assay.verify.code.values.same_value`.
        relative, absolute: tolerances of the rules that have some.
        numbers: whether a value ``True`` or ``1.0`` is 1 (``loose``, as APPS and LiveCodeBench compare) or not
            (``strict``).
        blocks: which of several code blocks is the program, see :func:`~assay.verify.code.response.find_program`.
        cut: judge a program whose code block was never closed; without it such a response is wrong.
        prelude: imports put before programs with ``fn_name``.
        allow_shared_process: where tests need the program in their own process (to replace its names, to derive from
            its classes), run them so. A program that sets its mind to it can then pass any test.
        details: add status, time and memory of each test to the ``parts``, which then differ from run to run.

    Raises:
        UsageError: when made, for a language or limit that does not exist.
    """

    language: str = "python"
    scoring: Scoring = "all"
    stop: bool | None = None
    seconds: float = 5.0
    memory: int = 512
    stack: int = 64
    processes: int = 32
    output: float = 4.0
    time_factors: Mapping[str, float] = field(default_factory=dict)
    compiler_options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    total_seconds: float = 120.0
    text: TextRule = "lines"
    values: ValueRule = "exact"
    relative: float = 1e-6
    absolute: float = 1e-6
    numbers: NumberRule = "strict"
    blocks: Blocks = "last"
    cut: bool = True
    prelude: str = PRELUDE
    allow_shared_process: bool = False
    details: bool = False

    def __post_init__(self) -> None:
        language(self.language)
        if self.total_seconds <= 0:
            raise UsageError(f"verifier 'code': total_seconds = {self.total_seconds:g} must be above 0")
        for name in {**self.time_factors, **self.compiler_options}:
            known(name)
        self._limits({}, self.language)

    def ready(self) -> None:
        """Raise SandboxUnavailable where this machine cannot run programs in isolation."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            reference = read(task.reference, task.question)
            chosen = str(reference.given.get("language", self.language)).lower()
            if chosen not in LANGUAGES:
                raise ValueError(f"no language is called {chosen!r}")
            if chosen != "python" and not isinstance(reference.tests, TextTests):
                raise ValueError(f"functions are tested in Python, not in {chosen}")
            settings = self._settings(reference, chosen)
        except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError, UsageError) as error:
            return Verdict.abstain(f"task {task.id} cannot be judged: {' '.join(str(error).split())[:300]}", "tests")
        found = find_program(response, chosen, self.blocks, reference.defines, str(reference.given.get("main", "")))
        if found is None:
            return Verdict.wrong(f"no {chosen} program found")
        if found.cut and not self.cut:
            return Verdict.wrong("the program's code block is not closed")
        try:
            return self._judge(reference, self._program(reference, found, chosen), settings)
        except Abstain as reason:
            return Verdict.abstain(str(reason), reason.fault)
        except (UsageError, KeyError, OSError) as error:
            fault: Fault = "infrastructure" if isinstance(error, SandboxUnavailable | OSError) else "tests"
            return Verdict.abstain(f"task {task.id} cannot be judged: {error}", fault)

    def _judge(self, reference: Reference, program: Program, settings: Settings) -> Verdict:
        tests, count = reference.tests, 0
        shared, whole = False, None
        if isinstance(tests, TextTests):
            cases, count = judge_text(tests, program, settings), len(tests.pairs)
        elif isinstance(tests, CallTests):
            cases, count = judge_calls(tests, program, settings), len(tests.calls)
        else:
            files = {str(k): v for k, v in dict(reference.given.get("test_files") or {}).items()}
            cases, count, shared, whole = judge_asserted(tests, program, settings, self.allow_shared_process, files)
        note = SHARED if shared else ""
        made = verdict(_distinct(cases), count, self.scoring, note, self.details, settings.worth, whole)
        return replace(made, parts={**made.parts, "unisolated": 1.0}) if shared else made

    def _program(self, reference: Reference, found: Found, chosen: str) -> Program:
        given, source = reference.given, found.source
        if isinstance(reference.tests, CallTests):
            source = _before(str(given.get("prelude", self.prelude)), source)
        elif isinstance(reference.tests, CodeTests) and reference.prompt:
            source = _continue(reference, source)
        own = {str(name): content for name, content in dict(given.get("files") or {}).items()}
        files = {**beside(found.files, own, RESERVED), **own}
        packages, options = tuple(map(str, given.get("packages", ()))), self._options(given, chosen)
        return Program(source, chosen, files, packages=packages, options=options)

    def _options(self, given: Mapping[str, Any], chosen: str) -> tuple[str, ...]:
        """Options of the compiler: a task's, which may have some for each language, in place of the verifier's."""
        options = given.get("compiler_options", self.compiler_options)
        if isinstance(options, Mapping):
            options = options.get(chosen, ())
        return tuple(map(str, [options] if isinstance(options, str) else options))

    def _settings(self, reference: Reference, chosen: str) -> Settings:
        given = reference.given
        compare = given.get("compare")
        text, values = self.text, self.values
        if isinstance(compare, str):
            if isinstance(reference.tests, TextTests) and compare in ("exact", "lines", "tokens", "floats"):
                text = compare  # type: ignore[assignment]
            elif compare in ("exact", "approximate", "unordered", "set", "unordered_approximate"):
                values = compare  # type: ignore[assignment]
            else:
                raise ValueError(f"there is no way to compare called {compare!r}")
        numbers = str(given.get("numbers", self.numbers))
        if numbers not in ("strict", "loose"):
            raise ValueError(f"its numbers are {numbers!r}, not strict or loose")
        stop = True if self.stop is None and self.scoring == "all" else self.stop
        limits, factor = self._limits(given, chosen)
        return Settings(
            sandbox(),
            limits,
            self.total_seconds,
            stop,
            text,
            values,
            self.relative,
            self.absolute,
            _mapping(given, "checker"),
            _mapping(given, "interactor"),
            compare if isinstance(compare, Mapping) else None,
            numbers,  # type: ignore[arg-type]
            factor,
            _worth(reference),
        )

    def _limits(self, given: Mapping[str, Any], chosen: str) -> tuple[Limits, float]:
        """Return the limits of one process of the program, and the factor of its language in them."""
        factor = given.get("time_factor", self.time_factors.get(chosen, FACTORS.get(chosen, 1.0)))
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 1000:
            raise UsageError(f"the time factor of {chosen} is {factor!r}: must be in (0, 1000]")
        usual = Limits(
            cpu_seconds=self.seconds * factor,
            wall_seconds=min(3 * self.seconds * factor, 3600),
            memory=int(self.memory * MIB),
            output=int(self.output * MIB),
            processes=self.processes,
            stack=int(self.stack * MIB),
        )
        return task_limits(usual, given, float(factor)), float(factor)


def _worth(reference: Reference) -> Worth:
    tests = reference.tests
    if isinstance(tests, CodeTests):
        return read_worth(reference.given, (), tests.count)
    return read_worth(reference.given, tests.own, len(tests.pairs if isinstance(tests, TextTests) else tests.calls))


def _mapping(given: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = given.get(key)
    if isinstance(value, str):
        return {"source": value}
    if value is None or (isinstance(value, Mapping) and isinstance(value.get("source"), str)):
        return value
    raise ValueError(f"its {key} has no source")


def _before(prelude: str, source: str) -> str:
    """Put imports before a program, unless ``from __future__`` has to stay the first."""
    if not prelude or "from __future__" in source:
        return source
    return f"{prelude}\n{source}"


def _continue(reference: Reference, source: str) -> str:
    """A program that defines the function stands by itself with what the prompt has before; another continues it."""
    name = re.escape(reference.defines)
    if name and re.search(rf"^(?:async[ \t]+def|def|class)[ \t]+{name}\b|^{name}[ \t]*=", source, re.MULTILINE):
        return reference.prelude + source
    return reference.prompt + source


def _distinct(cases: list[Case]) -> list[Case]:
    """Give tests of the same name numbers: parts are by name."""
    seen: dict[str, int] = {}
    made = []
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        made.append(case if seen[case.name] == 1 else replace(case, name=f"{case.name} ({seen[case.name]})"))
    return made
