"""``assay parts``, ``assay config`` and ``assay new``: what a recipe can be made of."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, mentions, print_table, say
from assay.errors import UsageError, nearest

if TYPE_CHECKING:
    from assay.tables.parts import Option, PartRow

BRIEF = 24
"""Characters of a default that are shown in the list."""


def parts(
    seam: Annotated[str | None, Positional, tyro.conf.arg(metavar="[SEAM or WORDS]")] = None,
    name: Annotated[str | None, Positional, tyro.conf.arg(metavar="[NAME]")] = None,
    as_json: AsJson = False,
) -> int:
    """List every part that a recipe can name, or show one with its options.

    assay parts "majority vote"

    Example: assay parts credit gae

    Args:
        seam: of one seam only, e.g. credit; or words, for the parts that say all of them of themselves.
        name: a part of that seam, to see its options and the whole of what it says.
        as_json: print JSON.
    """
    from assay.registry import PACKAGES
    from assay.tables.parts import part_rows, row

    words = None
    if seam is not None and seam not in PACKAGES:
        if name is not None or get_close_matches(seam, PACKAGES, cutoff=0.8):
            raise UsageError(f"no seam is called {seam!r}{nearest(seam, PACKAGES)}")
        seam, words = None, seam
    if seam is not None and name is not None:
        found = row(seam, name)
        print(json.dumps(found.plain())) if as_json else show_part(found)
        return 0
    rows = part_rows(seam)
    if words is not None:
        rows = [each for each in rows if mentions((each.seam, each.name, _text(each)), words)]
        if not rows:
            raise UsageError(
                f"no seam is called {words!r}, and no part says so; seams are {', '.join(PACKAGES)}, and assay papers "
                "list WORDS looks for papers"
            )
    if as_json:
        print(json.dumps([each.plain() for each in rows]))
        return 0
    print_table(
        ("seam", "part", "options", "what it does"),
        [(r.seam, r.name, " ".join(map(_brief, r.options)), r.about) for r in rows],
    )
    return 0


def _brief(option: Option) -> str:
    return f"{option.name}={option.default if len(option.default) <= BRIEF else '…'}"


def _text(found: PartRow) -> str:
    """Return the whole of what a part says of itself."""
    import inspect

    from assay.registry import find

    return inspect.getdoc(find(found.seam, found.name)) or found.about


def show_part(found: PartRow) -> None:
    """Print a part for people: its docstring, and a table of its options."""
    say(f"{found.seam} {found.name} ({found.module})", "", _text(found).partition("\nArgs:")[0].rstrip())
    if found.options:
        print()
        print_table(
            ("option", "type", "default", "meaning"),
            [(o.name, o.type, "required" if o.required else o.default, o.about) for o in found.options],
        )


def config(key: Annotated[str, Positional, tyro.conf.arg(metavar="[KEY]")] = "", as_json: AsJson = False) -> int:
    """List every key of a recipe with its type, default and meaning.

    Example: assay config train

    Args:
        key: only this key, or those of this section, e.g. train or train.lr.
        as_json: print JSON.
    """
    from assay.tables.settings import inline, keys

    every = list(keys())
    rows = [row for row in every if not key or row.key == key or row.key.startswith(f"{key}.")]
    if not rows:
        known = {row.key for row in every} | {row.key.partition(".")[0] for row in every}
        raise UsageError(f"no key is called {key!r}{nearest(key, known)}")
    if as_json:
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    width = min(shutil.get_terminal_size().columns, 120)
    for r in rows:
        say(f"{r.key}{'' if r.default is None else f' = {inline(r.default)}'}   ({r.type})")
        say(textwrap.fill(r.about, width, initial_indent="    ", subsequent_indent="    "))
    return 0


def new(seam: Annotated[str, Positional], name: Annotated[str, Positional]) -> int:
    """Write a part of your own to begin with, NAME.py, and its test, test_NAME.py, into this folder.

    Example: assay new credit my_credit

    Args:
        seam: any that `assay parts` lists: credit, reward, rollout, environment, verify, ...
        name: of the part, e.g. my_credit.
    """
    from assay.tables.starts import started, used

    code, test = started(seam, name)
    files = {Path(f"{name}.py"): code, Path(f"test_{name}.py"): test}
    if there := [str(file) for file in files if file.exists()]:
        raise UsageError(f"{' and '.join(there)} there already; take another name")
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    print(f"{name}.py and test_{name}.py: try `python -m pytest test_{name}.py`, then")
    print(f"assay {used(seam, name)}")
    return 0
