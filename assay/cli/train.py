"""``assay train`` and ``assay quickstart``."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from assay.cli.common import Overrides, Unprotected, protect
from assay.errors import RunError, UsageError
from assay.scale.launch import launch, reported
from assay.scale.ranks import LostRank, place_of
from assay.scale.supervise import SUPERVISED, by_itself, supervise

if TYPE_CHECKING:
    from assay.api import Result


def train(
    recipe: Annotated[str | None, Positional, tyro.conf.arg(metavar="[RECIPE]")] = None,
    overrides: Overrides = (),
    resume: Path | None = None,
    quiet: bool = False,
    retries: int = 0,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Train a model by a recipe.

    Example: assay train gsm8k tasks.source.path=gsm8k_train.jsonl train.steps=50

    Args:
        recipe: a TOML file, a recipe's name (`assay recipes`), or a file of tasks: JSONL, JSON, CSV, TSV, Parquet.
            Without one, overrides change the defaults.
        overrides: changes to the recipe, e.g. train.steps=50 method.credit=grpo.
        resume: continue the run in this folder from its last checkpoint, bit for bit.
        quiet: print nothing but errors.
        retries: times to go on from the last checkpoint after the run was killed, or lost its cluster or a trainer.
    """
    from assay.config import load_config

    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        overrides, recipe = (recipe, *overrides), None
    if retries < 0:
        raise UsageError(f"--retries {retries} is negative; 0 gives up the first time")
    try:
        if resume is not None:
            (resume / "config.toml").is_file()
    except OSError as error:
        raise UsageError(f"run folder {resume} cannot be opened: {error.strerror}") from None
    if resume is not None and recipe is not None:
        raise UsageError(f"--resume takes the recipe from {resume}; leave out {recipe}")
    if recipe is None and resume is None and not overrides:
        raise UsageError(
            "name a recipe (`assay recipes` lists them) or a file of tasks, assay train my.jsonl, or continue a "
            "run with --resume RUN"
        )
    if resume is None and place_of() is None and SUPERVISED not in os.environ:
        overrides = _placed(recipe, overrides, retries)
    command = [recipe] if recipe is not None else ["--resume", str(resume)] if resume is not None else []
    flags = ["--quiet"] * quiet + ["--unsafe-no-sandbox"] * unsafe_no_sandbox
    again = [sys.executable, "-m", "assay", "train", *command, *overrides, *flags]
    if SUPERVISED not in os.environ and place_of() is None and (retries or _has_actors(recipe, overrides, resume)):
        folder = resume or Path(load_config(recipe, list(overrides)).run.dir)
        resuming = [sys.executable, "-m", "assay", "train", "--resume", str(folder), *flags]
        return supervise(again, again if resume else resuming, folder, retries)
    with by_itself():
        size, where = _to_launch(recipe, overrides, resume)
        if size > 1:
            config = load_config(recipe if resume is None else resume / "config.toml", list(overrides))
            if config.scale.nodes > 1:
                from assay.scale.ray.ranks import launch_ranks
                from assay.scale.setup import device_type

                gpu = device_type(config.model.device) == "cuda"
                return launch_ranks(again, config.scale, os.environ["RAY_ADDRESS"], gpu)
            return launch(again, size, where, LostRank.exit_code if SUPERVISED in os.environ else 1)
        from assay.api import train as run

        protect(unsafe_no_sandbox)
        return reported(lambda: _outcome(run(recipe, overrides=overrides, resume=resume, quiet=quiet)))


def quickstart(overrides: Overrides = (), quiet: bool = False) -> int:
    """Train a nano model from scratch on arithmetic, in minutes: warm-up, RL, report.

    Example: assay quickstart seed=1

    Args:
        overrides: changes to the built-in recipe, e.g. seed=1 run.dir=runs/seed1.
        quiet: print nothing but errors.
    """
    from assay.api import train as run

    return _outcome(run("quickstart", overrides=overrides, quiet=quiet))


def _placed(recipe: str | None, overrides: Overrides, retries: int) -> Overrides:
    """Return the overrides of a run of several processes, with a folder that is free, so that all speak of one."""
    from assay.config import load_config
    from assay.records.run_folder import free_folder

    config = load_config(recipe, list(overrides))
    if config.scale.trainers == 1 and not (retries or config.scale.engines or config.scale.verifiers):
        return overrides
    wanted = Path(config.run.dir)
    return overrides if (found := free_folder(wanted)) == wanted else (*overrides, f"run.dir={json.dumps(str(found))}")


def _has_actors(recipe: str | None, overrides: Overrides, resume: Path | None) -> bool:
    """Whether the run has engines or verifiers on Ray, which may end the process that asks them."""
    from assay.config import load_config

    if resume is not None and not (resume / "config.toml").is_file():
        return False  # to be refused where runs are opened
    scale = load_config(recipe if resume is None else resume / "config.toml", list(overrides)).scale
    return bool(scale.engines or scale.verifiers)


def _to_launch(recipe: str | None, overrides: Overrides, resume: Path | None) -> tuple[int, str]:
    """How many trainers are to be started here, 1 if this process is to train, alone or as a rank; the run's folder.

    Raises:
        UsageError: they are to be on several machines, and nothing says which.
    """
    from assay.config import load_config

    if place_of() is not None:
        return 1, ""
    stored = resume / "config.toml" if resume is not None else recipe
    if resume is not None and not (resume / "config.toml").is_file():
        return 1, ""  # to be refused where runs are opened
    config = load_config(stored, list(overrides))
    if config.scale.nodes > 1 and config.scale.trainers > 1 and "RAY_ADDRESS" not in os.environ:
        raise UsageError(
            f"scale.nodes = {config.scale.nodes}: name a Ray cluster with RAY_ADDRESS, or start this command on every "
            "node with torchrun or srun; see docs/cluster.md"
        )
    return config.scale.trainers, str(resume or config.run.dir)


def _outcome(result: Result) -> int:
    """Exit code of a finished or stopped run; says how to go on with a stopped one.

    Raises:
        RunError: nothing in it had a verdict or a reward.
    """
    if result.unjudged and result.stopped_by is None:
        reason = " ".join(result.unjudged.split())[:300]
        raise RunError(
            f"nothing could be learned: every verdict abstained and no response had a reward; the first: {reason}"
        )
    if result.stopped_by is None:
        return 0
    again = f"assay train --resume {shlex.quote(str(result.folder))}"
    if (place := place_of()) is None or place.rank == 0:
        print(f"assay: stopped by {result.stopped_by}; continue with: {again}", file=sys.stderr)
    return 128 + int(signal.Signals[result.stopped_by])
