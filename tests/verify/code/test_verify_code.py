"""Programs are judged by the tests of their task, in the shapes that data sets use."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.errors import UsageError
from assay.registry import build
from assay.sandbox import Limits, Outcome
from assay.sandbox.types import CallOutcome
from assay.types import Task, Verdict
from assay.verify.code import apart
from assay.verify.code.verifier import Code

pytestmark = needs_sandbox


def judge(reference: Any, source: str, mark: str = "python", **options: Any) -> Verdict:
    return Code(**options)(Task("t", "", reference, "code"), f"```{mark}\n{source}\n```")


# --- standard input and output ------------------------------------------------------------------------------------------

ADD = "a, b = map(int, input().split())\nprint(a + b)"
APPS = {"input_output": json.dumps({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]})}
TACO = {"inputs": [["1 2"], ["3 4"]], "outputs": [["3"], ["7"]]}
LIVE = {
    "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3", "testtype": "stdin"}]),
    "private_test_cases": base64.b64encode(
        zlib.compress(json.dumps([{"input": "3 4\n", "output": "7", "testtype": "stdin"}]).encode())
    ).decode(),
}
CONTESTS = {
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": [], "output": []},
    "generated_tests": {"input": ["3 4\n"], "output": ["7\n"]},
}
PAIRS = [{"input": "1 2", "output": "3"}, {"input": "3 4", "output": "7"}]


@pytest.mark.parametrize("reference", [APPS, TACO, LIVE, CONTESTS, PAIRS, {"tests": PAIRS}, json.dumps(PAIRS)])
def test_shapes_of_input_and_output(reference: Any) -> None:
    assert judge(reference, ADD) == Verdict(1.0, True, {"test 1": 1.0, "test 2": 1.0}, "")
    wrong = judge(reference, "a, b = map(int, input().split())\nprint(a * b + 1)")
    assert wrong.passed is False and wrong.parts == {"test 1": 1.0, "test 2": 0.0}
    assert wrong.feedback == "passed 1 of 2 tests; test 2: input '3 4': got '13', expected '7'"


def test_fraction_runs_every_test() -> None:
    source = "a, b = map(int, input().split())\nprint(a + b if a > 1 else 0)"
    assert judge(PAIRS, source).parts == {"test 1": 0.0}
    verdict = judge(PAIRS, source, scoring="fraction")
    assert (verdict.score, verdict.passed, verdict.parts) == (0.5, False, {"test 1": 0.0, "test 2": 1.0})
    assert judge(PAIRS, source, stop=False).score == 0.0


def test_reasons_of_programs_that_end_badly() -> None:
    for source, said in {
        "x = int('q')": "ValueError: invalid literal for int() with base 10: 'q'",
        "while True: pass": "more than 0.5 s of processor time",
        "a = bytearray(1 << 30)": "memory",
        "while True: print('x' * 10000)": "wrote more than",
        "import sys; sys.exit(3)": "exit code 3",
        "print(": "SyntaxError",
    }.items():
        verdict = judge(PAIRS, source, seconds=0.5, memory=128)
        assert verdict.passed is False and said in verdict.feedback, (source, verdict.feedback)


@pytest.mark.parametrize(
    ("language", "source", "broken"),
    [
        (
            "c",
            '#include <stdio.h>\nint main(void) {int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b);}',
            "int main(",
        ),
        ("cpp", "#include <iostream>\nint main() {int a, b; std::cin >> a >> b; std::cout << a + b;}", "int main("),
        (
            "javascript",
            "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number);\nconsole.log(a + b)",
            "let =",
        ),
        ("bash", "read a b; echo $((a + b))", "if"),
    ],
)
def test_languages(language: str, source: str, broken: str) -> None:
    reference = {"tests": PAIRS, "language": language}
    assert judge(reference, source, language).passed is True
    verdict = judge(reference, broken, language)
    assert verdict.passed is False and verdict.feedback
    assert judge(PAIRS, source, language, language=language).passed is True
    assert judge(PAIRS, source, language).feedback == "no python program found"


@pytest.mark.parametrize(
    ("rule", "same", "different"),
    [
        ("exact", "1 2\n3\n", "1 2\n3"),
        ("lines", "1 2 \n3\n\n", "1  2\n3\n"),
        ("tokens", "1\n2   3", "1 2 3.0"),
        ("floats", "1.0000001 2 3.0", "1.001 2 3"),
    ],
)
def test_rules_of_text(rule: Any, same: str, different: str) -> None:
    reference = [{"input": "", "output": "1 2\n3\n"}]
    assert judge(reference, f"import sys; sys.stdout.write({same!r})", text=rule).passed is True
    assert judge(reference, f"import sys; sys.stdout.write({different!r})", text=rule).passed is False
    by_task = {"tests": reference, "compare": rule}
    assert judge(by_task, f"import sys; sys.stdout.write({same!r})").passed is True


FACTORS = """
def check(given, output, answer):
    a, b = map(int, output.split())
    return 1 < a <= b and a * b == int(given)
