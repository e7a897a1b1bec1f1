"""Puzzles, solvers and plans."""

from __future__ import annotations

import itertools

from planning_cases import ERRANDS, PLAN, REFERENCE

from fuzz.entry import Case, entry

SQUARE = {"edges": [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]]}
TRIANGLE = {"edges": [["a", "b"], ["b", "c"], ["c", "a"]]}
NONE = ["no solution", "impossible"]
GRID = "1 2 3 4\n3 4 1 2\n4 1 2 3\n2 3 4 1"
NINE = [[(3 * (r % 3) + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)]


def puzzle(kind: str, *cases: Case, **how: object) -> None:
    for variant, options in (("", {}), ("/partial", {"partial": True})):
        entry(f"{kind}{variant}", cases=cases, options=options, **how)


puzzle(
    "sudoku",
    Case({"puzzle": ["1.3.", "..1.", ".1..", "...1"]}, [GRID, "[[1,2,3,4],[3,4,1,2],[4,1,2,3],[2,3,4,1]]"]),
    Case(
        {"puzzle": [[n if (r + c) % 2 else None for c, n in enumerate(row)] for r, row in enumerate(NINE)]},
        ["\n".join(" ".join(map(str, row)) for row in NINE)],
    ),
    Case({"puzzle": "A.\n..", "box": False, "symbols": "AB"}, ["A B\nB A"]),
    Case({"puzzle": "11\n..", "box": False, "solvable": False}, NONE),
    soup="grid",
)
puzzle(
    "grid",
    Case({"solution": [["1", "2"], ["3", "4"]], "block": 2}, ["1 2\n3 4", "[[1, 2], [3, 4]]", "12\n34"]),
    Case({"solution": "red blue\ngreen red"}, ["red blue\ngreen red"]),
    soup="grid",
)
puzzle(
    "knights_knaves",
    Case(
        {
            "people": ["Ann", "Bob"],
            "statements": [["Ann", ["and", ["knave", "Ann"], ["knave", "Bob"]]], ["Bob", True]],
        },
        ["Ann is a knave and Bob is a knight.", "Ann: knave, Bob: knight", "Ann is not a knight. Bob isn't a knave."],
    ),
    Case(
        {
            "people": ["Zoë", "Yan"],
            "statements": [["Zoë", ["knight", "Yan"]], ["Yan", ["count", "knights", "==", 2]]],
            "roles": ["saint", "sinner"],
        },
        ["Zoë is a saint, Yan is a saint"],
    ),
    soup="people",
)
puzzle(
    "maze",
    Case(
        {"grid": ["S.#", "..G"], "shortest": True},
        ["DRR", "down, right, right", "(0, 0) -> (0, 1) -> (1, 1) -> (1, 2)"],
    ),
    Case({"grid": "S#\n#G", "diagonal": True, "order": "xy", "origin": 1}, ["(1, 1), (2, 2)"]),
    Case({"grid": ["S#G"]}, ["no path", *NONE]),
    soup="moves",
)
puzzle(
    "colouring",
    Case(
        {**SQUARE, "colours": 2},
        ['{"a": "red", "b": 2, "c": "red", "d": 2}', "a: red\nb = blue\n**c**: Red\nd is blue"],
    ),
    Case({**TRIANGLE, "colours": 2, "solvable": False}, NONE),
    Case({"edges": [], "vertices": ["x"], "colours": 1}, ["x: 1"]),
    soup="assignment",
)
puzzle(
    "hamiltonian",
    Case({**SQUARE, "cycle": True}, ["a, b, c, d", "Tour: a -> d -> c -> b -> a"]),
    Case({"edges": [[1, 2], [2, 3]], "directed": True, "start": 1}, ["1 2 3"]),
    Case({"edges": [["a", "b"], ["c", "d"]], "solvable": False}, NONE),
    soup="list",
)
puzzle(
    "tour",
    Case({"points": [[0, 0], [0, 1], [1, 1], [1, 0]], "bound": 4}, ["0 1 2 3", "0 -> 3 -> 2 -> 1 -> 0"]),
    Case({"distances": [[0, 1], [2, 0]], "bound": 3, "cities": ["x", "y"]}, ["x, y"]),
    soup="list",
)
puzzle(
    "queens",
    Case({"n": 4}, ["1 3 0 2", ".Q..\n...Q\nQ...\n..Q.", "(0,1), (1,3), (2,0), (3,2)"]),
    Case({"n": 5, "placed": [[1, 1]], "origin": 1}, ["1 3 5 2 4"]),
    Case({"n": 3}, NONE),
    soup="grid",
)
puzzle(
    "subset_sum",
    Case({"numbers": [3, 5, 7], "target": 12}, ["5 + 7 = 12", "[7, 5]"]),
    Case({"numbers": [-3, 10**15], "target": 10**15 - 3}, [f"{10**15}, -3"]),
    Case({"numbers": [2, 4], "target": 5, "solvable": False}, NONE),
    soup="list",
)
puzzle(
    "knapsack",
    Case({"items": {"cup": [2, 3], "pot": [3, 4]}, "capacity": 4, "at_least": 4}, ["pot", '["pot"]']),
    Case({"items": [[1, 1], [2, 5], [4, 4]], "capacity": 3, "at_least": 6}, ["0, 1"]),
    soup="list",
)
puzzle(
    "bin_packing",
    Case({"sizes": [4, 6, 7, 3], "capacity": 10, "bins": 2}, ["[[4, 6], [7, 3]]", "bin 1: 4 6\nbin 2: 7, 3"]),
    Case({"sizes": [1], "capacity": 1, "bins": 1}, ["[[1]]"]),
    soup="list",
)

PIGEONS = [
    *([3 * p + h for h in (1, 2, 3)] for p in range(4)),
    *([-(3 * p + h), -(3 * q + h)] for p, q in itertools.combinations(range(4), 2) for h in (1, 2, 3)),
]
puzzle(
    "sat",
    Case({"clauses": [[1, -2], [2, 3]]}, ["s SATISFIABLE\nv 1 -2 3 0", "x1 = true, x2 = true, x3 = false"]),
    Case({"dimacs": "c x\np cnf 2 2\n1 2 0\n-1 0\n"}, ["-1 2", "x1 = false, x2 = true"]),
    Case({"clauses": PIGEONS}, ["unsat", "s UNSATISFIABLE"]),
    soup="assignment",
    needs=("z3",),
)

DECLARED = "(declare-const x Int)(declare-const y Real)(declare-const b Bool)"
LINEAR = "(assert (> x 2))(assert (= y (/ x 2)))(assert (=> b (< x 5)))"
puzzle(
    "smt",
    Case(
        {"smtlib": DECLARED + LINEAR},
        ["x = 4, y = 2, b = true", "(define-fun x () Int 3)(define-fun y () Real 1.5)(define-fun b () Bool false)"],
    ),
    Case(
        {"smtlib": DECLARED, "ask": "equivalent", "formula": "(and (> x 1) b)"}, ["(and b (> x 1))", "(and b (>= x 2))"]
    ),
    Case({"smtlib": DECLARED + LINEAR, "ask": "entailed", "formula": "(> x 1)"}, ["(> x 2)"]),
    Case({"smtlib": DECLARED + LINEAR, "ask": "status", "formula": "(> y 0)"}, ["true", "entailed"]),
    Case({"smtlib": "(declare-const x Int)(assert (and (> x 0) (< x 0)))"}, ["unsat"]),
    soup="smt",
    needs=("z3",),
    seconds=8.0,
    apart=False,
)

COLOURS = """v(1..3). e(1,2). e(2,3). 1 { c(X,r); c(X,g) } 1 :- v(X). :- e(X,Y), c(X,C), c(Y,C)."""
REACH = "r(X) :- s(X). r(Y) :- r(X), e(X,Y)."
puzzle(
    "asp",
    Case({"program": COLOURS, "project": ["c/2"]}, ["c(1,r). c(2,g). c(3,r).", "{c(1,g), c(2,r), c(3,g)}"]),
    Case(
        {"program": REACH, "facts": ["s(1). e(1,2). e(2,3).", "s(1). e(2,1)."], "project": ["r/1"], "ask": "program"},
        [REACH, f"```asp\n{REACH}\n```"],
    ),
    Case({"program": "a :- not a.", "project": ["a/0"]}, ["no answer set"]),
    soup="asp",
    needs=("clingo",),
    seconds=12.0,
)
entry(
    "prolog",
    soup="asp",
    seconds=30.0,
    cases=[
        Case({"program": "p(1). p(2).", "queries": ["p(X)"]}, ["p(1). p(2).", "p(X) :- member(X, [1,2])."]),
        Case({"program": "p(1). p(2). p(3).", "queries": ["p(X), X \\= 2"], "ask": "query"}, ["p(X), X =\\= 2."]),
    ],
)
puzzle(
    "pddl_plan",
    Case({**REFERENCE, "max_steps": 8}, ["\n".join(PLAN), "\n".join(f"{i}. {s}" for i, s in enumerate(PLAN, 1))]),
    Case({**ERRANDS, "max_cost": 20}, ["(take ann red)\n(rest ann)\n(take bob blue)\n(rest bob)\n(toggle red)"]),
    soup="plan",
)
entry(
    "rule_puzzle",
    soup="grid",
    cases=[
        Case(
            {"family": "numbrix", "rows": 2, "columns": 2, "data": {"givens": [[0, 0, 1]]}},
            ["<answer>1 2\n4 3</answer>", "so <answer>\n1 4\n2 3\n</answer>"],
        ),
        Case(
            {"family": "minesweeper", "rows": 1, "columns": 3, "data": {"mines": 1, "clues": [[0, 1, 1]]}},
            ["<answer>X . .</answer>"],
        ),
        Case(
            {"family": "arrow_maze", "rows": 2, "columns": 2, "data": {"board": [["1", "X"], ["X", "1"]]}},
            ["<answer>1 →\n← 1</answer>", "<answer>1 ↑\n↓ 1</answer>"],
        ),
        Case(
            {"family": "wordscapes", "rows": 1, "columns": 2, "data": {"shape": ["XX"], "across": ["an"], "down": []}},
            ["<answer>a n</answer>"],
        ),
        Case(
            {"family": "zebra_puzzle", "rows": 2, "columns": 1, "data": {"kinds": [["blue", "red"]], "clues": []}},
            ["<answer>red\nblue</answer>", "<answer>blue\nred</answer>"],
        ),
        Case({"family": "math_path", "data": {"equation": "? + 2 * ? = 9"}}, ["<answer>3 + 2 * 3 = 9</answer>"]),
        Case({"family": "mathador", "data": {"numbers": [2, 3, 5], "target": 6}}, ["<answer>2 * 3</answer>"]),
        Case(
            {
                "family": "space_reasoning_tree",
                "data": {"children": {"a": ["b", "c"], "b": ["d"], "c": ["e", "f"]}, "of": "d"},
            },
            ["<answer>f, e</answer>"],
        ),
        Case(
            {"family": "dyck_reasoning_errors", "data": {"sequence": "([", "stacks": ["(", "["]}},
            ["<answer>2</answer>"],
        ),
        Case({"family": "buggy_tables", "data": {"value": "17/8"}}, ["<answer>2.12</answer>", "<answer>2.13</answer>"]),
        Case({"family": "operation", "answer": "7"}, ["<answer>7</answer>"]),
    ],
    marked=False,
)
