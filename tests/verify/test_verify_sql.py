"""SQL by execution: what is the same result, what may be run, whose fault a failure is."""

from __future__ import annotations

import itertools
import json
import math
import random
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_cases import DATABASE

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.sql.compare import compare
from assay.verify.sql.verifier import orders, query_of

pytestmark = pytest.mark.usefixtures("patient")


def judge(reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": "sql", **options})(Task("t", "?", reference, "sql"), response)


def sql(query: str) -> str:
    return f"```sql\n{query}\n```"


@pytest.fixture(params=["sqlite", "duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return str(request.param)


@pytest.mark.parametrize(
    ("gold", "query", "passed"),
    [
        ("SELECT name FROM staff", "select s.name from staff as s order by pay", True),
        ("SELECT name FROM staff ORDER BY id", "SELECT name FROM staff ORDER BY id DESC", False),
        ("SELECT name FROM staff ORDER BY id", "SELECT name FROM staff ORDER BY id", True),
        ("SELECT pay FROM staff", "SELECT DISTINCT pay FROM staff", False),
        ("SELECT avg(pay) FROM staff", "SELECT sum(pay) / 4 FROM staff", True),
        ("SELECT sum(pay) FROM staff", "SELECT 28", True),
        ("SELECT 0.1 + 0.2", "SELECT 0.3", True),
        ("SELECT boss FROM staff WHERE id = 1", "SELECT NULL", True),
        ("SELECT boss FROM staff WHERE id = 1", "SELECT 0", False),
        ("SELECT boss FROM staff WHERE id = 1", "SELECT 'None'", False),
        ("SELECT name, pay FROM staff", "SELECT pay, name FROM staff", False),
        ("SELECT name FROM staff WHERE pay > 99", "SELECT name FROM staff WHERE id > 99", True),
        ("SELECT name FROM staff", "WITH s AS (SELECT * FROM staff) SELECT name FROM s", True),
        ("SELECT name FROM staff", "SELECT nam FROM staff", False),
        ("SELECT name FROM staff", "SELECT name FROM staff; -- done", True),
        ("SELECT count(*) FROM staff", "SELECT '4'", False),
    ],
)
def test_results_are_compared_not_texts(engine: str, gold: str, query: str, passed: bool) -> None:
    verdict = judge({"query": gold, "database": DATABASE, "engine": engine}, sql(query))
    assert verdict.passed is passed, verdict
    assert judge(json.dumps({"query": gold, "database": DATABASE, "engine": engine}), sql(query)).passed is passed


def test_options(engine: str) -> None:
    reference = {"query": "SELECT name, pay AS p FROM staff", "database": DATABASE, "engine": engine}
    assert judge(reference, sql("SELECT pay, name FROM staff"), columns="any").passed is True
    assert judge(reference, sql("SELECT name, pay FROM staff"), names=True).passed is False
    assert judge(reference, sql("SELECT name, pay AS P FROM staff"), names=True).passed is True
    assert judge(reference, sql("SELECT pay p, name FROM staff"), names=True, columns="any").passed is True
    assert judge({**reference, "ordered": True}, sql("SELECT name, pay FROM staff ORDER BY name DESC")).passed is False
    distinct = {"query": "SELECT pay FROM staff", "database": DATABASE, "engine": engine}
    assert judge(distinct, sql("SELECT DISTINCT pay FROM staff"), duplicates=False).passed is True
    result = {"result": {"rows": [["Ann"], ["Bob"]]}, "database": DATABASE, "engine": engine}
    assert judge(result, sql("SELECT name FROM staff WHERE id < 3")).passed is True
    either = {
        "query": ["SELECT min(id) FROM staff", "SELECT max(id) FROM staff"],
        "database": DATABASE,
        "engine": engine,
    }
    assert judge(either, sql("SELECT 4")).passed is True
    assert judge(either, sql("SELECT 3")).passed is False


def test_several_databases_expose_accidental_agreement(engine: str) -> None:
    other = {**DATABASE, "rows": {"staff": [[1, "Ann", 1.0, None], [2, "Bob", 9.0, 1]]}}
    reference = {"query": "SELECT name FROM staff WHERE pay = (SELECT max(pay) FROM staff)", "engine": engine}
    query = sql("SELECT name FROM staff WHERE id = 1")
    assert judge({**reference, "database": DATABASE}, query).passed is True
    verdict = judge({**reference, "databases": [DATABASE, other]}, query)
    assert verdict.passed is False and verdict.parts["databases"] == 0.5


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE staff",
        "INSERT INTO staff VALUES (9, 'Zed', 0, 0)",
        "SELECT name FROM staff; DROP TABLE staff",
        "PRAGMA query_only = OFF",
        "ATTACH 'other.db' AS other",
        "CREATE TEMP TABLE x AS SELECT 1",
        "COPY staff TO 'staff.csv'",
        "SELECT load_extension('evil')",
        "SELECT writefile('evil', 'x')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "EXPORT DATABASE 'out'",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "SELECT hex(zeroblob(2000000000))",
        pytest.param("SELECT repeat('x', 2000000000)", marks=pytest.mark.slow),
        "",
        "--",
    ],
)
def test_a_query_may_read_and_nothing_else(engine: str, query: str) -> None:
    reference = {"query": "SELECT count(*) FROM staff", "database": DATABASE, "engine": engine}
    assert judge(reference, sql(query), seconds=0.5).passed is False
    assert judge(reference, sql("SELECT 4")).passed is True


def test_limits_of_the_query_are_its_own_fault_and_of_the_reference_ours(engine: str) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
    small = {"query": "SELECT count(*) FROM staff", "database": DATABASE, "engine": engine}
    verdict = judge(small, sql(endless), seconds=0.3)
    assert verdict.passed is False and "takes longer than 0.3 s" in verdict.feedback
    assert judge({**small, "query": endless}, sql("SELECT 4"), seconds=0.3).passed is None
    many = "SELECT a.id FROM staff a, staff b, staff c"
    assert "more than 20 rows" in judge(small, sql(many), max_rows=20).feedback
    assert judge({**small, "query": "SELECT nothing"}, sql("SELECT 4")).passed is None
    assert judge({**small, "database": {"schema": "CREATE TABL"}}, sql("SELECT 4")).passed is None


def test_sqlite_refuses_random_numbers() -> None:
    reference = {"query": "SELECT count(*) FROM staff", "database": DATABASE}
    assert "random" in judge(reference, sql("SELECT 4 + 0 * random()")).feedback


def test_database_files_are_opened_read_only(tmp_path: Path) -> None:
    path = tmp_path / "a #1?.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t(a)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
    connection.close()
    before = path.read_bytes()
    reference = {"query": "SELECT a FROM t", "database": {"file": path.name}}
    assert judge(reference, sql("SELECT a FROM t"), root=str(tmp_path)).passed is True
    assert judge(reference, sql("DELETE FROM t"), root=str(tmp_path)).passed is False
    assert judge(reference, sql("SELECT a FROM t"), root=str(tmp_path / "no")).passed is None
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_duckdb_files_are_opened_read_only(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    connection.close()
    reference = {"query": "SELECT a FROM t", "database": {"file": str(path)}, "engine": "duckdb"}
    assert judge(reference, sql("SELECT 1")).passed is True
    assert judge(reference, sql("SELECT * FROM read_blob('/etc/passwd')")).passed is False


@pytest.mark.parametrize(
    "reference",
    [
        None,
        3,
        "x",
        {},
        {"query": "SELECT 1"},
        {"query": 3, "database": {}},
        {"query": "SELECT 1", "database": {}, "engine": "x"},
    ],
)
def test_a_bad_reference_is_abstained_on(reference: object) -> None:
    assert judge(reference, sql("SELECT 1")).passed is None


def test_bad_options_are_refused() -> None:
    with pytest.raises(UsageError):
        build("verify", {"name": "sql", "seconds": 0})


# --- finding the query ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "query"),
    [
        ("```sql\nSELECT 1\n```\nor better\n```sql\nSELECT 2;\n```", "SELECT 2;"),
        ("```SQL\nSELECT 1\n```\n```\noutput\n```", "SELECT 1"),
        ("```\nSELECT 1\n```", "SELECT 1"),
        ("```sql\nSELECT 1", "SELECT 1"),
        ("<answer>SELECT 1</answer>", "SELECT 1"),
        ("<answer>\n```sql\nSELECT 1\n```\n</answer>", "SELECT 1"),
        (
            "We select rows.\n\nSELECT a\nFROM t\nWHERE b IN (\nSELECT b FROM u\n);\n\nDone.",
            "SELECT a\nFROM t\nWHERE b IN (\nSELECT b FROM u\n);",
        ),
        ("WITH x AS (\n  SELECT 1\n)\nSELECT * FROM x", "WITH x AS (\n  SELECT 1\n)\nSELECT * FROM x"),
        ("The query is SELECT 1;", "SELECT 1;"),
        ("nothing here", None),
        ("", None),
    ],
)
def test_the_query_is_found(response: str, query: str | None) -> None:
    assert query_of(response) == query


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT 'x ORDER BY y' FROM t", False),
        ("SELECT a FROM t -- ORDER BY a", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t order\n by 1", True),
    ],
)
def test_order_by_at_the_top_level(query: str, ordered: bool) -> None:
    assert orders(query) is ordered