"""
SCRIPT = """
import sys
given, output, answer = (open(p).read() for p in sys.argv[1:])
a, b = map(int, output.split())
sys.exit(0 if a > 1 and b > 1 and a * b == int(given) else 1)
"""
PRINTED = SCRIPT.replace("sys.exit(0 if", "print(1 if").replace("else 1)", "else 0)")
COMPILED = """
#include <fstream>
int main(int n, char** v) {long g, a = 0, b = 0; std::ifstream(v[1]) >> g; std::ifstream(v[2]) >> a >> b;
return a > 1 && b > 1 && a * b == g ? 0 : 1;}
"""


@pytest.mark.parametrize(
    "checker",
    [
        {"source": FACTORS, "function": "check"},
        SCRIPT,
        {"source": PRINTED, "accept": "stdout"},
        {"source": COMPILED, "language": "cpp"},
    ],
)
def test_checkers_judge_outputs(checker: Any) -> None:
    reference = {"tests": [{"input": "12", "output": "3 4"}], "checker": checker}
    for output, passed in {"3 4": True, "2 6": True, "5 5": False, "1 12": False, "": False, "x y": False}.items():
        verdict = judge(reference, f"print({output!r})")
        assert verdict.passed is passed, (output, verdict)


@pytest.mark.slow
def test_a_compiled_checker_is_compiled_again_when_its_header_changes() -> None:
    source = (
        '#include <fstream>\n#include "limit.h"\n'
        "int main(int, char** a) {std::ifstream f(a[2]); double x; f >> x; return x <= LIMIT ? 0 : 1;}"
    )

    def passed(header: str) -> bool | None:
        checker = {"source": source, "language": "cpp", "files": {"limit.h": header}}
        return judge({"inputs": ["", "9"], "outputs": ["1", "1"], "checker": checker}, "print(5)").passed

    assert [passed(f"#define LIMIT {n}") for n in (4, 6, 4, 6)] == [False, True, False, True]
    assert passed("nonsense") is None


def test_a_broken_checker_is_no_fault_of_the_program() -> None:
    for checker in (
        "raise ValueError",
        {"source": "import sys; sys.exit(9)"},
        {"source": "def check(", "function": "check"},
    ):
        verdict = judge({"tests": [{"input": "1", "output": "1"}], "checker": checker}, "print(1)")
        assert verdict.passed is None and "checker failed" in verdict.feedback


GUESS = """
import sys
secret = int(open(sys.argv[1]).read())
for turn in range(10):
    try: guess = int(input())
    except (EOFError, ValueError): sys.exit(1)
    print('=' if guess == secret else '<' if secret < guess else '>', flush=True)
    if guess == secret: sys.exit(0)
