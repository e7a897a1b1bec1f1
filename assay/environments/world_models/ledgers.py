"""Databases as worlds to be modelled: those of the environment ``shop``, a few rows, by its own tables and triggers."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

import numpy as np

from assay.environments.shop.domain import Domain
from assay.environments.shop.explore import Call, Found, explore
from assay.environments.shop.themes import THEMES
from assay.environments.world_models.bank import ledger
from assay.environments.world_models.described import Described, completed


def make_ledger(rng: np.random.Generator) -> Described:
    """Return a database with the calls that can be made there."""
    found = explore(int(rng.integers(2**31)), 0, tuple(THEMES), 3, 2)
    domain, theme = found.domain, found.theme
    bare = Domain(domain.name, domain.tables)
    columns = {t.name: [c.name for c in t.columns] for t in domain.tables}
    state = _few(found, columns)
    constants = {
        "TABLES": bare.ddl(),
        "RULES": domain.ddl().removeprefix(bare.ddl()),
        "KEYS": {t.name: list(t.key) for t in domain.tables},
        "COLUMNS": columns,
    }
    tables = "; ".join(f"{name} ({', '.join(some)})" for name, some in columns.items())
    about = (
        f"The database of a {theme.name}. A state is an object with a list of rows for each table, sorted by key; a "
        f"row is an object. Tables: {tables}. An action is a call with its arguments in JSON, "
        f"such as {_line(found.calls[0])}. What update does not name stays."
    )
    told = [f"{tool.name}: {tool.description}" for tool in domain.tools() if tool.name.partition("_")[0] != "read"]
    rules = (
        *told,
        f"A new {theme.claim} is asked unless told otherwise." if "status" in columns[theme.claim] else "",
        "update and delete of a row that there is not are refused.",
        "A call that is refused changes nothing and costs 1: the reward is -1. Any other earns 1. No episode ends.",
    )
    return Described(
        about,
        tuple(filter(None, rules)),
        completed(ledger, constants),
        [_calls(found, state)],
        [state],
        horizon=4,
        effort=400,
    )


def _few(found: Found, columns: dict[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a start that the client has to do with."""
    t = found.theme
    claims = [row for row in found.start[t.claim] if row[t.actor] == _client(found)]
    named = {row[t.resource] for row in claims}
    named |= {arguments[t.resource] for _, _, arguments in (*found.calls, *(call for call, _ in found.refused))}
    kept = {
        **found.start,
        t.actor: [row for row in found.start[t.actor] if row["id"] == _client(found)],
        t.resource: [row for row in found.start[t.resource] if row["id"] in named],
        t.claim: claims,
    }
    # What others have claimed of a resource is in ``taken`` still.
    rows = {name: [{c: row.get(c, "asked") for c in some} for row in kept[name]] for name, some in columns.items()}
    keys = {table.name: table.key for table in found.domain.tables}
    return {name: sorted(some, key=itemgetter(*keys[name])) for name, some in rows.items()}


def _client(found: Found) -> str:
    return next(str(row["id"]) for row in found.start[found.theme.actor] if row["name"] == found.client)


def _calls(found: Found, state: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return calls that are accepted, refused, and change what the others come to."""
    t, client = found.theme, _client(found)
    made: list[Call] = [*found.calls, *(call for call, _ in found.refused)]
    for row in state[t.resource][:3]:
        key = {t.actor: client, t.resource: row["id"]}
        made += [("create", t.claim, {**key, "quantity": 1}), ("update", t.claim, {**key, "quantity": 9})]
        made += [("delete", t.claim, key), ("update", t.claim, {**key, "status": "confirmed"})]
    made.append(("create", t.claim, {t.actor: client, t.resource: state[t.resource][0]["id"], "quantity": 10}))
    return list(dict.fromkeys(map(_line, made)))


def _line(call: Call) -> str:
    operation, table, arguments = call
    return f"{operation}_{table} {json.dumps(arguments, sort_keys=True)}"
