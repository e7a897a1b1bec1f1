"""What tests are worth, and what is told of each: weights, groups, parts of a test, status, time and memory."""

# ruff: noqa: E501  programs stand in texts

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.types import NOTE, Task, Verdict
from assay.verify.code.limits import task_limits
from assay.verify.code.verifier import Code
from assay.verify.code.worth import Worth, read_worth

pytestmark = needs_sandbox


def judge(reference: Any, source: str, mark: str = "python", **options: Any) -> Verdict:
    return Code(**options)(Task("t", "", reference, "code"), f"```{mark}\n{source}\n```")


EVEN = "n = int(input())\nprint(n if n % 2 == 0 else -1)"
"""Right for even inputs only, where a program is to repeat its input."""


def repeat(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"input": str(n), "output": str(n), **more} for n in numbers]


# --- worth ----------------------------------------------------------------------------------------------------------


def test_weights_count_in_a_fraction_and_not_in_all() -> None:
    tests = [*repeat(2, weight=3), *repeat(1, weight=1)]
    assert judge(tests, EVEN, scoring="fraction").score == 0.75
    assert judge(tests, EVEN).score == 0.0
    for weights in ([3, 1], {"test 1": 3, "test 2": 1}, {1: 3}):
        assert judge({"tests": repeat(2, 1), "weights": weights}, EVEN, scoring="fraction").score == 0.75


def test_a_group_has_its_points_only_if_all_its_tests_pass() -> None:
    tests = [*repeat(2, 4, group="small"), *repeat(6, 1, 8, group="large")]
    verdict = judge({"tests": tests, "points": {"small": 40, "large": 60}}, EVEN, scoring="fraction")
    assert (verdict.score, verdict.passed) == (0.4, False)
    assert verdict.parts["group small"] == 1.0 and verdict.parts["group large"] == 0.0
    by_number = {"tests": repeat(2, 4, 6, 1, 8), "groups": {"small": [1, 2], "large": [3, 4, 5]}}
    assert judge(by_number, EVEN, scoring="fraction").score == 0.4
    right = judge(by_number, "print(input())", scoring="fraction")
    assert (right.score, right.passed) == (1.0, True)


def test_a_lost_group_is_not_run_to_its_end() -> None:
    tests = repeat(1, 2, 4, group="a")
    for reference in (tests, {"fn_name": "f", "tests": [{**t, "input": [int(t["input"])]} for t in tests]}):
        source = EVEN if reference is tests else "def f(x): return str(x) if x % 2 == 0 else None"
        verdict = judge(reference, source, scoring="fraction", details=True)
        assert verdict.parts[f"test 2{NOTE}not run"] == 1.0 and verdict.score == 0.0
        every = judge(reference, source, scoring="fraction", stop=False, details=True)
        assert every.parts["test 2"] == 1.0 and every.score == 0.0


def test_weights_of_tests_that_compare_by_themselves_go_by_name() -> None:
    tests = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
    tests += "".join(f"    def test_{n}(self): self.assertEqual(f({n}), {n})\n" for n in (1, 2))
    reference = {"unittest": tests, "weights": {"T.test_2": 3}}
    assert judge(reference, "def f(x): return x if x == 2 else 0", scoring="fraction").score == 0.75
    asserts = {"test_list": ["assert f(1) == 1", "assert f(2) == 2"], "weights": [1, 3]}
    assert judge(asserts, "def f(x): return x if x == 2 else 0", scoring="fraction").score == 0.75


@pytest.mark.parametrize(
    "broken",
    [
        *({"weights": weights} for weights in ([1], [1, -1], [0, 0], [1, True])),
        *({"groups": groups} for groups in ({"a": [3]}, ["a"])),
        {"points": {"b": 1}, "groups": {"a": [1]}},
    ],
)
def test_worths_that_cannot_be_meant_abstain(broken: dict[str, Any]) -> None:
    verdict = judge({"tests": repeat(2, 4), **broken}, EVEN)
    assert verdict.passed is None and "\n" not in verdict.feedback


names = st.sampled_from([f"test {n}" for n in range(1, 7)])