print('too many', file=sys.stderr); sys.exit(1)
"""
BISECT = """
low, high = 0, 1023
while True:
    middle = (low + high) // 2
    print(middle, flush=True)
    said = input()
    if said == '=': break
    if said == '<': high = middle - 1
    else: low = middle + 1
"""


def test_interactors() -> None:
    reference = {"inputs": ["700", "3"], "outputs": ["", ""], "interactor": GUESS}
    assert judge(reference, BISECT).passed is True
    linear = "n = 0\nwhile True:\n    print(n, flush=True)\n    if input() == '=': break\n    n += 1"
    for source in (
        linear,
        "print('700 = =')",
        "import sys; sys.exit(0)",
        "input(); input()",
        "print(700); import os; os._exit(0)",
    ):
        assert judge(reference, source, seconds=0.5).passed is False, source
    broken = judge({**reference, "interactor": "raise SystemExit(7)"}, "import sys; sys.stdin.read()")
    assert broken.passed is None


# --- functions --------------------------------------------------------------------------------------------------------

LEETCODE = (
    "class Solution:\n    def pairs(self, xs: List[int], k: int) -> List[int]:\n        return [x for x in xs if x > k]"
)
PLAIN = "def pairs(xs, k):\n    return tuple(x for x in xs if x > k)"
BY_NAME = {"fn_name": "pairs", "inputs": [[[1, 5], 2], [[], 0]], "outputs": [[5], []]}
LIVE_CALLS = {
    "metadata": json.dumps({"func_name": "pairs"}),
    "tests": [{"input": "[1, 5]\n2", "output": "[5]", "testtype": "functional"}, {"input": "[]\n0", "output": "[]"}],
}


@pytest.mark.parametrize("reference", [BY_NAME, LIVE_CALLS])
@pytest.mark.parametrize("source", [LEETCODE, PLAIN])
def test_functions_and_methods(reference: Any, source: str) -> None:
    assert judge(reference, source).passed is True
    assert judge(reference, source.replace("x > k", "x >= k")).passed is True
    wrong = judge(reference, source.replace("x > k", "x < k"))
    assert wrong.passed is False
    assert (
        wrong.feedback.startswith("passed 0 of 2 tests; test 1: pairs([1, 5], 2) gave")
        and "expected [5]" in wrong.feedback
    )


def test_wrapped_outputs_of_apps() -> None:
    reference = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[2], [3]]}
    assert judge(reference, "def f(x): return x + 1").passed is True
    assert judge(reference, "def f(x): return [x + 1]").passed is True
    assert judge(reference, "def f(x): return x + 2").passed is False


def test_a_crash_costs_its_test_only() -> None:
    reference = {"fn_name": "f", "inputs": [[0], [1], [2]], "outputs": [0, 1, 2]}
    source = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x"
    verdict = judge(reference, source, scoring="fraction")
    assert verdict.parts == {"test 1": 1.0, "test 2": 0.0, "test 3": 1.0} and verdict.score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("rule", "expected", "same", "different"),
    [
        ("exact", [1, [2, None]], "(1, [2, None])", "[1, [2]]"),
        ("exact", {"a": float("nan")}, "{'a': float('nan')}", "{'a': 0.0}"),
        ("approximate", [0.1, {"a": 1}], "[0.1 + 1e-9, {'a': 1}]", "[0.11, {'a': 1}]"),
        ("unordered", [[1, 2], [3, 4]], "[[3, 4], [1, 2]]", "[[2, 1], [3, 4]]"),
        ("unordered", [1, 1, 2], "{1: 0, 2: 0} and [2, 1, 1]", "[1, 2, 2]"),
        ("set", [1, 2], "[2, 1, 1]", "[1, 2, 3]"),
        ("unordered_approximate", [0.5, 0.25], "[0.25 + 1e-9, 0.5]", "[0.25, 0.6]"),
        ("exact", 5, "5", "'5'"),
    ],
)
def test_rules_of_values(rule: Any, expected: Any, same: str, different: str) -> None:
    reference = {"fn_name": "f", "inputs": [[0]], "outputs": [expected], "compare": rule}
    assert judge(reference, f"def f(x): return {same}").passed is True
    assert judge(reference, f"def f(x): return {different}").passed is False


def test_a_tasks_own_comparer() -> None:
    compare = {"source": "def same(got, expected, args): return got % args[0] == expected", "function": "same"}
    reference = {"fn_name": "f", "inputs": [[7]], "outputs": [3], "compare": compare}
    assert judge(reference, "def f(x): return 10").passed is True
    assert judge(reference, "def f(x): return 11").passed is False
    assert judge(reference, "def f(x): return None").passed is False
    broken = {**reference, "compare": {"source": "def same(*a): raise ValueError", "function": "same"}}
    assert judge(broken, "def f(x): return 10").passed is None


# --- tests that compare by themselves -----------------------------------------------------------------------------------


def test_mbpp() -> None:
    reference = {"test_list": ["assert add(1, 2) == 3", "assert add([1], [2]) == [1, 2]"], "test_setup_code": ""}
    assert judge(reference, "def add(a, b): return a + b").passed is True
    verdict = judge(reference, "def add(a, b): return a - b")
    assert verdict.passed is False
    assert verdict.feedback == "passed 0 of 2 tests; test 1: assert add(1, 2) == 3; add(1, 2) gave -1"
    assert judge(reference["test_list"], "def add(a, b): return a + b").passed is True
    assert judge(reference, "def plus(a, b): return a + b").passed is False


def test_a_function_called_like_a_builtin_is_the_programs() -> None:
    reference = {"test_list": ["assert sum(10, 15) == 6", "assert sum(100, 150) == 93"], "code": "def sum(a, b): ..."}
    source = "def sum(a, b):\n    return {} if False else __import__('builtins').sum(i for i in range(1, min(a, b)) if a % i == b % i == 0)"
    assert judge(reference, source).passed is True
    # But no other: these tests use len of their own.
    assert judge(["assert len(f(1)) == 3"], "def f(x): return [1]\ndef len(x): return 3").passed is False


@pytest.mark.parametrize(
    ("tests", "right", "wrong"),
    [
        (["xs = [3, 1]\nsort(xs)\nassert xs == [1, 3]"], "def sort(xs): xs.sort()", "def sort(xs): sorted(xs)"),
        (["assert f(lambda x: x + 1, 2) == 3"], "def f(g, x): return g(x)", "def f(g, x): return x"),
        (["assert adder(2)(3) == 5"], "def adder(n): return lambda x: x + n", "def adder(n): return lambda x: n"),
        (["assert list(count(3)) == [0, 1, 2]"], "def count(n): yield from range(n)", "def count(n): yield n"),
        (["assert f(i for i in range(3)) == 3"], "def f(x): return sum(x)", "def f(x): return 4"),
        (["import math\nassert math.isclose(f(2), 2 ** 0.5)"], "def f(x): return x ** 0.5", "def f(x): return x / 2"),
        (
            ["try:\n    f(0)\n    assert False\nexcept ZeroDivisionError:\n    pass"],
            "def f(x): return 1 // x",
            "def f(x): return x",
        ),
        (["assert f({1: (2, {3})}) == {1: (2, {3})}"], "def f(x): return x", "def f(x): return {1: [2, {3}]}"),
        (
            ["from fractions import Fraction\nassert f(1, 3) == Fraction(1, 3)"],
            "from fractions import Fraction as f",
            "def f(a, b): return a / b",
        ),
        (["assert f(3) is True"], "def f(x): return x > 2", "def f(x): return 1"),
        (["assert f('\\ud800') == '\\ud800'"], "def f(x): return x", "def f(x): return '?'"),
        (["assert f(10 ** 5000) == 10 ** 5000 + 1"], "def f(x): return x + 1", "def f(x): return x"),
    ],
)
def test_values_of_many_kinds_cross(tests: list[str], right: str, wrong: str) -> None:
    verdict = judge(tests, right)
    assert verdict.passed is True, verdict
    assert judge(tests, wrong).passed is False


def test_a_crash_costs_its_assert_only() -> None:
    tests = [f"assert f({x}) == {x}" for x in range(3)]
    source = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x"
    verdict = judge(tests, source, scoring="fraction")
    assert verdict.parts == {"test 1": 1.0, "test 2": 0.0, "test 3": 1.0}
    assert judge(tests, source).parts == {"test 1": 1.0, "test 2": 0.0}
    slow = judge(tests, source.replace("os._exit(0)", "\n        while True: pass"), seconds=0.3)
    assert slow.feedback.endswith("test 2: assert f(1) == 1; f(1); it took more than 0.3 s of processor time")


def test_a_crash_costs_its_unit_test_only() -> None:
    methods = "".join(
        f"    def test_{n}(self): self.assertEqual(f({n}), {n}); self.assertEqual(C({n}).n, {n})\n" for n in range(4)
    )
    source = "import os\ndef f(x):\n    if x in (1, 2): os._exit(0)\n    return x\nclass C:\n    def __init__(self, n): self.n = n"
    for shape in ("unittest", "pytest"):
        tests = f"import unittest\nfrom solution import f, C\nclass T(unittest.TestCase):\n{methods}"
        verdict = judge({shape: tests}, source, scoring="fraction")
        assert list(verdict.parts.values()) == [1.0, 0.0, 0.0, 1.0], (shape, verdict)


def test_a_program_may_use_packages_and_files() -> None:
    pytest.importorskip("numpy")
    reference = {"test_list": ["assert f([1, 2, 3]) == 6"], "packages": ["numpy"]}
    source = "import numpy as np\ndef f(xs): return np.array(xs).sum()"
    assert judge(reference, source).passed is True
    assert judge({**reference, "packages": []}, source).passed is False
    text = {"tests": [{"input": "", "output": "here"}], "files": {"data.txt": "here"}}
    assert judge(text, "print(open('data.txt').read())").passed is True


def test_coroutines_and_awaited_values() -> None:
    tests = "import unittest\nfrom solution import f\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_f(self):\n        self.assertEqual(await f(2), 3)\n"
    source = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x + 1"
    assert judge({"unittest": tests}, source).passed is True
    assert judge({"unittest": tests}, source.replace("+ 1", "+ 2")).passed is False


STACK = """
class EmptyError(Exception): pass
class Stack:
    limit = 3
    def __init__(self, items=()): self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self):
        if not self.items: raise EmptyError('nothing left')
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __contains__(self, item): return item in self.items
    def __eq__(self, other): return isinstance(other, Stack) and self.items == other.items
    def __add__(self, other): return Stack(self.items + other.items)
    def __iter__(self): return iter(self.items)
    @property
    def top(self): return self.items[-1]
