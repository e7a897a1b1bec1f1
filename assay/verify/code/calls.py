"""Functions that are called with arguments and whose values are compared, outside of the program's process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.sandbox import Limits, Program
from assay.verify.code.checker import unusable
from assay.verify.code.reference import CallTests
from assay.verify.code.results import Abstain, Case, brief, ending, status_of
from assay.verify.code.settings import Settings
from assay.verify.code.values import same_value

COMPARING = Limits(cpu_seconds=20, wall_seconds=60)


def judge_calls(tests: CallTests, program: Program, settings: Settings) -> list[Case]:
    """Call the function of ``program`` with each test's arguments; raise Abstain if that cannot be done.

    Calls share a process while it lasts, and each may take what a process may: one that is cut short by what those
    before it took is made again in a new process. If the process ends within a call, that test has failed, and the
    rest go on in a new process where more tests are wanted.
    """
    cases: list[Case] = []
    spent, lost = 0.0, set[str]()
    while len(cases) < len(tests.calls):
        name = f"test {len(cases) + 1}"
        if settings.skips(name, lost):
            cases.append(Case(name, 0.0, "not run: its group has failed already", status="not run"))
            continue
        if spent > settings.total:
            said = f"not run: it took more than {settings.total:g} s so far"
            cases.append(Case(name, 0.0, said, status="not run"))
            break
        own = tests.own[len(cases)] if tests.own else {}
        left = tests.calls[len(cases) : _alike(tests, settings, len(cases), lost)]
        done = settings.box.call(
            program, tests.function, [(args, {}) for args, _ in left], settings.limits_of(own), "Solution"
        )
        outcome = done.outcome
        if outcome.failed_here:
            raise Abstain(f"the sandbox failed: {outcome.reason}", "infrastructure")
        spent += outcome.cpu_seconds
        for (args, expected), call in zip(left, done.calls, strict=False):
            name, shown = f"test {len(cases) + 1}", _shown(tests.function, args)
            status = ""
            if not call.returned:
                passed, said, status = False, f"{shown} raised {call.exception}", "runtime error"
            else:
                passed = _same(call.value, expected, args, tests.wrapped, settings)
                said = "" if passed else f"{shown} gave {brief(call.value)}, expected {brief(expected)}"
            cases.append(Case(name, float(passed), said, call.cpu_seconds, outcome.memory, status))
            if settings.enough(name, passed, lost):
                return cases
            if settings.skips(name, lost):
                break
        else:
            shared = len(done.calls) > 0 and outcome.status == "timeout"
            if len(done.calls) < len(left) and not shared:
                name, seconds = f"test {len(cases) + 1}", outcome.cpu_seconds if not done.calls else None
                said = f"{_shown(tests.function, left[len(done.calls)][0])}: {ending(outcome)}"
                cases.append(Case(name, 0.0, said, seconds, outcome.memory, status_of(outcome) or "runtime error"))
                if settings.enough(name, False, lost):
                    break
    return cases


def _shown(function: str, args: Any) -> str:
    return f"{function}({', '.join(map(brief, args))})"


def _alike(tests: CallTests, settings: Settings, first: int, lost: set[str]) -> int:
    """Return where the tests end that can share a process with the ``first``: of its limits, none to be left out."""
    last = first + 1
    while last < len(tests.calls) and not settings.skips(f"test {last + 1}", lost):
        if tests.own and _limiting(tests.own[last]) != _limiting(tests.own[first]):
            break
        last += 1
    return last


def _limiting(own: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in own.items() if key in ("time_limit", "memory_limit")}


def _same(value: Any, expected: Any, args: Any, wrapped: bool, settings: Settings) -> bool:
    if settings.comparing is not None:
        return _ask(value, expected, args, settings)
    wanted = [expected, expected[0]] if wrapped else [expected]
    how = (settings.values, settings.relative, settings.absolute, settings.numbers)
    return any(same_value(value, one, *how) for one in wanted)


def _ask(value: Any, expected: Any, args: Any, settings: Settings) -> bool:
    """Have the task's own comparer decide, in a process of its own."""
    comparing = settings.comparing or {}
    program = Program(str(comparing["source"]), packages=tuple(comparing.get("packages", ())))
    function = str(comparing.get("function", "same"))
    done = settings.box.call(program, function, [((value, expected, list(args)), {})], COMPARING)
    if done.calls and done.calls[0].returned:
        return bool(done.calls[0].value)
    if not done.outcome.failed_here and expected is None:
        # Nothing is expected but what the comparer makes of the value.
        if done.calls and not unusable(done.calls[0].exception):
            return False
    elif not done.outcome.failed_here:
        # On the expected value it has to work; if it does, the program's value was to blame.
        again = settings.box.call(program, function, [((expected, expected, list(args)), {})], COMPARING)
        if again.calls and again.calls[0].returned:
            return False
    raise Abstain(f"the task's comparer failed: {done.calls[0].exception if done.calls else done.outcome.reason}")
