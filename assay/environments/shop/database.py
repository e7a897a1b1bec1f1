"""A domain's database in memory: rows in, calls made, refusals with their code, and its state."""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from assay.environments.shop.domain import Domain, Operation
from assay.environments.tools import ToolError
from assay.verify.structured.state import Tables

ACTIONS = {
    *(sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_TRIGGER, sqlite3.SQLITE_CREATE_INDEX),
    *(sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ),
    *(sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT),
}
"""What a domain that somebody has written may do."""
UNSTEADY = {
    *("random", "randomblob", "date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff"),
    *("current_date", "current_time", "current_timestamp", "load_extension", "zeroblob", "changes", "total_changes"),
}
MOST = 20_000
"""Thousands of steps of SQLite's machine that such a database takes in all."""
SHOWN = 20
"""Rows that are shown of a table, at most."""


def image(domain: Domain, tables: Tables) -> bytes:
    """Return the database of a domain with these rows; rules do not look at them.

    Raises:
        sqlite3.IntegrityError: the rows break a constraint.
    """
    made = sqlite3.connect(":memory:", isolation_level=None)
    try:
        plain = Domain(domain.name, domain.tables)
        made.execute("PRAGMA foreign_keys = ON")
        if domain.written:
            guard(made)
        made.executescript(plain.ddl())
        for name, rows in tables.items():
            for row in rows:
                columns = ", ".join(row)
                made.execute(f"INSERT INTO {name} ({columns}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
        made.executescript(domain.ddl().removeprefix(plain.ddl()))
        made.set_authorizer(None)
        return made.serialize()
    finally:
        made.close()


def guard(connection: sqlite3.Connection) -> None:
    """Keep a database to its tables: no other file, no setting, no clock, no chance, no endless work."""

    def allowed(action: int, first: str | None, second: str | None, *_: Any) -> int:
        if action not in ACTIONS or (action == sqlite3.SQLITE_FUNCTION and str(second).lower() in UNSTEADY):
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    steps = itertools.count()
    connection.set_authorizer(allowed)
    connection.set_progress_handler(lambda: next(steps) >= MOST, 1000)


class Database:
    """One episode's database.

    Args:
        domain: its tables and rules.
        begun: what :func:`image` or :meth:`snapshot` returned.
    """

    def __init__(self, domain: Domain, begun: bytes):
        self.domain = domain
        self.connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.connection.deserialize(begun)
        self.connection.execute("PRAGMA foreign_keys = ON")
        if domain.written:
            guard(self.connection)

    def close(self) -> None:
        self.connection.close()

    def snapshot(self) -> bytes:
        """Return a backup of the database."""
        return self.connection.serialize()

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Take back what is called meanwhile."""
        self.connection.execute("SAVEPOINT tried")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK TO tried")
            self.connection.execute("RELEASE tried")

    @property
    def changes(self) -> int:
        """Rows changed so far, by calls and rules; it rises with every change of the state."""
        return self.connection.total_changes

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return every row there is."""
        return {t.name: self._rows(f"SELECT * FROM {t.name} ORDER BY {', '.join(t.key)}") for t in self.domain.tables}

    def digest(self) -> str:
        """Return a key of the state, equal where the facts are."""
        kept = [
            self.connection.execute(
                f"SELECT {', '.join(c.name for c in t.columns)} FROM {t.name} ORDER BY {', '.join(t.key)}"
            ).fetchall()
            for t in self.domain.tables
        ]
        return hashlib.blake2b(repr(kept).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def call(self, operation: Operation, table: str, arguments: Mapping[str, Any]) -> str:
        """Make a call; returns what is said of it.

        Raises:
            ToolError: it is refused: with the code of a rule, or for a constraint. The state is then as before.
        """
        try:
            return self._call(operation, table, arguments)
        except sqlite3.IntegrityError as error:
            raise ToolError(_refusal(str(error))) from None
        except sqlite3.DatabaseError as error:
            if not self.domain.written:
                raise
            raise ToolError(f"RULES: {error}") from None
        except (OverflowError, UnicodeEncodeError):
            raise ToolError("that is no value a table can have") from None

    def _call(self, operation: Operation, table: str, arguments: Mapping[str, Any]) -> str:
        key = self.domain.table(table).key
        if operation == "read":
            where = f" WHERE {' AND '.join(f'{c} = ?' for c in arguments)}" if arguments else ""
            order = f"ORDER BY {', '.join(key)} LIMIT {SHOWN + 1}"
            rows = self._rows(f"SELECT * FROM {table}{where} {order}", *arguments.values())
            lines = [json.dumps(row, ensure_ascii=False) for row in rows[:SHOWN]]
            return "\n".join([*lines, *(["..."] if len(rows) > SHOWN else [])]) or "no rows"
        if operation == "create":
            places = ", ".join("?" * len(arguments))
            self.connection.execute(
                f"INSERT INTO {table} ({', '.join(arguments)}) VALUES ({places})", [*arguments.values()]
            )
            return "done"
        found = " AND ".join(f"{c} = ?" for c in key)
        which = [arguments[c] for c in key]
        if operation == "delete":
            done = self.connection.execute(f"DELETE FROM {table} WHERE {found}", which)
        else:
            new = {c: v for c, v in arguments.items() if c not in key}
            if not new:
                raise ToolError("there is nothing to change; give a new value")
            sets = ", ".join(f"{c} = ?" for c in new)
            done = self.connection.execute(f"UPDATE {table} SET {sets} WHERE {found}", [*new.values(), *which])
        if not done.rowcount:
            raise ToolError(f"there is no such row of {table}")
        return "done"

    def _rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        found = self.connection.execute(query, values)
        names = [d[0] for d in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]


def _refusal(error: str) -> str:
    """Return what is told of an error: a rule's code as it is, a constraint in words."""
    kind, _, what = error.partition(" constraint failed")
    if not what and kind == error:
        return error
    what = what.strip(": ")
    return {
        "UNIQUE": f"CONSTRAINT_UNIQUE: there is such a row already ({what})",
        "CHECK": f"CONSTRAINT_CHECK: {what} must hold",
        "FOREIGN KEY": "CONSTRAINT_REFERENCE: it names a row that there is not, or that others name",
        "NOT NULL": f"CONSTRAINT_MISSING: {what} is missing",
    }.get(kind, f"CONSTRAINT: {error}")
