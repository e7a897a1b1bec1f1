"""A small database."""

from __future__ import annotations

DATABASE = {
    "schema": "CREATE TABLE staff(id INTEGER PRIMARY KEY, name TEXT, pay REAL, boss INTEGER);",
    "rows": {"staff": [[1, "Ann", 10.5, None], [2, "Bob", 7.25, 1], [3, "Cy", 7.25, 1], [4, "Dee", 3.0, 2]]},
}