# --- comparing results ------------------------------------------------------------------------------------------------

CELL = st.one_of(
    st.none(), st.integers(-2, 2), st.sampled_from(["a", "b", "1"]), st.sampled_from([0.5, 0.5 + 1e-9, 1.0])
)
ROWS = st.lists(st.tuples(CELL, CELL), max_size=4)


def alike(a: object, b: object) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    return a is b or a == b


@settings(deadline=None)
@given(ROWS, ROWS, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_comparison_agrees_with_all_permutations(
    left: list[tuple[object, ...]], right: list[tuple[object, ...]], shuffled: bool, free: bool, rng: random.Random
) -> None:
    if shuffled:
        right = [tuple(reversed(row)) if free else row for row in rng.sample(left, len(left))]
    rows_equal = any(
        all(all(map(alike, a, b)) for a, b in zip(order, right, strict=True))
        for columns in ([(0, 1), (1, 0)] if free else [(0, 1)])
        for order in itertools.permutations([tuple(row[i] for i in columns) for row in left])
        if len(left) == len(right)
    )
    names = ["x", "y"]
    got = compare((names, left), (names, right), columns="any" if free else "ordered")
    assert (got["complaint"] == "") == rows_equal
    in_order = len(left) == len(right) and all(all(map(alike, a, b)) for a, b in zip(left, right, strict=True))
    assert (compare((names, left), (names, right), ordered=True)["complaint"] == "") == in_order


def test_rows_close_in_another_order_are_matched() -> None:
    left = [(1.0, 5.0), (1.0 + 5e-7, 4.0)]
    right = [(1.0 + 5e-7, 5.0), (1.0, 4.0)]
    assert compare((["a", "b"], left), (["a", "b"], right))["complaint"] == ""
    assert compare((["a"], [(2**60,)]), (["a"], [(2**60 + 1,)]))["complaint"] != ""
    assert compare((["a"], [(float("nan"),)]), (["a"], [(float("nan"),)]))["complaint"] == ""


PIECES = [
    "SELECT ",
    "* ",
    "FROM staff ",
    "1",
    ",",
    "(",
    ")",
    "'",
    '"',
    ";",
    "--",
    "/*",
    "```sql\n",
    "\n",
    "WITH ",
    "\x00",
    "\ud800",
]


@pytest.mark.slow
def test_no_text_raises_or_is_abstained_on(engine: str) -> None:
    reference = {"query": "SELECT count(*) FROM staff", "database": DATABASE, "engine": engine}
    verifier = build("verify", "sql")

    @settings(deadline=None)
    @given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=20).map("".join)))
    def check(text: str) -> None:
        for response in (text, sql(text), "SELECT " + text):
            verdict = verifier(Task("t", "?", reference, "sql"), response)
            assert verdict.passed is not None and "\n" not in verdict.feedback

    check()


@pytest.mark.parametrize(
    "piece", ["SELECT ", "(", "SELECT (", "((1)", "'", "```sql\n", "1+", "/*", "-", "WITH a AS (", "x AND "]
)
def test_long_texts_take_bounded_time(piece: str, engine: str) -> None:
    reference = {"query": "SELECT count(*) FROM staff", "database": DATABASE, "engine": engine}
    start = time.process_time()
    for size in (1_000_000, 45_000):
        for response in (piece * (size // len(piece)), sql("SELECT " + piece * (size // len(piece)))):
            assert judge(reference, response).passed is False
    assert time.process_time() - start < 3
