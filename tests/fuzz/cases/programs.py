"""Programs and queries."""

from __future__ import annotations

from sql_cases import DATABASE

from fuzz.entry import Case, entry

for engine in ("sqlite", "duckdb"):
    entry(
        f"sql/{engine}",
        soup="sql",
        needs=() if engine == "sqlite" else ("duckdb",),
        seconds=6.0,
        options={"engine": engine, "seconds": 1.0},
        cases=[
            Case(
                {"query": "SELECT name FROM staff WHERE pay > 5 ORDER BY id", "database": DATABASE},
                [
                    "SELECT name FROM staff WHERE pay > 5 ORDER BY id",
                    "```sql\nselect name from staff where pay >= 7 order by id\n```",
                ],
            ),
            Case(
                {"query": "SELECT count(*) FROM staff", "database": DATABASE},
                ["SELECT 4", "WITH s AS (SELECT 4 AS n) SELECT n FROM s"],
            ),
            Case({"result": {"rows": [[None, 1.5, "x"]]}, "database": {"schema": ""}}, ["SELECT NULL, 1.5, 'x'"]),
        ],
    )

SQUARE = "```python\nprint(int(input()) ** 2)\n```"
CALLED = "```python\ndef f(x):\n    return x * x\n```"
entry(
    "code",
    soup="code",
    seconds=12.0,
    options={"seconds": 1.0, "total_seconds": 4.0},
    marked=False,
    cases=[
        Case({"inputs": ["2\n", "3\n"], "outputs": ["4\n", "9\n"]}, [SQUARE, f"Like this:\n{SQUARE}\nDone."]),
        Case({"inputs": [[2], [3]], "outputs": [4, 9], "fn_name": "f"}, [CALLED]),
        Case({"test_list": ["assert f('x') == 'xx'"]}, ["```python\ndef f(x):\n    return 2 * x\n```"]),
    ],
)
entry(
    "code/fraction",
    soup="code",
    seconds=12.0,
    options={"seconds": 1.0, "total_seconds": 4.0, "scoring": "fraction"},
    marked=False,
    cases=[
        Case(
            {
                "prompt": "def f(x):\n",
                "entry_point": "f",
                "test": "def check(candidate):\n    assert candidate(2) == 4\n",
            },
            [CALLED, "    return x * x\n"][:1],
        ),
        Case({"doctest": ">>> f(3)\n9\n"}, [CALLED]),
    ],
)
for score in ("all", "share"):
    entry(
        f"stack/{score}",
        soup="stack",
        options={"score": score},
        cases=[
            Case({"tests": [[{"x": 3, "y": 5}, 8], [{"x": 0, "y": 0}, 0]]}, ["xy+", "y x +"]),
            Case({"tests": [[{"x": 3}, 9]]}, ["xd*", "9"]),
        ],
    )
LINE = """def step(state, action):
    x = min(state + 1, 4) if action == "up" else 0
    return [x, float(x == 4), x == 4]
"""
LAMPS = """(define (domain lamps) (:predicates (lit ?l) (wired ?l))
  (:action switch :parameters (?l) :precondition (wired ?l) :effect (lit ?l)))"""
ROOM = "(define (problem r) (:domain lamps) (:objects a b) (:init (wired a)) (:goal (lit a)))"
for variant, partial in (("", False), ("/partial", True)):
    entry(
        f"behaviour{variant}",
        soup="code",
        seconds=12.0,
        share=0.3,
        marked=False,
        options={"partial": partial},
        cases=[
            Case(
                {
                    "language": "python",
                    "source": LINE,
                    "starts": [0, 2],
                    "actions": [["up", "down"]] * 2,
                    "horizon": 5,
                    "effort": 40,
                },
                [f"```python\n{LINE}```", LINE],
            ),
            Case(
                {
                    "language": "pddl",
                    "source": LAMPS,
                    "problems": [ROOM],
                    "actions": [["(switch a)", "(switch b)"]],
                    "horizon": 2,
                    "effort": 20,
                },
                [LAMPS, f"```pddl\n{LAMPS.upper()}\n```"],
            ),
        ],
    )
PLUS = "def f(x):\n    return x + 1"
entry(
    "program_io",
    soup="code",
    seconds=25.0,
    share=0.3,
    marked=False,
    cases=[
        Case(
            {"language": "python", "mode": "deduction", "triplet": [PLUS, ["3"], ["4"], ""]},
            ["```output\n4\n```", "It adds one.\n```output\n4.0\n```"],
        ),
        Case({"language": "python", "mode": "abduction", "triplet": [PLUS, ["3"], ["4"], ""]}, ["```input\n3\n```"]),
        Case(
            {"language": "python", "mode": "induction", "triplet": [PLUS, ["3", "5"], ["4", "6"], "adds"], "seen": 1},
            [f"```python\n{PLUS}\n```"],
        ),
        Case(
            {"language": "python", "mode": "deduction", "propose": 10},
            ["```python\ndef f(a, b):\n    return a * b\n```\n```input\n'ab', 3\n```"],
        ),
        Case({"language": "steps", "mode": "abduction", "triplet": ["+3*2", ["4"], ["4"], ""]}, ["4", "1+2\n9"]),
    ],
)
