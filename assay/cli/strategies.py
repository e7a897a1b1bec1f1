"""``assay eval --strategy``: accuracy against cost of strategies at test time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.common import say
from assay.errors import RunError, UsageError
from assay.evaluate.strategies.comparison import Comparison

if TYPE_CHECKING:
    from assay.evaluate.strategies.bank import ResponseBank

FOUND = "strategies.json"
"""In the folder of a comparison that is finished."""


def command(
    target: str,
    overrides: Sequence[str],
    strategy: str,
    budgets: str,
    out: Path | None,
    as_json: bool,
    bank: ResponseBank | None = None,
) -> int:
    """Compare, print the table or the JSON, and write both and the page into the folder ``out`` if there is one."""
    from assay.evaluate.strategies.run import run

    if out is not None and out.suffix:
        raise UsageError(f"with --strategy, --out is a folder for strategies.json and strategies.html, not {out}")
    return _shown(run(target, overrides, strategy, budgets, as_json, out, bank), out, as_json)


def again(folder: Path, as_json: bool) -> int:
    """Show a comparison that is in ``folder``, and write its page again; nothing is sampled.

    Raises:
        RunError: it cannot be read.
    """
    try:
        text = (folder / FOUND).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {folder / FOUND}: {error}") from None
    return _shown(Comparison.from_json(text), folder, as_json)


def _shown(found: Comparison, out: Path | None, as_json: bool) -> int:
    from assay.report.strategies import COLUMNS, table, write

    paths = []
    if out is not None:
        try:
            paths = write(found, out)
        except OSError as error:
            raise RunError(f"could not write into {out}: {error.strerror or error}") from None
    if as_json:
        print(found.to_json())
        return 0
    rows = [COLUMNS, *table(found)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    for row in rows:
        # Names are on the left, numbers on the right of their columns.
        cells = (c.ljust(w) if k in (0, 6) else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        say("  ".join(cells).rstrip())
    print("".join(f"{path}\n" for path in paths), end="")
    return 0
