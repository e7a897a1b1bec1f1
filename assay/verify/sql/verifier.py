"""SQL queries, judged by what they return."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import extract
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.puzzles.puzzle import overspent, unfence
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.sql.worker", memory=3 << 30)
_START = re.compile(r"^[ \t]*(?:WITH|SELECT|VALUES|FROM)\b", re.IGNORECASE | re.MULTILINE)
_INLINE = re.compile(r"\b(?:WITH|SELECT)\b", re.IGNORECASE)
_SKIPPED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[()]|\bORDER\s{1,9}BY\b", re.IGNORECASE)
MAX_DEPTH = 200
"""Nested parentheses of a query; parsers take long over many, or run out of stack."""

Engine = Literal["sqlite", "duckdb"]


@part("verify", "sql")
@dataclass(frozen=True, slots=True)
class Sql:
    """Right iff the query in the response returns what the reference query does, on every database given.

    ``task.reference`` (a mapping, or JSON text of it) has

    - ``"query"``: the reference query, or a list of queries of which any will do; or ``"result"``: ``{"rows": [[...]],
      "columns": [names]}``, for a single database;
    - ``"database"`` or a list ``"databases"`` (several make accidental agreement rare): ``{"schema": "CREATE TABLE
      ...", "rows": {table: [[...], ...]}}``, where the schema may hold any SQL, or ``{"file": path}``, opened
      read-only;
    - ``"ordered"``: whether the order of rows counts (default: if the reference query has ORDER BY at its top level);
    - ``"engine"``, ``"columns"``, ``"names"``: in place of the options here.

    The query is the last block fenced as sql, else the ``<answer>``, else what begins with the last line that starts
    with SELECT or WITH. It may read and nothing else; several statements, files and settings are refused, random
    numbers as well (SQLite) or seeded (DuckDB). A query that takes longer than ``seconds`` of processor time or returns
    more than ``max_rows`` is wrong: the limits are part of what is asked. Abstains where the reference cannot be run
    within them.

    ``parts``: ``executes``; ``columns``; ``rows``, the share of rows in common (F1), all over databases; ``databases``,
    the share of databases with the right result.

    Args:
        engine: ``sqlite``, or ``duckdb``, which has to be installed.
        columns: ``ordered``, or ``any`` where columns may come in any order.
        names: names of columns have to agree, without regard to case.
        relative, absolute: tolerance of numbers of which one is a float or decimal.
        duplicates: how often a row comes counts.
        root: folder that relative paths of database files start from.

    Raises:
        UsageError: when made, if the engine is not installed or a limit is not positive.
    """

    engine: Engine = "sqlite"
    columns: Literal["ordered", "any"] = "ordered"
    names: bool = False
    relative: float = 1e-6
    absolute: float = 1e-9
    duplicates: bool = True
    seconds: float = 5.0
    max_rows: int = 50_000
    max_chars: int = 50_000
    root: str = ""

    def __post_init__(self) -> None:
        if self.engine == "duckdb" and importlib.util.find_spec("duckdb") is None:
            raise UsageError("verifier 'sql' with engine 'duckdb' needs duckdb: pip install assay[sql]")
        if not (self.seconds > 0 and self.max_rows > 0):
            raise UsageError(f"verifier 'sql': seconds {self.seconds} and max_rows {self.max_rows} must be above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            engine, golds, databases, rule = self._read(task.reference)
        except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
            return Verdict.abstain(
                f"task {task.id}: reference is not {{'query': SQL, 'database': {{...}}}} ({shorten(str(error))})"
            )
        query = query_of(response)
        if query is None:
            return Verdict(0.0, False, {"executes": 0.0}, "no SQL query found")
        if len(query) > self.max_chars:
            return Verdict(0.0, False, {"executes": 0.0}, f"the query is longer than {self.max_chars} characters")
        if not query.isprintable() and any("\ud800" <= c <= "\udfff" for c in query):
            return Verdict(0.0, False, {"executes": 0.0}, "the query is not valid Unicode")
        if _nested(query) > MAX_DEPTH:
            return Verdict(0.0, False, {"executes": 0.0}, f"parentheses nested deeper than {MAX_DEPTH}")
        if engine == "duckdb" and importlib.util.find_spec("duckdb") is None:
            return Verdict.abstain("the task's engine needs duckdb: pip install assay[sql]")
        verdict = Verdict.abstain(f"task {task.id} has no reference query")
        for gold in golds:
            verdict = self._judge(engine, gold, databases, query, rule)
            if verdict.passed is not False:
                break
        return verdict

    def _read(self, reference: Any) -> tuple[Engine, list[Any], list[str], dict[str, Any]]:
        given: Mapping[str, Any] = json.loads(reference) if isinstance(reference, str) else reference
        engine = given.get("engine", self.engine)
        columns = given.get("columns", self.columns)
        if engine not in ("sqlite", "duckdb") or columns not in ("ordered", "any"):
            raise ValueError(f"engine {engine!r} or columns {columns!r} is not known")
        databases = []
        for spec in given.get("databases") or [given["database"]]:
            kept = {key: spec[key] for key in ("schema", "rows", "file") if spec.get(key)}
            if "file" in kept:
                kept["file"] = os.path.join(self.root, kept["file"])
            databases.append(json.dumps(kept, sort_keys=True))
        if "result" in given:
            result = given["result"]
            golds: list[Any] = [{"rows": [list(row) for row in result["rows"]], "columns": result.get("columns")}]
        else:
            golds = [given["query"]] if isinstance(given["query"], str) else [str(query) for query in given["query"]]
        rule = {
            "columns": columns,
            "names": bool(given.get("names", self.names)),
            "relative": self.relative,
            "absolute": self.absolute,
            "duplicates": self.duplicates,
            "ordered": given.get("ordered"),
        }
        return engine, golds, databases, rule

    def _judge(self, engine: Engine, gold: Any, databases: list[str], query: str, rule: dict[str, Any]) -> Verdict:
        if rule["ordered"] is None:
            rule = {**rule, "ordered": isinstance(gold, str) and orders(gold)}
        outcomes: list[dict[str, Any]] = []
        for database in databases:
            arguments = (engine, database, gold, query, self.seconds, self.max_rows, rule)
            # The worker stops each of the two queries by itself; this limit is for what cannot be interrupted.
            found = WORKERS.call("judge", *arguments, seconds=2 * self.seconds + 1)
            if isinstance(found, Failure):
                found = self._blame(engine, database, gold, found)
            if "fault" in found:
                return Verdict.abstain(f"the reference query {found['fault']}")
            outcomes.append(found)
        count = len(outcomes)
        right = sum(outcome.get("complaint") == "" for outcome in outcomes)
        parts: dict[str, float | None] = {
            "executes": sum("error" not in outcome for outcome in outcomes) / count,
            "columns": sum(outcome.get("columns", 0.0) for outcome in outcomes) / count,
            "rows": sum(outcome.get("rows", 0.0) for outcome in outcomes) / count,
            "databases": right / count,
        }
        passed = right == count
        complaint = next((o.get("error") or o.get("complaint", "") for o in outcomes if o.get("complaint") != ""), "")
        return Verdict(float(passed), passed, parts, shorten(f"the query {complaint}", 300) if complaint else "")

    def _blame(self, engine: Engine, database: str, gold: Any, failure: Failure) -> dict[str, Any]:
        """Say whether a call that the worker did not survive was the query's fault: is it well without the query?"""
        if not overspent(failure):
            return {"fault": f"or the query could not be run: {failure.reason}"}
        alone = gold if isinstance(gold, str) else "SELECT 1"
        found = WORKERS.call("run", engine, database, alone, self.seconds, self.max_rows, seconds=2 * self.seconds + 1)
        if isinstance(found, Failure) or "error" in found:
            return {"fault": f"cannot be run: {found.reason if isinstance(found, Failure) else found['error']}"}
        return {"error": failure.reason}


def query_of(response: str) -> str | None:
    """Return the SQL query of ``response``, ``None`` if there is none.

    It is the last block fenced as SQL, else the ``<answer>``, else what starts with the last SELECT or WITH.
    """
    text = extract(response, ("answer_tag",), "whole") or ""
    fenced = unfence(text, ("sql", "sqlite", "duckdb", "postgresql"))
    if fenced is not text:
        return fenced.strip() or None
    if "<answer>" in response and text != response.strip():
        return text or None
    starts = list(deque(_START.finditer(text), maxlen=1)) or list(deque(_INLINE.finditer(text), maxlen=1))
    if not starts:
        return None
    # A query over several lines has inner lines that start with SELECT: go back to the start of its paragraph.
    paragraph = text.rfind("\n\n", 0, starts[0].start()) + 1
    first = _START.search(text, paragraph) or starts[0]
    query = text[first.start() :]
    end = query.find(";")
    return (query if end < 0 or "'" in query[:end] else query[: end + 1]).partition("\n\n")[0].strip().strip(
        "`"
    ) or None


def _nested(query: str) -> int:
    depth = deepest = 0
    for character in query:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def orders(query: str) -> bool:
    """Say whether ``query`` has ORDER BY outside parentheses, quotes and comments."""
    depth = 0
    for match in _WORD.finditer(_SKIPPED.sub(" ", query)):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
        elif depth == 0:
            return True
    return False
