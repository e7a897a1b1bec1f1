"""Tables and the rules of their database, by those of the environment ``shop``."""

import functools
import json
import sqlite3

TABLES, RULES = "CREATE TABLE item (id TEXT);", ""
KEYS, COLUMNS = {"item": ["id"]}, {"item": ["id"]}


def step(state, action):
    made = sqlite3.connect(":memory:", isolation_level=None)
    try:
        made.deserialize(image(json.dumps(state)))
        made.execute("PRAGMA foreign_keys = ON")
        done = call(made, *action.split(" ", 1))
        return [read(made) if done else state, 1.0 if done else -1.0, False]
    finally:
        made.close()


@functools.cache
def image(text):
    state, made = json.loads(text), sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(TABLES)
    for table in KEYS:
        for row in state[table]:
            places = ", ".join("?" * len(row))
            made.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", list(row.values()))
    made.executescript(RULES)
    return made.serialize()


def call(made, name, arguments):
    verb, table = name.split("_", 1)
    given = json.loads(arguments)
    found = " AND ".join(f"{column} = :{column}" for column in KEYS[table])
    try:
        if verb == "create":
            places = ", ".join(f":{column}" for column in given)
            return made.execute(f"INSERT INTO {table} ({', '.join(given)}) VALUES ({places})", given).rowcount > 0
        if verb == "delete":
            return made.execute(f"DELETE FROM {table} WHERE {found}", given).rowcount > 0
        new = ", ".join(f"{column} = :{column}" for column in given if column not in KEYS[table])
        return made.execute(f"UPDATE {table} SET {new} WHERE {found}", given).rowcount > 0
    except sqlite3.IntegrityError:
        return False


def read(made):
    return {table: rows(made, table) for table in KEYS}


def rows(made, table):
    found = made.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY {', '.join(KEYS[table])}")
    return [dict(zip(COLUMNS[table], row, strict=True)) for row in found]
