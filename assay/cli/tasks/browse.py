"""``assay tasks``: browse what can be asked."""

from __future__ import annotations

import json
from typing import Annotated, Any

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, plain, print_table
from assay.printable import printable


def tasks_list(as_json: AsJson = False) -> int:
    """List the task sources.

    Example: assay tasks

    Args:
        as_json: print JSON.
    """
    from assay.tasks.browse import list_sources

    rows = list_sources()
    if as_json:
        print(json.dumps([plain(r) for r in rows]))
    else:
        print_table(("source", "what it asks"), [(plain(r)["name"], plain(r)["doc"]) for r in rows])
    return 0


def tasks_show(name: Annotated[str, Positional], as_json: AsJson = False) -> int:
    """Show a task source's options.

    Example: assay tasks show arithmetic

    Args:
        name: the source, e.g. arithmetic.
        as_json: print JSON.
    """
    from assay.tasks.browse import show

    found = plain(show(name))
    if as_json:
        print(json.dumps(found))
    else:
        print(f"{found['name']}: {found['doc']}")
        options = [plain(o) for o in found["options"]]
        print_table(tuple(options[0]) if options else ("option",), [tuple(str(v) for v in o.values()) for o in options])
    return 0


def tasks_sample(
    name: Annotated[str, Positional],
    options: Annotated[tuple[str, ...], Positional, tyro.conf.arg(metavar="option=value")] = (),
    n: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 3,
    as_json: AsJson = False,
) -> int:
    """Print a few tasks of a source.

    Example: assay tasks sample countdown numbers=4 -n 5

    Args:
        name: the source, e.g. arithmetic.
        options: its options, e.g. digits=3.
        n: how many.
        as_json: print JSON lines.
    """
    from assay.config import apply_override
    from assay.tasks.browse import sample

    spec: dict[str, Any] = {"name": name}
    for option in options:
        apply_override(spec, option)
    for row in sample(spec, n):
        task = plain(row)
        if as_json:
            print(json.dumps(task, default=str, ensure_ascii=False))
        else:
            shown = {k: v for k, v in task.items() if v not in (None, (), [], {})}
            print(printable("\n".join(f"{k:>10}  {v}" for k, v in shown.items())), "\n")
    return 0
