"""``assay recipes`` and ``assay init``: what there is to begin with, and a recipe of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, print_table
from assay.errors import RunError, UsageError


def recipes(
    name: Annotated[str | None, Positional, tyro.conf.arg(metavar="[NAME]")] = None, as_json: AsJson = False
) -> int:
    """List the recipes that come with assay, or print one.

    Example: assay recipes gsm8k

    Args:
        name: the recipe to print, e.g. gsm8k.
        as_json: print JSON.
    """
    from assay.recipes import about, recipe_data, recipe_names, recipe_text

    if name is not None:
        print(json.dumps(recipe_data(name)) if as_json and name in recipe_names() else recipe_text(name).rstrip())
        return 0
    rows = [(each, about(each)) for each in recipe_names()]
    if as_json:
        print(json.dumps([{"name": each, "about": text} for each, text in rows]))
    else:
        print_table(("recipe", "what it does"), rows)
    return 0


def init(
    file: Annotated[Path, Positional, tyro.conf.arg(metavar="[FILE]")] = Path("recipe.toml"),
    start: Annotated[str | None, tyro.conf.arg(metavar="RECIPE", aliases=["--from"])] = None,
    force: bool = False,
) -> int:
    """Write a recipe in which every key stands with its default and meaning, as a comment where it is not changed.

    Example: assay init my.toml --start my.jsonl

    Args:
        file: where to.
        start: what to begin with: a recipe's name or file, or a file of tasks; the defaults if left out.
        force: write over a file that is there.
    """
    from assay.tables.settings import commented

    if file.exists() and not force:
        raise UsageError(f"{file} is there already; name another file, or write over it with --force")
    text = commented(start)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{file} cannot be written: {error.strerror}") from None
    print(f"{file}: change what you like, then: assay train {file}")
    return 0