"""
STACK_TESTS = """
import unittest
from solution import EmptyError, Stack
class TestStack(unittest.TestCase):
    def setUp(self):
        self.stack = Stack([1])
    def test_push(self):
        self.stack.push(2).push(3)
        self.assertEqual(len(self.stack), 3)
        self.assertEqual(self.stack.top, 3)
        self.assertIn(2, self.stack)
        self.assertNotIn(9, self.stack)
        self.assertIsInstance(self.stack, Stack)
        self.assertEqual(list(self.stack), [1, 2, 3])
    def test_pop(self):
        self.assertEqual(self.stack.pop(), 1)
        with self.assertRaisesRegex(EmptyError, 'nothing'):
            self.stack.pop()
        self.assertFalse(self.stack)
    def test_operators(self):
        self.assertEqual(Stack([1]), self.stack)
        self.assertNotEqual(Stack([2]), self.stack)
        self.assertEqual(Stack([1]) + Stack([2]), Stack([1, 2]))
        self.assertEqual(Stack.limit, 3)
        self.stack.items = [7]
        self.assertEqual(self.stack.pop(), 7)
    @unittest.skip('not yet')
    def test_later(self):
        raise ValueError
"""


def test_classes_with_state_through_unittest() -> None:
    verdict = judge({"unittest": STACK_TESTS}, STACK)
    assert verdict.passed is True, verdict
    assert verdict.parts["TestStack.test_later"] is None and len(verdict.parts) == 4
    for old, new in {
        "return self.items.pop()": "return self.items[-1]",
        "self.items + other.items": "self.items",
    }.items():
        wrong = judge({"unittest": STACK_TESTS}, STACK.replace(old, new), scoring="fraction")
        assert wrong.passed is False and wrong.score == pytest.approx(2 / 3), wrong


def test_pytest_fixtures_and_exceptions() -> None:
    pytest_file = (
        "import pytest\nimport shop.cart as cart\n@pytest.fixture\ndef filled():\n    c = cart.Cart()\n    c.add('a', 2)\n    return c\n"
        "def test_total(filled):\n    assert filled.total() == 2\ndef test_bad(filled):\n    with pytest.raises(ValueError, match='neg'):\n"
        "        filled.add('b', -1)\n@pytest.mark.skip\ndef test_later(): assert False\ndef test_print(capsys):\n    cart.hello()\n"
        "    assert capsys.readouterr().out == 'hi\\n'\n"
    )
    source = (
        "class Cart:\n    def __init__(self): self.sum = 0\n    def add(self, name, price):\n"
        "        if price < 0: raise ValueError('negative')\n        self.sum += price\n    def total(self): return self.sum\n"
        "def hello(): print('hi')\n"
    )
    verdict = judge({"pytest": pytest_file, "module": "shop.cart"}, source)
    assert verdict.passed is True, verdict
    assert verdict.parts["test_later"] is None
    wrong = judge({"pytest": pytest_file}, source.replace("price < 0", "price < -5"), scoring="fraction")
    assert wrong.score == pytest.approx(2 / 3) and wrong.parts["test_bad"] == 0.0


def test_doctest() -> None:
    reference = {
        "doctest": "Squares.\n\n>>> square(3)\n9\n>>> square('x')\nTraceback (most recent call last):\n    ...\nTypeError: no\n"
    }
    source = "def square(x):\n    if isinstance(x, str): raise TypeError('no')\n    return x * x"
    assert judge(reference, source).passed is True
    assert judge(reference, source.replace("x * x", "x + x")).passed is False


def test_what_stand_ins_cannot_do_needs_leave() -> None:
    tests = "import solution\nfrom unittest import mock\ndef test_it():\n    with mock.patch('solution.now', lambda: 5):\n        assert solution.later() == 6\n"
    source = "def now(): return 1\ndef later(): return now() + 1"
    refused = judge({"unittest": tests}, source)
    assert refused.passed is None and "allow_shared_process" in refused.feedback
    verdict = judge({"unittest": tests}, source, allow_shared_process=True)
    assert verdict.passed is True and verdict.parts["unisolated"] == 1.0 and "one process" in verdict.feedback
    wrong = judge({"unittest": tests}, source.replace("+ 1", "+ 2"), allow_shared_process=True)
    assert wrong.passed is False and wrong.parts["unisolated"] == 1.0


def test_programs_that_do_not_load() -> None:
    for source, said in {
        "def f(:": "SyntaxError",
        "1 / 0": "ZeroDivisionError",
        "import nothing_like_it": "ModuleNotFoundError",
    }.items():
        verdict = judge(["assert f(1) == 1"], source)
        assert verdict.passed is False and verdict.parts == {"loads": 0.0} and said in verdict.feedback
    for shape in ("pytest", "unittest"):
        missing = judge({shape: "from solution import f\ndef test_f(): assert f(1) == 1"}, "def g(x): return x")
        assert missing.passed is False and missing.feedback.endswith("loads: the program defines no f")
        early = judge(
            {shape: "from solution import f\nX = f(1)\ndef test_f(): assert X == 1"}, "def f(x): return x / 0"
        )
        assert early.passed is False and "ZeroDivisionError" in early.feedback


def test_tests_that_are_broken_abstain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "TESTS_LIMITS", Limits(cpu_seconds=1))
    for reference in (
        ["assert f(1 == 1"],
        {"entry_point": "f", "test": "def check(candidate):\n    assert candidate(1) =="},
        {"unittest": "import nothing_like_it_either\nraise RuntimeError('ours')"},
        {"unittest": "import solution"},
        {"pytest": "import solution\nimport nothing_like_it_either\ndef test_f(): assert solution.f(1) == 1"},
        {"entry_point": "f", "test": "def check(candidate):\n    while True: pass"},
    ):
        verdict = judge(reference, "def f(x): return x")
        assert verdict.passed is None and verdict.feedback, reference


# --- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reference",
    [
        None,
        5,
        "",
        "print",
        [],
        {},
        {"inputs": [], "outputs": []},
        {"inputs": ["1"], "outputs": ["1", "2"]},
        {"tests": [{"question": 1}]},
        {"private_test_cases": base64.b64encode(zlib.compress(pickle.dumps("[]"))).decode()},
        {"tests": PAIRS, "language": "cobol"},
        {"tests": PAIRS, "checker": 5},
        {"tests": PAIRS, "compare": "vaguely"},
        {"tests": PAIRS, "time_limit": -1},
        {"fn_name": "f", "inputs": [[1]], "outputs": [1], "language": "c"},
        {"test": "def check(candidate): pass"},
    ],
)
def test_references_without_usable_tests_abstain(reference: Any) -> None:
    verdict = judge(reference, "print(1)")
    assert verdict.passed is None and verdict.feedback


def test_a_failing_sandbox_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def run(self, *_: Any) -> Outcome:
            return Outcome("infrastructure", reason="no more processes")

        def call(self, *_: Any) -> Any:
            return calls_outcome

        def interact(self, *_: Any) -> Outcome:
            return Outcome("infrastructure", reason="no more processes")

    calls_outcome = CallOutcome((), Outcome("infrastructure", reason="no more processes"))
    monkeypatch.setattr("assay.verify.code.verifier.sandbox", Broken)
    for reference in (PAIRS, BY_NAME, ["assert f(1) == 1"]):
        verdict = judge(reference, ADD)
        assert verdict.passed is None and "no more processes" in verdict.feedback


def test_options_are_checked() -> None:
    for options in ({"language": "cobol"}, {"seconds": 0}, {"total_seconds": 0}, {"memory": 1}, {"scoring": "some"}):
        with pytest.raises(UsageError):
            build("verify", {"name": "code", **options})
    assert build("verify", "code") == Code()


def test_total_seconds_bound_all_runs() -> None:
    reference = [{"input": "", "output": ""}] * 10
    source = "import time\nwhile time.process_time() < 0.2: pass"
    verdict = judge(reference, source, total_seconds=0.3, stop=False)
    assert verdict.passed is False and len(verdict.parts) < 6 and "not run" in verdict.feedback


@settings(max_examples=25)
@given(st.text(st.characters(), max_size=200))
@example("\ud800")
@example("```python\n\0\n```")
@example("```python\nx = '\ud800'\nprint(x)\n```")
def test_no_response_raises(text: str) -> None:
    for reference in ([{"input": "", "output": "\ud800"}], {"fn_name": "f", "inputs": [[1]], "outputs": [1]}):
        verdict = Code(seconds=0.2)(Task("t", "", reference, "code"), text)
        assert verdict.passed is False
