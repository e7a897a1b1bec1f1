"""Domains that somebody has written, as JSON: read, kept from harm, and shown by calls to hold what they say."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import lru_cache
from typing import Any, get_args

from assay.environments.shop.database import Database, image
from assay.environments.shop.domain import Column, Domain, Operation, Rule, Table
from assay.environments.tools import ToolError
from assay.verify.structured.state import Facts, Tables, facts

Call = tuple[Operation, str, dict[str, Any]]
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
CODE = re.compile(r"POLICY_[A-Z0-9_]{1,40}")
EVENT = re.compile(r"insert|delete|update of ([a-z][a-z0-9_]*)")


class BadDomain(Exception):
    """What is wrong with a domain, rows or calls, in a line."""


def read_domain(said: Any) -> Domain:
    """Return the domain that JSON tells of: ``{"name", "tables", "rules"}``, with the fields that these have here.

    Raises:
        BadDomain: it tells of none, or of one that SQLite cannot make.
    """
    try:
        tables = tuple(
            Table(
                **_only(Table, table)
                | {"columns": tuple(Column(**_only(Column, c)) for c in table["columns"])}
                | {"key": tuple(table["key"]), "operations": tuple(table.get("operations", ("read",)))}
            )
            for table in said["tables"]
        )
        rules = tuple(Rule(**_only(Rule, rule)) for rule in said["rules"])
        domain = Domain(str(said["name"]), tables, rules, written=True)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadDomain(f"it is no domain: {type(error).__name__} {error}") from None
    if wrong := _wrong(domain):
        raise BadDomain(wrong)
    try:
        Database(domain, image(domain, {})).close()
    except sqlite3.Error as error:
        raise BadDomain(f"SQLite: {error}") from None
    return domain


def _only(kind: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(kind)}
    if more := set(said) - known:
        raise BadDomain(f"{kind.__name__.lower()}: {sorted(more)[0]!r} is none of {', '.join(sorted(known))}")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}


def _wrong(domain: Domain) -> str:
    names = [table.name for table in domain.tables]
    if not names or len(set(names)) < len(names):
        return "there are no tables, or two of one name"
    for table in domain.tables:
        columns = {column.name: column for column in table.columns}
        if not all(isinstance(n, str) and NAME.fullmatch(n) for n in (table.name, *columns)) or "number" in columns:
            return f"table {table.name}: names are small letters, digits and _, and none of a column is number"
        if len(columns) < len(table.columns) or not table.key or not set(table.key) <= set(columns):
            return f"table {table.name}: its columns have names of their own, and its key is some of them"
        if not set(table.operations) <= set(get_args(Operation)):
            return f"table {table.name}: operations are {', '.join(get_args(Operation))}"
        for column in table.columns:
            if column.type not in ("text", "integer") or column.references not in ("", *names):
                return f"column {column.name} of {table.name}: its type is text or integer, and references a table"
            if not all(isinstance(one, str) for one in (column.check, *column.choices)):
                return f"column {column.name} of {table.name}: check is SQL and choices are texts"
            if not isinstance(column.default, str | int | None) or isinstance(column.default, bool):
                return f"column {column.name} of {table.name}: its default is a text or a whole number"
    for rule in domain.rules:
        if not all(isinstance(one, str) for one in (rule.table, rule.event, rule.sql, rule.words, rule.code)):
            return "a rule is made of texts"
        event = EVENT.fullmatch(rule.event)
        if rule.table not in names or event is None or not rule.words.strip():
            return f"rule {rule.code or rule.words!r}: it needs a table, an event (insert, delete, update of x), words"
        if event[1] and event[1] not in {column.name for column in domain.table(rule.table).columns}:
            return f"rule {rule.code or rule.words!r}: {rule.table} has no column {event[1]}"
        if rule.code and not CODE.fullmatch(rule.code):
            return f"rule {rule.code!r}: a code is POLICY_ and capital letters"
    if not any(rule.code for rule in domain.rules):
        return "no rule refuses anything"
    return ""


def plain_domain(domain: Domain) -> str:
    """Return the text that :func:`domain_of` reads."""
    tables, rules = ([asdict(one) for one in some] for some in (domain.tables, domain.rules))
    told = {"name": domain.name, "tables": tables, "rules": rules}
    return json.dumps(told, ensure_ascii=False)


@lru_cache(maxsize=256)
def domain_of(told: str) -> Domain:
    """Return the domain of a task.

    Raises:
        BadDomain: it is none.
    """
    return read_domain(json.loads(told))


def begun(domain: Domain, rows: Any) -> bytes:
    """Return a domain's database with these rows.

    Raises:
        BadDomain: they are none of its, or break a constraint.
    """
    known = {table.name: {column.name for column in table.columns} for table in domain.tables}
    if not isinstance(rows, dict) or not set(rows) <= set(known):
        raise BadDomain(f"rows are an object from {', '.join(known)} to lists of objects")
    for name, some in rows.items():
        if not isinstance(some, list) or not all(isinstance(row, dict) and set(row) <= known[name] for row in some):
            raise BadDomain(f"rows of {name} are objects of {', '.join(sorted(known[name]))}")
    try:
        return image(domain, rows)
    except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
        raise BadDomain(f"rows: {error}") from None


def read_call(domain: Domain, said: Any) -> Call:
    """Return the call that JSON tells of: ``[operation, table, {column: value}]``, of a tool that there is.

    Raises:
        BadDomain: it is none.
    """
    try:
        operation, table, arguments = said
        [tool] = [t for t in domain.tools() if t.name == f"{operation}_{table}"]
        schema: Any = tool.parameters
        if not set(schema["required"]) <= set(arguments) <= set(schema["properties"]):
            raise BadDomain(f"{tool.name} takes {', '.join(schema['properties'])}, not {', '.join(arguments)}")
        return operation, table, dict(arguments)
    except (ValueError, TypeError):
        raise BadDomain(f"{json.dumps(said)[:200]} is no call [operation, table, arguments] of a tool") from None


def unproven(domain: Domain, rows: Any, probes: Sequence[Sequence[Any]]) -> list[str]:
    """Return what probes leave to be shown: a refusal and an acceptance of each rule, a change by each effect.

    Each probe is some calls from the same start, of which all but the last must be let through. A rule with a code has
    to refuse a last call, and let one of its kind through; a side effect has to leave another state than without it.

    Raises:
        BadDomain: a call or a row is none, or a call before the last is refused.
    """
    start = begun(domain, rows)
    refused: set[tuple[str, str, str]] = set()
    accepted: set[tuple[str, str]] = set()
    live: set[int] = set()
    for probe in probes:
        calls = [read_call(domain, one) for one in probe]
        if not calls:
            raise BadDomain("a probe is one call or more")
        operation, table, _ = calls[-1]
        said, end = tried(domain, start, calls)
        if len(said) < len(calls):
            raise BadDomain(f"probe {json.dumps(probe)[:200]}: {said[-1]}, before its last call")
        if said[-1]:
            refused.add((table, operation, said[-1]))
            continue
        accepted.add((table, operation))
        for i, rule in enumerate(domain.rules):
            if not rule.code and (rule.table, rule.operation) == (table, operation) and i not in live:
                less = replace(domain, rules=(*domain.rules[:i], *domain.rules[i + 1 :]))
                if tried(less, image(less, rows), calls)[1] != end:
                    live.add(i)
    wrong = []
    for i, rule in enumerate(domain.rules):
        kind = f"{rule.operation}_{rule.table}"
        if not rule.code and i not in live:
            wrong.append(f"no probe shows that after {kind} {rule.words}")
        if rule.code and (rule.table, rule.operation, rule.code) not in refused:
            wrong.append(f"no probe of {kind} is refused with {rule.code}")
        if rule.code and (rule.table, rule.operation) not in accepted:
            wrong.append(f"no probe of {kind} is let through")
    return list(dict.fromkeys(wrong))


def tried(domain: Domain, start: bytes, calls: Sequence[Call]) -> tuple[list[str], Facts | None]:
    """Return what each call was refused with, empty where it was not, up to a refusal; and the facts at the end.

    Where a call before the last is refused there is no end.
    """
    said: list[str] = []
    database = Database(domain, start)
    try:
        for number, call in enumerate(calls):
            try:
                database.call(*call)
                said.append("")
            except ToolError as error:
                said.append(str(error))
                if number + 1 < len(calls):
                    return said, None
        return said, facts(database.tables(), domain.keys, volatile=domain.volatile)
    finally:
        database.close()


def told_ids(domain: Domain, *states: Tables) -> set[str]:
    """Return what a user does not know: the texts that tell rows apart, unless they are names."""
    return {
        str(row[column])
        for state in states
        for table in domain.tables
        for row in state[table.name]
        for column in table.key
        if column != "name" and isinstance(row[column], str)
    }
