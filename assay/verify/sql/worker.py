"""Executing untrusted queries, for :mod:`assay.verify.sql.verifier`; loaded in worker processes.

SQLite runs them behind an authorizer that allows reading and nothing else, with limits on lengths and a progress
handler for time; DuckDB in a fresh in-memory database without access to files, with its configuration locked.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
import threading
import time
from typing import Any
from urllib.parse import quote

Row = tuple[Any, ...]
Result = tuple[list[str], list[Row]]

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_REFUSED_FUNCTIONS = {"load_extension", "random", "randomblob", "fts3_tokenizer", "sqlite_log", "edit", "writefile"}
MAX_LENGTH = 2_000_000
"""Bytes of the longest text or blob that SQLite may make."""
STEPS = 10_000
"""Virtual machine instructions of SQLite between two looks at the clock."""


class Refused(Exception):
    """The query may not be run, or did not end; the message says why. It is the query's own fault."""


def prepare() -> None:
    """Import DuckDB, where it is installed, before the memory limit is set."""
    with contextlib.suppress(ImportError):
        import duckdb  # noqa: F401


def run(engine: str, database: str, query: str, seconds: float, max_rows: int) -> dict[str, Any]:
    """Return ``{"rows": n}`` or ``{"error": why}`` for one query, to see whether a reference can be run."""
    try:
        _, rows = execute(engine, database, query, seconds, max_rows)
    except Refused as error:
        return {"error": str(error)}
    return {"rows": len(rows)}


def judge(
    engine: str,
    database: str,
    gold: str | dict[str, Any],
    query: str,
    seconds: float,
    max_rows: int,
    rule: dict[str, Any],
) -> dict[str, Any]:
    """Run ``gold`` and ``query`` on one database and compare the results.

    Args:
        engine: ``sqlite`` or ``duckdb``.
        database: JSON text: ``{"file": path}`` or ``{"schema": SQL, "rows": {table: [rows]}}``.
        gold: a query, or ``{"columns": [...], "rows": [...]}``.
        seconds: processor time for each of the two.
        max_rows: rows of the largest result.
        rule: options of :func:`assay.verify.sql.compare.compare`.

    Returns:
        ``{"fault": why}`` where the reference is to blame, ``{"error": why}`` where the query is, else
        ``{"complaint": "" or the first difference, "columns": share, "rows": share}``.
    """
    from assay.verify.sql.compare import compare

    try:
        if isinstance(gold, str):
            expected = _gold(engine, database, gold, seconds, max_rows)
        else:
            rows = [tuple(row) for row in gold["rows"]]
            expected = (list(gold.get("columns") or [""] * (len(rows[0]) if rows else 0)), rows)
    except Refused as error:
        return {"fault": str(error)}
    try:
        got = execute(engine, database, query, seconds, max_rows)
    except Refused as error:
        return {"error": str(error)}
    return compare(got, expected, **rule)


@functools.lru_cache(maxsize=64)
def _gold(engine: str, database: str, query: str, seconds: float, max_rows: int) -> Result:
    return execute(engine, database, query, seconds, max_rows)


def execute(engine: str, database: str, query: str, seconds: float, max_rows: int) -> Result:
    """Return the column names and rows of a single reading statement; raise Refused where there is none."""
    if engine == "sqlite":
        return _sqlite(database, query, seconds, max_rows)
    return _duckdb(database, query, seconds, max_rows)


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _permit(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _REFUSED_FUNCTIONS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


@functools.lru_cache(maxsize=8)
def _opened(database: str) -> sqlite3.Connection:
    """Return a connection that can only read. Nothing a query does stays in it, so it serves many."""
    spec = json.loads(database)
    if "file" in spec:
        if not os.path.isfile(spec["file"]):
            raise FileNotFoundError(f"there is no database file {spec['file']}")
        # Immutable: no locks and no journal beside a file that nobody writes.
        address = f"file:{quote(os.path.abspath(spec['file']))}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
    else:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(spec.get("schema", ""))
        for table, rows in (spec.get("rows") or {}).items():
            name = '"' + table.replace('"', '""') + '"'
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    for limit, value in (
        (sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 200_000),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    ):
        connection.setlimit(limit, value)
    connection.set_authorizer(_permit)
    return connection


def _sqlite(database: str, query: str, seconds: float, max_rows: int) -> Result:
    connection = _opened(database)
    deadline = time.process_time() + seconds
    connection.set_progress_handler(lambda: time.process_time() > deadline, STEPS)
    try:
        cursor = connection.execute(query)
        if cursor.description is None:
            raise Refused("is no query that returns rows")
        rows = _fetch(cursor, max_rows, deadline, seconds)
        return [column[0] for column in cursor.description], rows
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError, OverflowError) as error:
        if str(error) == "interrupted":
            raise Refused(f"takes longer than {seconds:g} s") from None
        raise Refused(_one_line(error)) from None
    finally:
        connection.set_progress_handler(None, STEPS)


def _fetch(cursor: Any, max_rows: int, deadline: float, seconds: float) -> list[Row]:
    rows: list[Row] = []
    while chunk := cursor.fetchmany(1000):
        rows += chunk
        if len(rows) > max_rows:
            raise Refused(f"returns more than {max_rows} rows")
        if time.process_time() > deadline:
            raise Refused(f"takes longer than {seconds:g} s")
    return rows


# --- DuckDB -----------------------------------------------------------------------------------------------------------


def _duckdb(database: str, query: str, seconds: float, max_rows: int) -> Result:
    import duckdb

    spec = json.loads(database)
    config: dict[str, Any] = {
        "threads": "1",
        "memory_limit": "1GB",
        "temp_directory": "",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    # A fresh database for each query: sequences and temporary settings are state that a query can change.
    connection = duckdb.connect(spec.get("file", ":memory:"), read_only="file" in spec, config=config)
    try:
        if spec.get("schema"):
            connection.execute(spec["schema"])
        for table, rows in (spec.get("rows") or {}).items():
            name = '"' + table.replace('"', '""') + '"'
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SELECT setseed(0.5)")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return _select(connection, query, seconds, max_rows)
    finally:
        connection.close()


def _select(connection: Any, query: str, seconds: float, max_rows: int) -> Result:
    import duckdb

    deadline = time.process_time() + seconds
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            if time.process_time() > deadline:
                connection.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise Refused("is not a single SELECT statement")
        cursor = connection.execute(statements[0])
        rows = _fetch(cursor, max_rows, deadline, seconds)
        return [column[0] for column in cursor.description], rows
    except (duckdb.Error, UnicodeError, ValueError, OverflowError) as error:
        if isinstance(error, duckdb.InterruptException):
            raise Refused(f"takes longer than {seconds:g} s") from None
        raise Refused(_one_line(error)) from None
    finally:
        done.set()
        watcher.join()


def _one_line(error: Exception) -> str:
    return f"fails: {' '.join(str(error).split())[:150]}"
