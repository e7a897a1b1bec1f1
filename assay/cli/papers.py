"""``assay papers``: which papers are there, and how far."""

from __future__ import annotations

import json
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import AsJson, plain, print_table


def papers_list(as_json: AsJson = False) -> int:
    """List the 226 papers, the seams each changes, and the state of its implementation.

    Args:
        as_json: print JSON.
    """
    from collections import Counter

    from assay.papers import rows

    found = rows()
    if as_json:
        print(json.dumps([plain(r) for r in found]))
        return 0
    print_table(
        ("id", "state", "seams", "title"),
        [(r.id, r.state, " ".join(r.seams), r.title) for r in found],
    )
    counts = Counter(r.state for r in found)
    print(f"{len(found)} papers: " + ", ".join(f"{n} {state}" for state, n in counts.items()))
    return 0


def papers_show(key: Annotated[str, Positional], as_json: AsJson = False) -> int:
    """Show one paper's row.

    Args:
        key: its id, e.g. S014.
        as_json: print JSON.
    """
    from assay.papers import find

    row = plain(find(key))
    if as_json:
        print(json.dumps(row))
    else:
        print("\n".join(f"{k:>8}  {' '.join(v) if isinstance(v, list | tuple) else v}" for k, v in row.items() if v))
    return 0
