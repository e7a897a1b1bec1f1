"""Tables and the rules that hold for them, as SQL; and the tools that follow, whose descriptions say the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.types import Tool

Operation = Literal["create", "read", "update", "delete"]
LARGEST = 10**9
"""So that no sum of products leaves 64 bits."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; never null.

    Attributes:
        type: of its values.
        check: what SQL must find true of it, empty for anything.
        choices: the values there are, where they are few.
        references: table whose key it is.
        default: what a new row has unless told; there is none if ``None``.
        settable: whether tools may set it when they create or update; others change by rules alone.
    """

    name: str
    type: Literal["text", "integer"] = "integer"
    check: str = ""
    choices: tuple[str, ...] = ()
    references: str = ""
    default: Any = None
    settable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        key: columns that tell its rows apart; unique.
        operations: there are tools for.
        number: rows also have a running ``number``, which is no fact of theirs.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    operations: tuple[Operation, ...] = ("read",)
    number: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that is no constraint on single rows: a trigger.

    One with a ``code`` is a precondition: before an event it aborts with the code where ``sql``, a condition, is true.
    One without is a side effect: after the event ``sql``, statements, is run.

    Attributes:
        table, event: ``insert``, ``delete``, or ``update of COLUMN``.
        sql: over NEW and OLD.
        words: of the side effect, or of what is refused: "Refused with CODE if ...".
        code: stable, such as ``POLICY_FULL``.
    """

    table: str
    event: str
    sql: str
    words: str
    code: str = ""

    @property
    def operation(self) -> str:
        return {"insert": "create", "delete": "delete"}.get(self.event, "update")


@dataclass(frozen=True, slots=True)
class Domain:
    """Tables with the rules that are compiled into their database.

    Attributes:
        name: of the domain.
        rules: in the order they are looked at.
        written: whether somebody has written it whose SQL is not to be trusted.
    """

    name: str
    tables: tuple[Table, ...]
    rules: tuple[Rule, ...] = ()
    written: bool = False

    def table(self, name: str) -> Table:
        return next(t for t in self.tables if t.name == name)

    @property
    def keys(self) -> dict[str, list[str]]:
        return {t.name: list(t.key) for t in self.tables}

    @property
    def volatile(self) -> list[str]:
        return ["number"]

    def ddl(self) -> str:
        """Return the statements that make the database."""
        return "\n".join([*map(_table, self.tables), *(_trigger(i, rule) for i, rule in enumerate(self.rules))])

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, by name."""
        made = [self._tool(table, operation) for table in self.tables for operation in table.operations]
        return tuple(sorted(made, key=lambda t: t.name))

    def _tool(self, table: Table, operation: Operation) -> Tool:
        columns = {c.name: c for c in table.columns}
        settable = [c for c in table.columns if c.settable]
        required: Sequence[Column] = [columns[k] for k in table.key]
        optional: Sequence[Column] = [c for c in settable if c.name not in table.key]
        words = {
            "create": f"Add a row to {table.name}.",
            "read": f"Show the rows of {table.name} with these values; all, if none is given.",
            "update": f"Change values of a row of {table.name}.",
            "delete": f"Remove a row of {table.name}.",
        }[operation]
        if operation == "read":
            required, optional = [], table.columns
        elif operation == "delete":
            optional = []
        elif operation == "create":
            required = [*required, *(c for c in optional if c.default is None)]
            optional = [c for c in optional if c.default is not None]
        told = []
        if operation in ("create", "update"):
            told += [f"{c.name} is to satisfy {c.check}." for c in (*required, *optional) if c.check]
        if operation == "create":
            told += [f"There is one row for each {' and '.join(table.key)}."]
            told += [f"{c.name} must be a row of {c.references}." for c in required if c.references]
        told += [
            f"Refused with {r.code} if {r.words}." if r.code else f"Afterwards {r.words}."
            for r in self.rules
            if r.table == table.name and r.operation == operation
        ]
        schema = {
            "type": "object",
            "properties": {c.name: _schema(c) for c in (*required, *optional)},
            "required": [c.name for c in required],
            "additionalProperties": False,
        }
        return Tool(f"{operation}_{table.name}", " ".join([words, *told]), schema)


def _schema(column: Column) -> Mapping[str, Any]:
    if column.choices:
        return {"type": "string", "enum": list(column.choices)}
    if column.type == "text":
        return {"type": "string"}
    return {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}


def _table(table: Table) -> str:
    lines = ["number INTEGER PRIMARY KEY AUTOINCREMENT"] if table.number else []
    for c in table.columns:
        line = f"{c.name} {c.type.upper()} NOT NULL"
        if c.default is not None:
            line += f" DEFAULT {c.default!r}"
        if c.references:
            line += f" REFERENCES {c.references}"
        if c.check:
            line += f" CHECK ({c.check})"
        if c.choices:
            line += f" CHECK ({c.name} IN ({', '.join(map(repr, c.choices))}))"
        lines.append(line)
    lines.append(f"{'UNIQUE' if table.number else 'PRIMARY KEY'} ({', '.join(table.key)})")
    return f"CREATE TABLE {table.name} ({', '.join(lines)}) STRICT;"


def _trigger(index: int, rule: Rule) -> str:
    head = f"CREATE TRIGGER rule_{index} {'BEFORE' if rule.code else 'AFTER'} {rule.event.upper()} ON {rule.table}"
    if rule.code:
        return f"{head} WHEN {rule.sql} BEGIN SELECT RAISE(ABORT, '{rule.code}'); END;"
    return f"{head} BEGIN {rule.sql}; END;"