@given(
    st.dictionaries(names, st.floats(0, 1), min_size=1),
    st.dictionaries(names, st.integers(0, 5)),
    st.dictionaries(names, st.sampled_from("ab")),
)
def test_scores_are_shares_and_rise_with_every_test(
    scores: dict[str, float | None], weights: dict[str, int], groups: dict[str, str]
) -> None:
    worth = Worth(weights, groups)  # type: ignore[arg-type]
    score, found = worth.score(scores, 6)
    assert 0 <= score <= 1 and set(found) == set(groups.values())
    for name in scores:
        assert worth.score({**scores, name: 1.0}, 6)[0] >= score - 1e-12
    everything, _ = worth.score({f"test {n}": 1.0 for n in range(1, 7)}, 6)
    assert everything == pytest.approx(1.0) or not any(weights.get(f"test {n}", 1) for n in range(1, 7))


def test_a_plain_list_of_tests_is_worth_what_it_counts() -> None:
    worth = read_worth({}, [{}, {}, {}], 3)
    assert worth.score({"test 1": 1.0, "test 2": 0.0}, 3)[0] == pytest.approx(1 / 3)


# --- checkers that give parts of a test -----------------------------------------------------------------------------

CLOSE = "def check(given, output, answer):\n    return max(0.0, 1 - abs(float(output) - float(answer)) / 10)"
POINTS = "import sys\nprint('points 0.25 nearly', file=sys.stderr)\nsys.exit(7)"
PRINTED = "print(0.25)"


def test_checkers_may_give_a_part() -> None:
    for checker, part in (
        ({"source": CLOSE, "function": "check"}, 0.8),
        (POINTS, 0.25),
        ({"source": PRINTED, "accept": "stdout"}, 0.25),
    ):
        reference = {"tests": repeat(7, 9), "checker": checker}
        verdict = judge(reference, "print(int(input()) + 2)", scoring="fraction", details=True)
        assert verdict.score == pytest.approx(part) and verdict.passed is False, verdict
        assert verdict.parts["test 1"] == pytest.approx(part) and verdict.parts[f"test 1{NOTE}partial"] == 1.0
    grouped = {"tests": repeat(7, 9, group="g"), "checker": {"source": CLOSE, "function": "check"}}
    assert judge(grouped, "n = int(input())\nprint(n + (n == 9))", scoring="fraction").score == pytest.approx(0.9)


@pytest.mark.parametrize("value", ["2", "-0.5", "float('nan')", "'yes'", "None"])
def test_what_is_no_score_is_the_checkers_fault(value: str) -> None:
    checker = {"source": f"def check(given, output, answer): return {value}", "function": "check"}
    verdict = judge({"tests": repeat(7), "checker": checker}, EVEN)
    assert verdict.passed is None and "checker failed" in verdict.feedback


# --- status, time and memory ----------------------------------------------------------------------------------------

WAYS = {
    "right": "print(n)",
    "wrong": "print(n + 1)",
    "time": "while True: pass",
    "memory": "x = [0] * (1 << 28)",
    "output": "while True: print('x' * 100000)",
    "runtime error": "1 / 0",
}


def test_each_test_has_a_status_with_time_and_memory() -> None:
    source = "n = int(input())\n" + "".join(f"if n == {k}:\n    {way}\n" for k, way in enumerate(WAYS.values()))
    reference = repeat(*range(len(WAYS)))
    verdict = judge(reference, source, scoring="fraction", details=True, seconds=0.5, memory=128, output=1)
    for number, status in enumerate(WAYS, 1):
        noted = [name.split(NOTE)[1] for name in verdict.parts if name.startswith(f"test {number}{NOTE}")]
        assert noted == [status, "seconds", "MiB"]
    assert verdict.parts[f"test 3{NOTE}seconds"] >= 0.5 > verdict.parts[f"test 1{NOTE}seconds"] > 0
    assert 0 < verdict.parts[f"test 1{NOTE}MiB"] < 64


def test_peak_memory_is_that_of_the_test() -> None:
    source = "n = int(input())\nx = bytes(range(256)) * (n << 12)\nprint(n)"
    parts = judge(repeat(1, 50), source, details=True).parts
    taken = parts[f"test 2{NOTE}MiB"] - parts[f"test 1{NOTE}MiB"]  # type: ignore[operator]
    assert 47 < taken < 52


def test_compile_errors_are_told_apart() -> None:
    verdict = judge({"tests": repeat(1), "language": "c"}, "int main(", "c", details=True)
    assert verdict.parts["compiles"] == 0.0 and verdict.parts[f"compiles{NOTE}compile error"] == 1.0


def test_without_details_a_verdict_repeats_itself() -> None:
    assert judge(repeat(2, 4), EVEN) == judge(repeat(2, 4), EVEN) == Verdict(1.0, True, {"test 1": 1.0, "test 2": 1.0})


