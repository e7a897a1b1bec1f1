"""A run's model as a folder that transformers, vLLM and whatever reads such folders load by themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

from assay.engines.target import resolve
from assay.errors import UsageError
from assay.records.checkpoints import check_run, checkpoints, kept_best, last_checkpoint, place, run_of
from assay.records.files import damage, start_folder
from assay.report.card import model_card


def export(run: str | Path, folder: str | Path, checkpoint: str | None = None, name: str | None = None) -> Path:
    """Write the model of a run into a folder, which appears whole or not at all; return it.

    Weights (with what adapters add to them) and tokenizer in transformers' layout, the card (README.md) and
    recipe.toml; no rollouts and no tasks.

    Args:
        run: its folder.
        folder: that is not there yet, or empty.
        checkpoint: its name, ``rl-000050``, or ``best``, what ``run.best`` kept; the last whole one if left out.
        name: what the card calls the model; the folder's unless given.

    Raises:
        UsageError: the folder has something in it; the run is none, or has no such checkpoint whole.
    """
    wanted, run = Path(folder), Path(run)
    if wanted.exists() and not (wanted.is_dir() and not any(wanted.iterdir())):
        raise UsageError(f"{wanted} is there already, and a model would be mixed with what it has; name another folder")
    weights = weights_of(run, checkpoint)
    temporary = start_folder(wanted)
    try:
        write_model(run, weights, temporary, name or wanted.name)
        if wanted.exists():
            wanted.rmdir()
        temporary.rename(wanted)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return wanted


def write_model(run: Path, weights: Path, folder: Path, name: str) -> None:
    """Fill a folder with a checkpoint's model, its card and its recipe."""
    stage, step = place(weights.parent)
    card = model_card(run, name, step if stage else 0)
    if (weights / "adapter_config.json").is_file():
        resolve(str(weights.parent)).load().save_merged(folder)
    else:
        shutil.copytree(weights, folder, dirs_exist_ok=True)
    (folder / "README.md").write_text(card, encoding="utf-8")
    shutil.copyfile(run / "config.toml", folder / "recipe.toml")


def weights_of(folder: Path, checkpoint: str | None) -> Path:
    """Return the folder of the policy's weights in a checkpoint of a run; see :func:`export`.

    Raises:
        UsageError: the folder is no run, or has no such checkpoint as it was written.
    """
    check_run(folder)
    if (owner := run_of(folder)) is not None:
        name = "best" if folder.parent.name == "best" else folder.name
        raise UsageError(f"{folder} is a checkpoint of the run in {owner}: name that, with --checkpoint {name}")
    if checkpoint is None:
        return last_checkpoint(folder)[2] / "policy"
    known = {path.name: path for path in checkpoints(folder)}
    if best := kept_best(folder):
        known = {**{path.name: path for path in best}, "best": best[-1], **known}
    if checkpoint not in known:
        raise UsageError(f"{folder} has no checkpoint {checkpoint!r}; it has {', '.join(known) or 'none'}")
    if wrong := damage(known[checkpoint]):
        raise UsageError(f"checkpoint {checkpoint} of {folder} {wrong}")
    return known[checkpoint] / "policy"
