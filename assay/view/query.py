"""What is asked of a table: filters, sorting, pages, counts, groups, read from a link's parameters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.view.table import REAL, TEXT, WHOLE, Table, quoted

PAGE, MOST = 50, 500
"""Rows of a page, and the most that may be asked for."""
EXCERPT = 240
"""Characters of a text in a list."""
VERDICTS = {"right": "passed", "wrong": "NOT passed", "abstains": "passed IS NULL"}
WORDS = {True: "right", False: "wrong", None: "abstains"}
COUNTED = ("passed", "stop")
"""Columns whose values are counted beside a page."""
SEARCHED = ("response", "prompt", "feedback", "task_id")
NATURAL = {"step": True, "file": True, "row": False}
"""How rows are sorted that are otherwise equal, true for the greatest first: the newest step in its own order."""


class Wrong(Exception):
    """A parameter of a link that cannot be."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which samples, and in which order.

    Attributes:
        text: words that must stand in the response, the prompt, the feedback or the task's id, in any case.
        exact: by column, the values it may have; of ``passed`` right, wrong and abstains.
        low, high: by column, the least and the greatest number.
        sort: a column, with ``-`` before it for the greatest first.
        offset, limit: of the page.
    """

    text: str = ""
    exact: dict[str, list[str]] = field(default_factory=dict)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)
    sort: str = ""
    offset: int = 0
    limit: int = PAGE

    def where(self, table: Table, without: Collection[str] = ()) -> tuple[str, list[Any]]:
        """Return the condition in SQL with its values.

        Args:
            table: has the columns.
            without: columns whose filters are left out.
        """
        parts: list[str] = []
        values: list[Any] = []
        if self.text:
            parts.append("(" + " OR ".join(f"contains(lower({c}), lower(?))" for c in SEARCHED) + ")")
            values += [self.text] * len(SEARCHED)
        for column, wanted in self.exact.items():
            if column in without:
                continue
            if column == "passed":
                parts.append("(" + " OR ".join(_verdict(v) for v in wanted) + ")")
                continue
            kind = _kind(table, column)
            parts.append(f"{quoted(column)} IN (SELECT unnest(?))")
            values.append(wanted if kind == TEXT else [_number(column, v) for v in wanted])
        for limits, sign in ((self.low, ">="), (self.high, "<=")):
            for column, number in limits.items():
                if _kind(table, column) not in (WHOLE, REAL):
                    raise Wrong(f"{column} is no number")
                if column not in without:
                    # NaN is above every number to DuckDB, and of no size here.
                    parts.append(f"({quoted(column)} {sign} ? AND NOT isnan({quoted(column)}::DOUBLE))")
                    values.append(number)
        return " AND ".join(parts) or "true", values

    def order(self, table: Table) -> str:
        """Return how rows are sorted, in SQL; those without a value come last."""
        keys = []
        if self.sort:
            column = self.sort.removeprefix("-")
            kind = _kind(table, column)
            way = "DESC" if self.sort.startswith("-") else "ASC"
            name = quoted(column)
            value = f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END" if kind == REAL else name
            keys.append(f"{value} {way} NULLS LAST")
        keys += [f'"{c}" {"DESC" if down else "ASC"}' for c, down in NATURAL.items() if c != self.sort.lstrip("-")]
        return ", ".join(keys)


def read_query(pairs: Sequence[tuple[str, str]]) -> Query:
    """Read ``q``, ``sort``, ``offset``, ``limit``, ``is.COLUMN``, ``min.COLUMN``, ``max.COLUMN``.

    Raises:
        Wrong: a number that is none; other parameters are left alone.
    """
    text, sort, offset, limit = "", "", 0, PAGE
    exact: dict[str, list[str]] = {}
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for name, value in pairs:
        what, _, column = name.partition(".")
        if name == "q":
            text = value
        elif name == "sort":
            sort = value
        elif name == "offset":
            offset = max(0, int(_number(name, value)))
        elif name == "limit":
            limit = min(MOST, max(1, int(_number(name, value))))
        elif what == "is" and column:
            exact.setdefault(column, []).append(value)
        elif what in ("min", "max") and column and value:
            (low if what == "min" else high)[column] = _number(name, value)
    return Query(text, exact, low, high, sort, offset, limit)


def page(table: Table, query: Query) -> dict[str, Any]:
    """Return a page of samples with excerpts, how many there are, and counts by verdict and by reason to stop.

    A count leaves out the filter on its own column, so that it says what else could be chosen. Texts are read once:
    what passes the other filters is kept, in numbers, for the counts and the order.
    """
    cursor = table.connection.cursor()
    where, values = query.where(table, without=COUNTED)
    column = query.sort.removeprefix("-")
    more = f", {quoted(column)}" if column and column not in (*COUNTED, *NATURAL) and column in table.columns else ""
    source = f'SELECT rowid AS id, passed, stop, step, file, "row"{more} FROM {table.name} WHERE {where}'
    if query.text:
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE found AS {source}", values)
        source, values = "SELECT * FROM found", []
    counted = cursor.execute(f"SELECT passed, stop, count(*) FROM ({source}) GROUP BY ALL", values).fetchall()
    kept, wanted = Query(exact={c: v for c, v in query.exact.items() if c in COUNTED}).where(table)
    picked = f"SELECT id FROM ({source}) WHERE {kept} ORDER BY {query.order(table)} LIMIT ? OFFSET ?"
    ids = [r[0] for r in cursor.execute(picked, [*values, *wanted, query.limit, query.offset]).fetchall()]
    rows = []
    if ids:
        listed = f"SELECT rowid AS id, * FROM {table.name} WHERE rowid IN (SELECT unnest(?))"
        by_id = {row.pop("id"): row for row in _dicts(cursor.execute(listed, [ids]))}
        # A row that the run has just removed is passed over.
        rows = [_excerpted(by_id[id], query.text) for id in ids if id in by_id]
    return {"rows": rows, **_counts(counted, query), "loading": table.waiting}


def _counts(counted: Sequence[tuple[Any, Any, int]], query: Query) -> dict[str, Any]:
    total, facets = 0, {column: Counter[str]() for column in COUNTED}
    for passed, stop, n in counted:
        row = {"passed": WORDS[passed], "stop": str(stop)}
        fits = {c: c not in query.exact or row[c] in query.exact[c] for c in COUNTED}
        total += n if all(fits.values()) else 0
        for column in COUNTED:
            if all(fits[c] for c in COUNTED if c != column):
                facets[column][row[column]] += n
    return {"total": total, "facets": {c: dict(found.most_common()) for c, found in facets.items()}}


def groups(table: Table, query: Query) -> dict[str, Any]:
    """Return a page of groups, the samples of one prompt at one step, of those samples that pass the filters.

    The order is that of ``query.sort``, one of step, samples, right, rate, reward, spread, length.
    """
    cursor = table.connection.cursor()
    where, values = query.where(table)
    sorts = {"step", "samples", "right", "rate", "reward", "spread", "length", "task_id"}
    sort, down = query.sort.removeprefix("-"), "DESC" if query.sort.startswith("-") else "ASC"
    if sort and sort not in sorts:
        raise Wrong(f"groups cannot be sorted by {sort!r}; by {', '.join(sorted(sorts))}")
    first = f'"{sort}" {down} NULLS LAST, ' if sort else ""
    inner = (
        'SELECT step, "group", task_id, count(*) AS samples, count(*) FILTER (passed) AS "right", '
        "count(*) FILTER (passed IS NULL) AS abstained, avg(passed::INT) AS rate, "
        "avg(reward) FILTER (NOT isnan(reward)) AS reward, "
        "stddev_pop(reward) FILTER (isfinite(reward)) AS spread, avg(length) AS length, "
        f"min(prompt)[:{EXCERPT}] AS prompt FROM {table.name} WHERE {where} GROUP BY ALL"
    )
    asked = f'{inner} ORDER BY {first}step DESC, "group", task_id LIMIT ? OFFSET ?'
    rows = list(_dicts(cursor.execute(asked, [*values, query.limit, query.offset])))
    total = cursor.execute(f"SELECT count(*) FROM ({inner})", values).fetchone()
    assert total is not None
    return {"rows": rows, "total": total[0], "loading": table.waiting}


def steps(table: Table, query: Query) -> list[dict[str, Any]]:
    """Return the samples that pass the filters in numbers, step by step."""
    cursor = table.connection.cursor()
    where, values = query.where(table)
    terms = [c for c in table.columns if c.startswith("reward/")]
    means = "".join(f", avg({quoted(c)}) FILTER (isfinite({quoted(c)})) AS {quoted(c)}" for c in terms)
    return list(
        _dicts(
            cursor.execute(
                'SELECT step, count(*) AS samples, count(*) FILTER (passed) AS "right", '
                "count(*) FILTER (passed IS NULL) AS abstained, avg(reward) FILTER (isfinite(reward)) AS reward, "
                f"avg(length) AS length{means} FROM {table.name} WHERE {where} GROUP BY step ORDER BY step",
                values,
            )
        )
    )


def export(table: Table, query: Query, most: int) -> Iterator[dict[str, Any]]:
    """Yield the whole texts and numbers of samples that pass the filters, in order, ``most`` of them."""
    where, values = query.where(table)
    asked = f"SELECT * FROM {table.name} WHERE {where} ORDER BY {query.order(table)} LIMIT ?"
    yield from _dicts(table.connection.cursor().execute(asked, [*values, most]))


def chosen(table: Table, keys: Sequence[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """Yield samples by file and row, in this order; those that are not there are passed over."""
    cursor = table.connection.cursor()
    asked = f'SELECT * FROM {table.name} WHERE file = ? AND "row" = ?'
    for key in keys:
        yield from _dicts(cursor.execute(asked, list(key)))


def finite(value: Any) -> Any:
    """Return a value as JSON has it: what is no number is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return [finite(v) for v in value] if isinstance(value, list | tuple) else value