def test_calls_have_a_status_too() -> None:
    reference = {"fn_name": "f", "inputs": [[n] for n in range(4)], "outputs": [0, 1, 2, 3]}
    source = "import os\ndef f(n):\n    if n == 1: return 5\n    if n == 2: raise ValueError\n    if n == 3: os._exit(4)\n    return n"
    parts = judge(reference, source, scoring="fraction", details=True).parts
    for number, status in enumerate(["right", "wrong", "runtime error", "runtime error"], 1):
        assert parts[f"test {number}{NOTE}{status}"] == 1.0 and parts[f"test {number}{NOTE}MiB"]


# --- limits ---------------------------------------------------------------------------------------------------------

BUSY = "import time\nwhile time.process_time() < 0.4: pass\nprint(input())"


def test_limits_of_a_task_and_of_a_test_come_before_the_verifiers() -> None:
    tests = [{"input": "1", "output": "1"}, {"input": "2", "output": "2", "time_limit": 0.2}]
    verdict = judge(tests, BUSY, scoring="fraction", details=True)
    assert verdict.parts["test 1"] == 1.0 and verdict.parts[f"test 2{NOTE}time"] == 1.0
    assert judge({"tests": repeat(1), "time_limit": 0.2}, BUSY).passed is False
    assert judge({"tests": repeat(1), "time_limit": 0.2, "time_factor": 5}, BUSY).passed is True
    assert judge(repeat(1), BUSY, seconds=0.2).passed is False
    assert judge(repeat(1), BUSY, seconds=0.2, time_factors={"python": 5}).passed is True


def test_stack_processes_and_output_are_limited() -> None:
    deep = "import sys\nsys.setrecursionlimit(10 ** 6)\nclass C:\n    def __eq__(self, other): return C() == C()\nC() == C()\nprint(1)"
    many = "import os, time\nfor _ in range(3):\n    if not os.fork(): time.sleep(9)\nprint(1)\nos.kill(0, 9)"
    for limit, source, status in (
        ({"output_limit": 0.01}, "print('x' * 20000)", "output"),
        ({"process_limit": 2}, many, "runtime error"),
        ({"stack_limit": 1}, deep, "runtime error"),
    ):
        verdict = judge({"tests": repeat(1), **limit}, source, details=True)
        assert verdict.parts[f"test 1{NOTE}{status}"] == 1.0, (limit, verdict)
    assert judge(repeat(1), "print('x' * 20000)", output=0.01).feedback.endswith("more than 10485 bytes")


def test_each_call_has_the_time_of_one() -> None:
    # Each takes 0.15 s of 0.25 s; together they take more than one process may.
    busy = "import time\ndef f(n):\n    end = time.process_time() + 0.15\n    while time.process_time() < end: pass\n    return n"
    reference = {"fn_name": "f", "inputs": [[n] for n in range(4)], "outputs": list(range(4))}
    assert judge(reference, busy, seconds=0.25).passed is True
    endless = busy.replace("return n", "while n == 2: pass\n    return n")
    verdict = judge(reference, endless, seconds=0.25, scoring="fraction")
    assert verdict.parts == {"test 1": 1.0, "test 2": 1.0, "test 3": 0.0, "test 4": 1.0}


@pytest.mark.parametrize(
    ("given", "seconds", "mebibytes"),
    [
        ({"time_limit": "2.0 seconds", "memory_limit": "256.0 megabytes"}, 4.0, 256),
        ({"time_limit": {"seconds": 1, "nanos": 500_000_000}, "memory_limit_bytes": 64 << 20}, 3.0, 64),
        ({"time_limit": 1, "memory_limit": 100}, 2.0, 100),
        ({"time_limit": None, "memory_limit": 0}, 5.0, 512),
    ],
)
def test_limits_as_data_sets_write_them(given: dict[str, Any], seconds: float, mebibytes: int) -> None:
    from assay.sandbox import Limits

    limits = task_limits(Limits(), given, 2.0)
    assert limits.cpu_seconds == seconds and limits.memory == mebibytes << 20


# --- keys and numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"tests": repeat(2), "time_limt": 1}, "a key 'time_limt' that nobody reads; did you mean 'time_limit'?"),
        ({"tests": [{"input": "2", "output": "2", "wieght": 2}]}, "did you mean 'weight'?"),
        ({"tests": repeat(2), "checker": {"source": "", "funtion": "check"}}, "did you mean 'function'?"),
        ({"test_list": ["assert f(1) == 1"], "test_setup": ""}, "'test_setup'"),
    ],
)
def test_unknown_keys_are_an_error(reference: Any, said: str) -> None:
    verdict = judge(reference, EVEN)
    assert verdict.passed is None and said in verdict.feedback and "\n" not in verdict.feedback


