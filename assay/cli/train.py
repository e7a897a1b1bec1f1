"""``assay train`` and ``assay quickstart``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from assay.cli.common import Overrides, Unprotected, protect
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.api import Result


def train(
    recipe: Annotated[str | None, Positional, tyro.conf.arg(metavar="[RECIPE]")] = None,
    overrides: Overrides = (),
    resume: Path | None = None,
    quiet: bool = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Train a model by a recipe.

    Args:
        recipe: a TOML file; see the recipes folder. Without one, overrides change the defaults.
        overrides: changes to the recipe, e.g. train.steps=50 method.credit=grpo.
        resume: continue the run in this folder from its last checkpoint, bit for bit.
        quiet: print nothing but errors.
    """
    from assay.api import train as run

    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        overrides, recipe = (recipe, *overrides), None
    if resume is not None and recipe is not None:
        raise UsageError(f"--resume takes the recipe from {resume}; leave out {recipe}")
    if recipe is None and resume is None and not overrides:
        raise UsageError("name a recipe, assay train recipes/quickstart.toml, or continue a run with --resume RUN")
    protect(unsafe_no_sandbox)
    return _outcome(run(recipe, overrides=overrides, resume=resume, quiet=quiet))


def quickstart(overrides: Overrides = (), quiet: bool = False) -> int:
    """Train a nano model from scratch on arithmetic, in minutes: warm-up, RL, report.

    Args:
        overrides: changes to the built-in recipe, e.g. seed=1 run.dir=runs/seed1.
        quiet: print nothing but errors.
    """
    from assay.api import train as run

    if not any(o.startswith("run.dir=") for o in overrides):
        overrides = (*overrides, f'run.dir="{_free(Path("runs") / "quickstart")}"')
    return _outcome(run(Path(__file__).parents[1] / "recipes" / "quickstart.toml", overrides=overrides, quiet=quiet))


def _free(path: Path) -> Path:
    """The path itself, or the first of path-2, path-3, ... that does not exist."""
    tried, n = path, 1
    while tried.exists():
        n += 1
        tried = path.with_name(f"{path.name}-{n}")
    return tried


def _outcome(result: Result) -> int:
    """Exit code of a finished or stopped run; says how to go on with a stopped one."""
    if result.stopped_by is None:
        return 0
    again = f"assay train --resume {result.folder}"
    print(f"assay: stopped by {result.stopped_by}; continue with: {again}", file=sys.stderr)
    return 128 + int(signal.Signals[result.stopped_by])
