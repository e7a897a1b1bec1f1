"""Checkers of puzzles against brute force, solvers against brute force, and all of them against any text."""

from __future__ import annotations

import itertools
import json
import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.logic.sat import dimacs
from assay.verify.logic.sexpr import SyntaxFault, parse, show
from assay.verify.puzzles.knights_knaves import holds, solutions
from assay.verify.puzzles.maze import distances
from assay.verify.puzzles.puzzle import denies, unfence
from assay.verify.puzzles.reading import assignment

pytestmark = pytest.mark.usefixtures("patient")


def judge(kind: str, reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": kind, **options})(Task("t", "?", reference, kind), response)


def said(answer: object) -> str:
    return f"<answer>{answer}</answer>"


SUDOKU = {"puzzle": ["1.3.", "..1.", ".1..", "...1"]}
ISLAND = {
    "people": ["Ann", "Bob"],
    "statements": [["Ann", ["and", ["knave", "Ann"], ["knave", "Bob"]]], ["Bob", True]],
}
MAZE = {"grid": ["S.#", "..G"], "shortest": True}
SQUARE = {"edges": [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]]}
REFERENCES = {
    "sudoku": SUDOKU,
    "knights_knaves": ISLAND,
    "maze": MAZE,
    "colouring": {**SQUARE, "colours": 2},
    "hamiltonian": {**SQUARE, "cycle": True},
    "tour": {"points": [[0, 0], [0, 1], [1, 1], [1, 0]], "bound": 4},
    "queens": {"n": 4},
    "subset_sum": {"numbers": [3, 5, 7], "target": 12},
    "knapsack": {"items": {"cup": [2, 3], "pot": [3, 4]}, "capacity": 4, "at_least": 4},
    "bin_packing": {"sizes": [4, 6, 7, 3], "capacity": 10, "bins": 2},
    "sat": {"clauses": [[1, -2], [2, 3]]},
}


# --- one right and one wrong answer of each, with the reason ----------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("sudoku", "1 2 3 4\n3 4 1 2\n4 1 2 3\n2 3 4 1"),
        ("sudoku", "| 1 2 | 3 4 |\n| 3 4 | 1 2 |\n|-----+-----|\n| 4 1 | 2 3 |\n| 2 3 | 4 1 |"),
        ("sudoku", "[[1,2,3,4],[3,4,1,2],[4,1,2,3],[2,3,4,1]]"),
        ("sudoku", "Here:\n```\n1234\n3412\n4123\n2341\n```\n"),
        ("knights_knaves", "Ann is a knave and Bob is a knight."),
        ("knights_knaves", "Ann: knave, Bob: knight"),
        ("knights_knaves", "Ann is not a knight. Bob isn't a knave."),
        ("maze", "DRR"),
        ("maze", "down, right, right"),
        ("maze", "R → D → R"),
        ("maze", "(0, 0) -> (0, 1) -> (1, 1) -> (1, 2)"),
        ("colouring", '{"a": "red", "b": 2, "c": "red", "d": 2}'),
        ("colouring", "a: red\nb = blue\n**c**: Red\nd is blue"),
        ("hamiltonian", "a, b, c, d"),
        ("hamiltonian", "Tour: a -> d -> c -> b -> a"),
        ("tour", "0 1 2 3"),
        ("queens", "1 3 0 2"),
        ("queens", ".Q..\n...Q\nQ...\n..Q."),
        ("queens", "(0,1), (1,3), (2,0), (3,2)"),
        ("subset_sum", "5 + 7 = 12"),
        ("subset_sum", "[7, 5]"),
        ("knapsack", "pot"),
        ("bin_packing", "[[4, 6], [7, 3]]"),
        ("bin_packing", "bin 1: 4 6\nbin 2: 7, 3"),
        ("sat", "s SATISFIABLE\nv 1 -2 3 0"),
        ("sat", "x1 = true, x2 = true, x3 = false"),
    ],
)
def test_a_valid_solution_is_right(kind: str, answer: str) -> None:
    verdict = judge(kind, REFERENCES[kind], said(answer))
    assert verdict.passed is True, verdict
    assert judge(kind, json.dumps(REFERENCES[kind]), said(answer)).passed is True