def test_columns_of_data_sets_are_known() -> None:
    taco = {"inputs": ["2"], "outputs": ["2"], "question": "?", "starter_code": "", "Expected Time Complexity": "O(n)"}
    assert judge({**taco, "time_limit": "2.0 seconds"}, EVEN).passed is True


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (1, "True"),
        (1, "1.0"),
        (True, "1"),
        (0, "False"),
        (2.0, "2"),
        ([1, [0]], "[1, [False]]"),
        ({"a": 1}, "{'a': True}"),
        ([{1, 2}], "[{1.0, 2}]"),
        ({1: 2}, "{True: 2}"),
        ({(1, 2)}, "{(True, 2)}"),
    ],
)
def test_numbers_of_another_kind_are_others_unless_asked(expected: Any, got: str) -> None:
    reference = {"fn_name": "f", "inputs": [[0]], "outputs": [expected]}
    source = f"def f(x): return {got}"
    assert judge(reference, source).passed is False
    assert judge({**reference, "numbers": "loose"}, source).passed is True
    assert judge(reference, source, numbers="loose").passed is True
    assert judge(reference, f"def f(x): return {expected!r}").passed is True


def test_numbers_in_other_rules() -> None:
    for rule, expected, same, different in (
        ("approximate", [1, 0.5], "[1.0, 0.5]", "[True, 0.5]"),
        ("unordered", [1, 2], "[2, 1]", "[2, True]"),
        ("unordered", [1, True, 1.0], "[1.0, 1, True]", "[1, 1, True]"),
        ("set", [1, 2], "[2, 1, 1]", "[2, 1.0, 1]"),
    ):
        reference = {"fn_name": "f", "inputs": [[0]], "outputs": [expected], "compare": rule}
        assert judge(reference, f"def f(x): return {same}").passed is True, (rule, same)
        assert judge(reference, f"def f(x): return {different}").passed is False, (rule, different)


def test_text_is_compared_as_before() -> None:
    assert judge([{"input": "", "output": "1.0"}], "print('1.0')").passed is True
    assert judge({"tests": [{"input": "", "output": "1"}], "compare": "floats"}, "print(1.0)").passed is True


def test_compiler_options() -> None:
    source = '#include <stdio.h>\nint main(void) {printf("%d", N);}'
    reference = {"tests": [{"input": "", "output": "7"}], "language": "c"}
    assert judge(reference, source, "c").feedback.startswith("passed 0 of 1 tests; compiles")
    assert judge({**reference, "compiler_options": ["-DN=7"]}, source, "c").passed is True
    assert judge({**reference, "compiler_options": {"c": "-DN=7"}}, source, "c").passed is True
    assert judge(reference, source, "c", compiler_options={"c": ["-DN=7"]}).passed is True
    wrong = judge({"tests": repeat(2), "compiler_options": ["-O3"]}, EVEN)
    assert wrong.passed is None and "is not" in wrong.feedback


def test_tests_that_compare_by_themselves_have_a_status_and_share_their_time() -> None:
    source = (
        "import os\ndef f(n):\n    if n == 1: return 5\n    if n == 2: raise ValueError('no')\n    if n == 3: os._exit(4)\n"
        "    while n == 4: pass\n    return n"
    )
    statuses = ["right", "wrong", "runtime error", "runtime error", "time"]
    asserts = [f"assert f({n}) == {n}" for n in range(5)]
    methods = "".join(f"    def test_{n}(self): self.assertEqual(f({n}), {n})\n" for n in (0, 1, 2, 4))
    unit = f"import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n{methods}"
    for reference, name in ((asserts, "test {}"), ({"unittest": unit}, "T.test_{}")):
        parts = judge(reference, source, scoring="fraction", details=True, seconds=0.4).parts
        for number, status in enumerate(statuses):
            if reference is asserts or number != 3:
                label = name.format(number + (reference is asserts))
                assert parts[f"{label}{NOTE}{status}"] == 1.0, (number, status, parts)
        assert parts[f"program{NOTE}seconds"] >= 0.4 and parts[f"program{NOTE}MiB"] > 0  # type: ignore[operator]
    broken = judge(asserts, "def f(n:", details=True).parts
    assert broken["loads"] == 0.0 and broken[f"loads{NOTE}runtime error"] == 1.0