def _dicts(found: Any) -> Iterator[dict[str, Any]]:
    names = [d[0] for d in found.description]
    while rows := found.fetchmany(1000):
        for row in rows:
            yield dict(zip(names, map(finite, row), strict=True))


def _excerpted(row: dict[str, Any], text: str) -> dict[str, Any]:
    return row | {c: excerpt(row[c], text) for c in ("prompt", "response", "feedback") if row[c] is not None}


def excerpt(text: str, around: str = "") -> str:
    """Return a piece of a text: around the words looked for if they are in it, else its beginning."""
    if len(text) <= EXCERPT:
        return text
    at = text.lower().find(around.lower()) if around else -1
    start = max(0, min(at - EXCERPT // 3, len(text) - EXCERPT)) if at > EXCERPT // 2 else 0
    return ("…" if start else "") + text[start : start + EXCERPT] + ("…" if start + EXCERPT < len(text) else "")


def _kind(table: Table, column: str) -> str:
    if column not in table.columns:
        raise Wrong(f"there is no column {column!r}; there are {', '.join(table.columns)}")
    return table.columns[column]


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Wrong(f"{name}={value!r} is no number")
    return number


def _verdict(word: str) -> str:
    if word not in VERDICTS:
        raise Wrong(f"a verdict is {', '.join(VERDICTS)}, not {word!r}")
    return VERDICTS[word]