@pytest.mark.parametrize(
    ("kind", "answer", "complaint"),
    [
        ("sudoku", "1 2 3 4\n3 4 1 2\n4 1 2 3\n2 3 4 2", "row 4, column 4 is given as 1, not 2"),
        ("sudoku", "1 2 3 4\n2 4 1 3\n3 1 4 2\n4 3 2 1", "box 1 has 2 twice"),
        ("sudoku", "1 2 3 4\n3 4 1 2", "no 4 lines of 4 cells"),
        ("sudoku", "1 2 3 4\n3 4 1 2\n4 1 2 3\n2 3 9 1", "'9', which is no symbol"),
        ("knights_knaves", "Ann is a knight and Bob is a knight", "Ann would be a knight and what Ann says"),
        ("knights_knaves", "Bob is a knight", "does not say what Ann is"),
        ("knights_knaves", "Ann is a knave. Bob is a knight. Ann is a knight.", "both"),
        ("maze", "RRD", "step 2, right, leads into a wall"),
        ("maze", "DR", "ends at (1, 1)"),
        ("maze", "DUDRR", "takes 5 steps, 3 are enough"),
        ("maze", "DRRR", "step 4, right, leads into a wall or outside"),
        ("maze", "fly", "'fly' is no move"),
        ("maze", "(0, 0), (1, 1), (1, 2)", "step 1 jumps"),
        ("maze", "no path", "there is a path"),
        ("colouring", "a: 1, b: 1, c: 2, d: 3", "a and b are neighbours and both 1"),
        ("colouring", "a: 1, b: 2, c: 3, d: 2", "uses 3 colours"),
        ("colouring", "a: 1, b: 2, c: 1", "d has no colour"),
        ("colouring", "a: 1, b: 2, c: 1, d: 2, a: 2", "both"),
        ("hamiltonian", "a b d c", "no edge from b to d"),
        ("hamiltonian", "a b c", "does not visit d"),
        ("hamiltonian", "a b a d", "visits a twice"),
        ("tour", "0 2 1 3", "the tour is 4.82843 long"),
        ("queens", "0 1 2 3", "on one diagonal"),
        ("queens", "1 3 0", "places 3 queens"),
        ("queens", "1 3 0 4", "off the board"),
        ("subset_sum", "5 + 5 + 2", "is not given"),
        ("subset_sum", "3, 7", "adds up to 10"),
        ("knapsack", "cup", "is worth 3"),
        ("knapsack", "cup, pot", "weighs 5"),
        ("knapsack", "lid", "is no item"),
        ("bin_packing", "[[4, 7], [6, 3]]", "a bin holds 11"),
        ("bin_packing", "[[4, 6], [7], [3]]", "uses 3 bins"),
        ("bin_packing", "[[4, 6], [7]]", "does not pack 3"),
        ("sat", "v -1 2 0", "clause 1 -2 is not satisfied"),
        ("sat", "v 1 -1 2 0", "both true and false"),
    ],
)
def test_the_first_violated_constraint_is_named(kind: str, answer: str, complaint: str) -> None:
    verdict = judge(kind, REFERENCES[kind], said(answer))
    assert verdict.passed is False and verdict.score == 0.0
    assert complaint in verdict.feedback
    assert 0.0 <= judge(kind, REFERENCES[kind], said(answer), partial=True).score < 1.0


