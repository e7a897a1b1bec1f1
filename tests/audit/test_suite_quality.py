"""Rates, mutants and inputs of test suites."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.audit.suite import (
    auc,
    ceiling,
    diversity,
    generate,
    mean_correlation,
    mutants,
    mutation_score,
    separating,
    suite_rates,
    verifier_accuracy,
)
from assay.audit.suite.inputs import calls, clusters, suite, texts
from assay.errors import UsageError

DETECTION = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]], dtype=bool)

# Rates


def test_worked_example_of_detection() -> None:
    rates = suite_rates(np.ones((2, 3)), ~DETECTION)
    assert rates.tnr is not None and rates.tnr.value == 0.75
    assert not rates.accurate
    assert rates.false_positives == (2,)
    assert diversity(DETECTION) == (3, 1.0)


def test_a_clone_of_a_test_lowers_the_ratio_alone() -> None:
    cloned = np.hstack([DETECTION, DETECTION[:, :1]])
    assert suite_rates(np.ones((1, 4)), ~cloned).tnr == suite_rates(np.ones((1, 3)), ~DETECTION).tnr
    assert diversity(cloned) == (3, 0.75)


def test_worked_example_of_the_rates() -> None:
    right, wrong = np.ones((10, 4)), np.ones((20, 4))
    right[3, 2] = 0
    wrong[:17, 1] = 0
    rates = suite_rates(right, wrong)
    assert rates.tpr is not None and rates.tnr is not None
    assert (rates.tpr.value, rates.tnr.value, rates.balanced) == (0.9, 0.85, 0.875)
    assert rates.false_negatives == (3,) and rates.false_positives == (17, 18, 19)
    assert rates.tpr.low < 0.9 < rates.tpr.high


def test_worked_example_of_the_ceiling() -> None:
    assert ceiling(0.3, 0.2, 10) == pytest.approx(0.7202, abs=5e-5)
    assert ceiling(0.3, 0.2, 100) == pytest.approx(0.8200, abs=5e-5)
    assert ceiling(0.3, 0.2) == pytest.approx(0.83193, abs=5e-6)
    assert ceiling(0.3, 0.0, 2) == pytest.approx(0.51)
    assert (ceiling(0.3, 0.0), ceiling(0.0, 0.0), ceiling(0.3, 1.0, 50)) == (1.0, 0.0, pytest.approx(0.3))


def test_verifier_accuracy_is_a_share_of_problems() -> None:
    good, bad = suite_rates(np.ones((1, 1)), np.zeros((2, 1))), suite_rates(np.ones((1, 1)), np.ones((2, 1)))
    assert verifier_accuracy([good, bad, good, good]).value == 0.75
    assert suite_rates(np.ones((1, 1)), []).accurate
    assert suite_rates([], np.ones((1, 1))).tpr is None


def test_area_under_verifier_accuracy() -> None:
    # Problem 1 is right from its second test on, problem 2 from the first: the curve is .5, 1, 1.
    problems = [np.array([[1, 0, 0], [0, 1, 0]]), np.array([[1, 1, 1]])]
    assert auc(problems) == pytest.approx((0.75 + 1) / 2)
    with pytest.raises(ValueError, match="two tests"):
        auc([np.ones((2, 1))])


def test_correlation_against_numpy() -> None:
    table = np.array([[1, 1, 0, 1], [0, 1, 0, 1], [1, 0, 1, 1], [0, 0, 1, 1]], dtype=bool)
    c = np.corrcoef(table[:, :3].astype(float), rowvar=False)
    assert mean_correlation(table) == pytest.approx((c[0, 1] + c[0, 2] + c[1, 2]) / 3)
    assert np.isnan(mean_correlation(table[:, 3:]))


@given(st.integers(1, 6), st.integers(0, 6), st.data())
def test_more_tests_never_accept_more(tests: int, programs: int, data: st.DataObject) -> None:
    row = st.lists(st.booleans(), min_size=tests, max_size=tests)
    table = np.array(data.draw(st.lists(row, min_size=programs, max_size=programs))).reshape(programs, tests)
    found = [suite_rates([], table[:, :n]).rejected for n in range(1, tests + 1)]
    assert found == sorted(found)


def test_tables_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="table"):
        suite_rates([1, 0], [[1]])
    with pytest.raises(ValueError, match="ran 2 tests"):
        suite_rates([[1, 1]], [[1]])


# Mutants

CLAMP = '''
def clamp(x: int, low: int, high: int) -> int:
    """Put x between low and high."""
    if x < low:
        return low
    if x > high:
        return high
    return x
'''


def in_process(name: str) -> Any:
    """Runs programs this file wrote, here."""

    def run(source: str, inputs: Sequence[Any]) -> list[Any]:
        space: dict[str, Any] = {}
        exec(source, space)
        found: list[Any] = []
        for arguments in inputs:
            try:
                found.append(("returns", repr(space[name](*arguments))))
            except Exception as error:
                found.append(("raises", type(error).__name__))
        return found

    return run


def test_every_mutant_is_another_program_with_one_change() -> None:
    found = mutants(CLAMP)
    assert len({m.source for m in found}) == len(found) > 8
    for mutant in found:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(CLAMP))
        assert "Put x between low and high." in mutant.source and "x: int" in mutant.source
    assert {m.kind for m in found} == {"comparison", "condition", "return"}


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("y = a + b", "y = a - b"),
        ("y = a // 2", "y = a // 3"),
        ("y = a < b", "y = a <= b"),
        ("y = a and b", "y = a or b"),
        ("y = not a", "y = not not a"),
        ("y = True", "y = False"),
        ("for i in range(n):\n    s += i", "for i in range(n):\n    pass"),
        ("for i in range(n):\n    s += i", "for i in range(n):\n    s -= i"),
        ("while a:\n    a -= 1", "while False:\n    a -= 1"),
        ("def f():\n    return 3", "def f():\n    return None"),
        ("y = f'{a:03d}!' + 'b'", "y = f'{a:03d}!' + ''"),
        ("y = a[1:]", "y = a[0:]"),
        ("y = -a", "y = +a"),
        ("y = a not in b", "y = a in b"),
    ],
)
def test_kinds_of_mutants(source: str, changed: str) -> None:
    assert changed in [m.source for m in mutants(source)]


def test_a_suite_that_misses_boundaries_leaves_mutants() -> None:
    run = in_process("clamp")
    probes = [[x, 0, 5] for x in range(-3, 9)]
    wanted = dict(zip(map(repr, probes), run(CLAMP, probes), strict=True))
    same = suite(run, [(p, wanted[repr(p)]) for p in probes])
    weak = mutation_score(CLAMP, suite(run, [([3, 0, 5], ("returns", "3"))]), same)
    strong = mutation_score(CLAMP, same, same)
    assert weak.score is not None and weak.score < strong.score == 1.0
    # x < low and x <= low return the same: no test can tell them apart.
    assert {m.change for m in strong.equivalent} == {"Lt -> LtE", "Gt -> GtE"}
    assert not strong.survived and len(weak.survived) >= 3


def test_a_program_that_fails_its_own_suite_is_refused() -> None:
    with pytest.raises(UsageError, match="does not pass"):
        mutation_score(CLAMP, lambda source: False)
    with pytest.raises(UsageError, match="does not parse"):
        mutants("def (")
    with pytest.raises(UsageError):
        mutants("x = " + "-" * 5000 + "1")


def test_what_could_not_be_run_is_reported_and_not_counted() -> None:
    report = mutation_score("y = 1", lambda source: True if source == "y = 1" else None)
    assert report.score is None and len(report.untold) == 3


def test_fewer_mutants_spread_over_the_program() -> None:
    source = "\n".join(f"x{i} = a + {i}" for i in range(50))
    report = mutation_score(source, lambda s: s == source, most=10)
    assert len(report.killed) == 10
    assert report.killed[0].line <= 2 and report.killed[-1].line >= 40


# Inputs


def test_inputs_from_a_signature() -> None:
    found = generate("def f(a: list[Annotated[int, 0, 9]], k: int | None, s: str = '') -> int:", 50)
    assert len(found) == len({repr(x) for x in found}) == 50
    for a, k, s in found:
        assert all(0 <= x <= 9 for x in a) and (k is None or isinstance(k, int)) and isinstance(s, str)
    assert found == generate("def f(a: list[Annotated[int, 0, 9]], k: int | None, s: str = '') -> int", 50)


def test_inputs_from_a_format() -> None:
    spec = """
    n:int(1, 5) m:int(0, 3)
    a:ints(n, -2, 10^9)
    *m u:int(1, n) s:word(1, 4, ab)
    x:float(0, 1)
    """
    for text in generate(spec, 40):
        lines = text.splitlines()
        n, m = map(int, lines[0].split())
        assert len(lines[1].split()) == n and all(-2 <= int(x) <= 10**9 for x in lines[1].split())
        assert len(lines) == 3 + m
        for line in lines[2:-1]:
            u, s = line.split()
            assert 1 <= int(u) <= n and 1 <= len(s) <= 4 and set(s) <= {"a", "b"}
        assert 0 <= float(lines[-1]) <= 1


@pytest.mark.parametrize(
    "spec",
    ["", "n:int(1)", "n:int(1, q)", "a b c", "def f(a): pass", "def f(a: complex): pass", "def f(", "*k n:int(1,2)"],
)
def test_specs_that_cannot_be_read(spec: str) -> None:
    with pytest.raises(UsageError):
        generate(spec, 3)


def test_a_condition_on_inputs() -> None:
    assert all(
        x[0] % 7 == 0 for x in generate("def f(n: Annotated[int, 0, 700]): ...", 20, keep=lambda x: x[0] % 7 == 0)
    )
    with pytest.raises(UsageError, match="meets the condition"):
        generate("def f(n: bool): ...", 3, keep=lambda x: False)


RIGHT = ["def f(a): return max(a) if a else 0", "def f(a): return sorted(a)[-1] if len(a) else 0"]
WRONG = [
    "def f(a): return max(a)",
    "def f(a): return a[-1] if a else 0",
    "def f(a): return max([0, *a])",
    RIGHT[0] + " ",
]


def test_inputs_are_kept_when_they_separate() -> None:
    run = in_process("f")
    found = generate("def f(a: list[int]): ...", 60)
    kept = separating(found, RIGHT, WRONG, run)
    assert kept.surviving == (3,) and not kept.disputed
    assert all(any(row) for row in kept.detection[:3]) and len(kept.kept) <= 3
    rates = suite_rates(
        [
            [got == want for got, (_, want) in zip(run(p, [x for x, _ in kept.kept]), kept.kept, strict=True)]
            for p in RIGHT
        ],
        ~np.array(kept.detection),
    )
    assert rates.tpr is not None and rates.tpr.value == 1 and rates.false_positives == (3,)
    thrice = separating(found, RIGHT, WRONG, run, each=3)
    assert all(
        sum(row) >= min(3, sum(run(w, [x])[0] != run(RIGHT[0], [x])[0] for x in found))
        for row, w in zip(thrice.detection, WRONG, strict=True)
    )


def test_an_input_on_which_right_programs_differ_is_not_used() -> None:
    kept = separating([[1], [2]], ["def f(x): return x", "def f(x): return 1"], ["def f(x): return 5"], in_process("f"))
    assert kept.disputed == ([2],) and [x for x, _ in kept.kept] == [[1]]
    with pytest.raises(UsageError, match="right"):
        separating([], [], [], in_process("f"))


def test_clusters_without_labels() -> None:
    groups, kept = clusters([[[3, 1]], [[1, 3]], [[]], [[-2]], [[-5]]], [*RIGHT, *WRONG], in_process("f"))
    assert groups[0] == [0, 1, 5] and sorted(map(len, groups)) == [1, 1, 1, 3]
    assert kept == [[[3, 1]], [[]], [[-2]]]


@needs_sandbox
def test_programs_run_in_the_sandbox() -> None:
    run = calls("f")
    inputs = [[[3, 1]], [[]], [[7]]]
    assert run(RIGHT[0], inputs) == [("returns", "3"), ("returns", "0"), ("returns", "7")]
    assert run(WRONG[0], inputs)[1] == ("raises", "ValueError")
    leaving = "import os\ndef f(a):\n    if not a: os._exit(3)\n    return 1"
    assert run(leaving, inputs) == [("returns", "1"), ("ends", "error"), ("returns", "1")]
    assert run("def f(", inputs) == [("ends", "error")] * 3
    assert texts()("print(int(input()) + 1)", ["4\n", "x\n"]) == [("prints", b"5"), ("ends", "error")]