def test_partial_credit_grows_with_what_is_kept() -> None:
    better, worse = "1 2 3 4\n3 4 1 2\n4 1 2 3\n2 3 1 1", "1 1 1 1\n1 1 1 1\n1 1 1 1\n1 1 1 1"
    scores = [judge("sudoku", SUDOKU, said(grid), partial=True).score for grid in (better, worse)]
    assert scores[0] > scores[1]
    assert judge("maze", MAZE, said("DR"), partial=True).score == pytest.approx(2 / 3)
    parts = judge("sat", {"clauses": [[1], [2], [3], [4]]}, said("1 2 3 -4")).parts
    assert parts["clauses"] == 0.75


@pytest.mark.parametrize("kind", sorted(REFERENCES))
@pytest.mark.parametrize(
    "reference", [None, 3, "x", "[", [], {}, {"puzzle": "12"}, {"grid": ["#"]}, {"n": 0}, {"edges": 3}]
)
def test_a_bad_reference_is_abstained_on(kind: str, reference: object) -> None:
    assert judge(kind, reference, said("1 2 3")).passed is None


def test_unsolvable_puzzles_are_denied() -> None:
    for answer in ("no solution", "Impossible.", "There is no valid colouring", "UNSAT"):
        assert judge("colouring", {**SQUARE, "colours": 1, "solvable": False}, said(answer)).passed is True
        assert judge("colouring", {**SQUARE, "colours": 2}, said(answer)).passed is False
    assert judge("maze", {"grid": ["S#G"]}, said("no path")).passed is True
    assert judge("maze", {"grid": ["S#G"]}, said("RR")).passed is False
    assert judge("queens", {"n": 3}, said("impossible")).passed is True
    assert not denies("it is not impossible, a: 1")


# --- brute force ------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda e: e[0] != e[1]), min_size=1, max_size=6))
def test_colourings_agree_with_enumeration(edges: list[tuple[int, int]]) -> None:
    vertices = sorted({v for edge in edges for v in edge})
    reference = {"edges": [[f"v{a}", f"v{b}"] for a, b in edges], "colours": 2}
    for colours in itertools.product("rg", repeat=len(vertices)):
        colour = dict(zip(vertices, colours, strict=True))
        right = all(colour[a] != colour[b] for a, b in edges)
        assert judge("colouring", reference, said(", ".join(f"v{v}={c}" for v, c in colour.items()))).passed is right


def test_4x4_sudoku_accepts_exactly_the_288_grids() -> None:
    rows = list(itertools.permutations("1234"))
    accepted = 0
    verifier = build("verify", "sudoku")
    task = Task("t", "?", {"puzzle": "." * 16}, "sudoku")
    # The first row is fixed by symmetry: 288 / 24 = 12 grids begin with 1234.
    for rest in itertools.product(rows, repeat=3):
        if any(len({"1234"[c], *(row[c] for row in rest)}) < 4 for c in range(4)):
            continue
        grid = "\n".join(["1234", *("".join(row) for row in rest)])
        accepted += verifier(task, said(grid)).passed is True
    assert accepted == 12


def test_a_9x9_and_a_16x16_grid() -> None:
    for height in (3, 4):
        size = height * height
        grid = [[(r * height + r // height + c) % size + 1 for c in range(size)] for r in range(size)]
        puzzle = [[cell if (r + c) % 3 else None for c, cell in enumerate(row)] for r, row in enumerate(grid)]
        text = "\n".join(" ".join(map(str, row)) for row in grid)
        assert judge("sudoku", {"puzzle": puzzle}, said(text)).passed is True
        assert judge("sudoku", {"puzzle": puzzle}, "I think:\n" + text).passed is True
        grid[0][0], grid[0][1] = grid[0][1], grid[0][0]
        assert judge("sudoku", {"puzzle": puzzle}, said("\n".join(" ".join(map(str, r)) for r in grid))).passed is False


STATEMENT = st.recursive(
    st.sampled_from([["knight", "A"], ["knave", "B"], ["knight", "C"], True, ["count", "knaves", ">=", 2]]),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner).map(list),
        st.tuples(st.sampled_from(["and", "or", "xor", "iff", "implies"]), inner, inner).map(list),
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(st.tuples(STATEMENT, STATEMENT, STATEMENT))
def test_knights_and_knaves_agree_with_a_truth_table(statements: tuple[object, ...]) -> None:
    def truth(s: object, w: dict[str, bool]) -> bool:
        if s is True:
            return True
        assert isinstance(s, list)
        match s:
            case ["knight", name]:
                return w[name]
            case ["knave", name]:
                return not w[name]
            case ["count", _, _, n]:
                return list(w.values()).count(False) >= n
            case ["not", x]:
                return not truth(x, w)
            case ["and", x, y]:
                return truth(x, w) and truth(y, w)
            case ["or", x, y]:
                return truth(x, w) or truth(y, w)
            case ["xor", x, y]:
                return truth(x, w) is not truth(y, w)
            case ["iff", x, y]:
                return truth(x, w) is truth(y, w)
            case ["implies", x, y]:
                return truth(y, w) if truth(x, w) else True
        raise AssertionError(s)

    said_by = list(zip("ABC", statements, strict=True))
    reference = {"people": list("ABC"), "statements": [list(pair) for pair in said_by]}
    consistent = []
    for roles in itertools.product((True, False), repeat=3):
        world = dict(zip("ABC", roles, strict=True))
        right = all(truth(s, world) == world[who] for who, s in said_by)
        consistent += [roles] if right else []
        answer = ", ".join(f"{who} is a {'knight' if k else 'knave'}" for who, k in world.items())
        assert judge("knights_knaves", reference, said(answer)).passed is right
        unique = judge("knights_knaves", {**reference, "unique": True}, said(answer)).passed
        if len(consistent) > 1:
            assert unique is None or right is False or unique is not True
    assert set(solutions(json.dumps([list("ABC"), said_by]))) == set(consistent)


def test_a_statement_nested_too_deep_is_no_statement() -> None:
    deep: object = True
    for _ in range(10_000):
        deep = ["not", deep]
    with pytest.raises(ValueError, match="is no statement"):
        holds(deep, {"A": True})
    assert judge("knights_knaves", {"people": ["A"], "statements": [["A", deep]]}, said("A is a knight")).passed is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("..#", min_size=3, max_size=3), min_size=3, max_size=3))
def test_mazes_agree_with_all_walks(rows: list[str]) -> None:
    grid = ["S" + rows[0][1:], rows[1], rows[2][:2] + "G"]
    reference = {"grid": grid, "shortest": True}
    verifier = build("verify", "maze")
    reachable = set()
    for length in range(4, 7):
        for walk in itertools.product("UDLR", repeat=length):
            r = c = 0
            for move in walk:
                r, c = r + {"U": -1, "D": 1}.get(move, 0), c + {"L": -1, "R": 1}.get(move, 0)
                if not (0 <= r < 3 and 0 <= c < 3) or grid[r][c] == "#":
                    break
            else:
                if (r, c) == (2, 2):
                    reachable.add(length)
                    if length == min(reachable):
                        assert verifier(Task("t", "?", reference), said("".join(walk))).passed is True
                    else:
                        assert verifier(Task("t", "?", reference), said("".join(walk))).passed is False
    # No path of a 3 x 3 maze from corner to corner needs more than 6 steps.
    assert (distances(verifier.read(reference)).get((0, 0), math.inf) <= 6) == bool(reachable)


def test_queens_agree_with_all_placements() -> None:
    verifier, task = build("verify", "queens"), Task("t", "?", {"n": 6, "origin": 1})
    right = sum(verifier(task, said(list(columns))).passed is True for columns in itertools.permutations(range(1, 7)))
    assert right == 4  # the 6 x 6 board has four


def test_subset_sums_agree_with_enumeration() -> None:
    numbers, target = [2, 3, 3, 5, 8], 11
    for size in range(1, 6):
        for chosen in itertools.combinations(numbers, size):
            verdict = judge("subset_sum", {"numbers": numbers, "target": target}, said(list(chosen)))
            assert verdict.passed is (sum(chosen) == target)
    assert judge("subset_sum", {"numbers": numbers, "target": 6}, said("3 3")).passed is True
    assert judge("subset_sum", {"numbers": numbers, "target": 4}, said("2 2")).passed is False


@pytest.mark.parametrize("digits", [19, 31, 4000, 4001, 4301, 90_000])
def test_integers_of_any_length_are_values(digits: int) -> None:
    long = "9" * digits
    assert judge("subset_sum", {"numbers": [2, 3], "target": 5}, f"{long}, 2, 3").passed is False
    assert judge("bin_packing", {"sizes": [2], "capacity": 3, "bins": 1}, f"[[2], [-{long}]]").passed is False
    assert judge("queens", {"n": 4}, f"1 3 0 {long}").passed is False
    assert judge("sat", {"clauses": [[1], [-1, 2]]}, f"1 -{long} 2").passed is True  # a variable of no clause
    assert judge("sat", {"clauses": [[1]]}, f"{long} 1 -{long}").passed is False
    for kind, reference in (("subset_sum", {"numbers": [2], "target": 5}), ("queens", {"n": 4})):
        verdict = judge(kind, reference, f"{long} {long} 7 -{long}")
        assert verdict.passed is False and len(verdict.feedback) < 300


def test_long_integers_of_a_task_are_read() -> None:
    big = 10**40 + 7
    verdict = judge("subset_sum", {"numbers": [big, -big, 1], "target": big + 1}, f"{big} + 1")
    assert verdict.passed is True, verdict
    assert judge("subset_sum", {"numbers": [big, 1], "target": big + 1}, f"{big + 1} + 1").passed is False
    assert judge("subset_sum", {"numbers": [7], "target": 7}, "0" * 50 + "7").passed is True


# --- solvers ----------------------------------------------------------------------------------------------------------

CLAUSES = st.lists(
    st.lists(st.integers(1, 4).flatmap(lambda v: st.sampled_from([v, -v])), min_size=1, max_size=3),
    min_size=1,
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(CLAUSES)
def test_sat_agrees_with_a_truth_table(clauses: list[list[int]]) -> None:
    pytest.importorskip("z3")
    models = 0
    for values in itertools.product((True, False), repeat=4):
        right = all(any(values[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)
        models += right
        line = "v " + " ".join(str(i if v else -i) for i, v in enumerate(values, 1)) + " 0"
        assert judge("sat", {"clauses": clauses}, said(line)).passed is right
    assert judge("sat", {"clauses": clauses}, said("s UNSATISFIABLE")).passed is (models == 0)
    text = f"c a comment\np cnf 4 {len(clauses)}\n" + "\n".join(" ".join(map(str, c)) + " 0" for c in clauses)
    assert dimacs(text) == tuple(map(tuple, clauses))


SMT = "(declare-const x Int)(declare-const y Int)(assert (> x y))(assert (= (+ x y) 7))"


def test_smt_models_agree_with_enumeration() -> None:
    pytest.importorskip("z3")
    for x, y in itertools.product(range(2, 6), repeat=2):
        right = x > y and x + y == 7
        assert judge("smt", {"smtlib": SMT}, said(f"x = {x}, y = {y}")).passed is right
    model = "(model (define-fun x () Int 9) (define-fun y () Int (- 2)))"
    assert judge("smt", {"smtlib": SMT}, f"```\n{model}\n```").passed is True
    assert judge("smt", {"smtlib": SMT}, said("x = 4")).feedback == "gives no value to y"
    assert judge("smt", {"smtlib": SMT}, said("x = x, y = y")).passed is False
    assert judge("smt", {"smtlib": SMT}, said("x = 5/2, y = 9/2")).passed is False
    assert judge("smt", {"smtlib": SMT}, said("unsat")).passed is False
    assert judge("smt", {"smtlib": SMT + "(assert (> y x))"}, said("unsat")).passed is True
    assert "violates (assert (> x y))" in judge("smt", {"smtlib": SMT}, said("x = 3, y = 4")).feedback
    real = {"smtlib": "(declare-const r Real)(declare-const b Bool)(assert (and b (= (* 2 r) (- 5.0))))"}
    assert judge("smt", real, said("r = -5/2, b = True")).passed is True
    assert judge("smt", real, said("r = -2.5, b = false")).passed is False


@pytest.mark.parametrize(
    ("ask", "formula", "answer", "passed"),
    [
        ("equivalent", "(=> p q)", "(or (not p) q)", True),
        ("equivalent", "(=> p q)", "(or p q)", False),
        ("equivalent", "(=> p q)", "(assert (=> (not q) (not p)))", True),
        ("equivalent", "(=> p q)", "(or p", False),
        ("equivalent", "(=> p q)", "(foo p)", False),
        ("equivalent", "(=> p q)", "p) (include |/etc/passwd|", False),
        ("entailed", None, "q", True),
        ("entailed", None, "(not p)", False),
        ("entailed", "q", "true", False),
        ("entailed", "q", "(and p q)", True),
        ("status", "q", "true", True),
        ("status", "q", "unknown", False),
        ("status", "(not q)", "False.", True),
        ("status", "r", "unknown", True),
        ("status", "r", "maybe", False),
    ],
)
def test_smt_formulas(ask: str, formula: str | None, answer: str, passed: bool) -> None:
    pytest.importorskip("z3")
    declared = "(declare-const p Bool)(declare-const q Bool)(declare-const r Bool)"
    premises = "" if ask == "equivalent" else "(assert p)(assert (=> p q))"
    reference = {"smtlib": declared + premises, "ask": ask, "formula": formula}
    assert judge("smt", reference, said(answer)).passed is passed


FORMULA = st.recursive(
    st.sampled_from(["p", "q", "r"]),
    lambda f: st.one_of(st.tuples(st.just("not"), f), st.tuples(st.sampled_from(["and", "or", "=>", "="]), f, f)),
    max_leaves=5,
)


@settings(max_examples=30, deadline=None)
@given(FORMULA, FORMULA)
def test_smt_equivalence_agrees_with_a_truth_table(left: object, right: object) -> None:
    pytest.importorskip("z3")

    def text(f: object) -> str:
        return f if isinstance(f, str) else f"({' '.join(text(x) for x in f)})"  # type: ignore[attr-defined]

    def truth(f: object, w: dict[str, bool]) -> bool:
        if isinstance(f, str):
            return w[f]
        head, *rest = f  # type: ignore[misc]
        a, *b = (truth(x, w) for x in rest)
        return (
            not a if head == "not" else {"and": a and b[0], "or": a or b[0], "=>": b[0] or not a, "=": a == b[0]}[head]
        )

    worlds = [dict(zip("pqr", values, strict=True)) for values in itertools.product((True, False), repeat=3)]
    same = all(truth(left, w) == truth(right, w) for w in worlds)
    declared = "(declare-const p Bool)(declare-const q Bool)(declare-const r Bool)"
    reference = {"smtlib": declared, "ask": "equivalent", "formula": text(left)}
    assert judge("smt", reference, said(text(right))).passed is same


def test_smt_that_takes_too_long_is_abstained_on() -> None:
    pytest.importorskip("z3")
    names = "".join(f"(declare-const {v} Int)" for v in "xyz")
    cubes = "(= (+ (* x x x) (* y y y) (* z z z)) 33)"
    assert judge("smt", {"smtlib": f"{names}(assert {cubes})"}, said("unsat"), seconds=0.5).passed is None


COLOURS = "1 {c(X,r); c(X,g)} 1 :- v(X). :- e(X,Y), c(X,C), c(Y,C). v(1..3). e(1,2). e(2,3)."


def test_answer_sets_agree_with_enumeration() -> None:
    pytest.importorskip("clingo")
    reference = {"program": COLOURS, "project": ["c/2"]}
    for colours in itertools.product("rg", repeat=3):
        right = colours[0] != colours[1] != colours[2]
        atoms = "{" + ", ".join(f"c({i},{c})" for i, c in enumerate(colours, 1)) + "}"
        assert judge("asp", reference, said(atoms)).passed is right
    assert judge("asp", reference, said("c(1,r). c(2,g).")).passed is False
    assert "cannot be derived" in judge("asp", reference, said("c(1,r) c(2,g) c(3,blue)")).feedback
    best = {"program": "{a;b}. :- not a, not b. #minimize{1,a:a; 2,b:b}.", "project": ["a/0", "b/0"]}
    assert [judge("asp", best, said(atoms)).passed for atoms in ("a", "b", "a b", "c")] == [True, False, False, False]


def test_programs_with_the_same_answer_sets_are_right() -> None:
    pytest.importorskip("clingo")
    rules = "1 {c(X,r); c(X,g)} 1 :- v(X). :- e(X,Y), c(X,C), c(Y,C)."
    facts = ["v(1..3). e(1,2). e(2,3).", "v(1..3). e(1,2). e(2,3). e(3,1)."]
    reference = {"program": rules, "facts": facts, "project": ["c/2"], "ask": "program"}
    other = "c(X,r) :- v(X), not c(X,g).\nc(X,g) :- v(X), not c(X,r).\n:- e(X,Y), c(X,C), c(Y,C)."
    assert judge("asp", reference, f"```asp\n{other}\n```").passed is True
    weaker = judge("asp", reference, said("{c(X,r)} :- v(X). c(X,g) :- v(X), not c(X,r)."), partial=True)
    assert weaker.passed is False and weaker.parts["instances"] == 0.0
    # A lone byte of a character in one of clingo's messages would end its process, which is no abstention of ours.
    broken = ("\x80", "c(X,é).", "\U0001f600", "\ud800")
    for bad in (
        "c(X,r) :- v(X",
        "#script (python) #end.",
        '#include "/etc/passwd".',
        "c(@f(),r).",
        "x :- not y",
        *broken,
    ):
        assert judge("asp", reference, said(bad)).passed is False
    endless = judge("asp", reference, said("n(0). n(X+1) :- n(X)."), seconds=0.5)
    assert endless.passed is False and "took longer" in endless.feedback


FAMILY = {
    "facts": "edge(a,b). edge(b,c). edge('it''s',1.5).",
    "program": "path(X,Y) :- edge(X,Y).\npath(X,Y) :- edge(X,Z), path(Z,Y).",
    "queries": ["path(a,X)", "path(X,Y)", "\\+ path(c,_)"],
}


@pytest.fixture
def prolog() -> None:
    try:
        build("verify", "prolog")
    except UsageError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("prolog")
@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        ("path(A,B) :- edge(A,C), (B = C ; path(C,B)).", True),
        ("path(X,Y) :- edge(X,Y).", False),
        pytest.param("path(A,B) :- path(A,C), edge(C,B).", False, marks=pytest.mark.slow),
        ("path(_,_) :- repeat, fail.", False),
        (":- halt.", False),
        ("path(A,B :- ", False),
        ("\ud800", False),
    ],
)
def test_prolog_programs_are_judged_by_their_solutions(answer: str, passed: bool) -> None:
    assert judge("prolog", FAMILY, said(answer), seconds=2).passed is passed


@pytest.mark.usefixtures("prolog")
def test_prolog_queries_are_judged_by_their_solutions() -> None:
    reference = {"program": "p(1). p(2). p(3).", "queries": ["p(X), X \\= 2"], "ask": "query"}
    answers = {"?- member(X, [3, 1, 3]).": True, "p(X)": False, "p(Y), Y \\= 2": False, "p(X": False}
    answers["repeat, X = 1"] = False  # one distinct solution, found endlessly often
    for answer, passed in answers.items():
        assert judge("prolog", reference, said(answer)).passed is passed


def test_a_prolog_query_without_an_answer_is_not_one_without_solutions() -> None:
    from assay.sandbox import Outcome
    from assay.verify.logic.prolog import results_of

    text = b"noise\n@@ 1 solution [X=1]\n\n@@ 1 done 1\n@@ 2 done 0\n@@ 3 error oops\n@@ 9 done 0\n"
    assert results_of(Outcome("ok", text), 4) == (frozenset({"[X=1]"}), frozenset(), "raises oops", "is not answered")
    assert results_of(Outcome("timeout", reason="took longer than 2 s"), 1) == "took longer than 2 s"


# --- any text ---------------------------------------------------------------------------------------------------------

HARD = {
    **REFERENCES,
    "smt": {"smtlib": SMT},
    "asp": {"program": COLOURS, "project": ["c/2"]},
}
PIECES = [
    "1",
    "-2",
    "a",
    ":",
    "=",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\n",
    " ",
    "|",
    "Q",
    "Ann",
    "knight",
    "not",
    '"',
    "```",
    "->",
    "\ud800",
]
TEXT = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@pytest.mark.parametrize("kind", sorted(HARD))
def test_no_text_raises_or_is_abstained_on(kind: str) -> None:
    if kind in ("smt", "asp"):
        pytest.importorskip({"smt": "z3", "asp": "clingo"}[kind])
    verifier, task = build("verify", kind), Task("t", "?", HARD[kind], kind)

    @settings(deadline=None)
    @given(TEXT)
    def check(text: str) -> None:
        for response in (text, said(text)):
            verdict = verifier(task, response)
            assert verdict.passed is not None and 0.0 <= verdict.score <= 1.0
            assert "\n" not in verdict.feedback and len(verdict.feedback) < 400

    check()


@pytest.mark.parametrize("kind", sorted(HARD))
@pytest.mark.parametrize("piece", ["1 ", "(", "a:1,", "((a b) ", '"', "```\n", "{", "U", "٣", "knight Ann not "])
def test_long_texts_take_bounded_time(kind: str, piece: str) -> None:
    if kind in ("smt", "asp"):
        pytest.importorskip({"smt": "z3", "asp": "clingo"}[kind])
    verifier, task = build("verify", kind), Task("t", "?", HARD[kind], kind)
    start = time.process_time()
    assert verifier(task, piece * (1_000_000 // len(piece))).passed is not None
    assert verifier(task, piece * (90_000 // len(piece))).passed is not None
    assert time.process_time() - start < 3


def test_reading() -> None:
    assert assignment('first {"a": 1} then {"a": 2, "b": true}') == {"a": "2", "b": "true"}
    assert assignment("a -> 1; b => 2") == {"a": "1", "b": "2"}
    assert unfence("x\n```\na\n```\n```sql\nb\n```\n```\nc\n```", ("sql",)) == "b\n"
    assert parse('(a (b "c d") ; no\n e) f') == [["a", ["b", '"c d"'], "e"], "f"]
    assert show(["a", ["b"], "c"]) == "(a (b) c)"
    for bad in ("(", ")", '"', "(" * 10_000):
        with pytest.raises(SyntaxFault):
            parse(bad)


def test_shuffled_tours_never_beat_the_optimum() -> None:
    points = [(math.cos(a), math.sin(a)) for a in (0.3, 1.1, 2.0, 3.5, 5.0)]
    lengths = {
        order: sum(math.dist(points[a], points[b]) for a, b in zip(order, (*order[1:], order[0]), strict=True))
        for order in itertools.permutations(range(5))
    }
    best = min(lengths.values())
    reference = {"points": points, "bound": best, "cities": list("abcde")}
    for order in random.Random(0).sample(sorted(lengths), 30):
        answer = " -> ".join("abcde"[i] for i in order)
        assert judge("tour", reference, said(answer)).passed is (lengths[order] <= best * (1 + 1e-6))
