"""The checkpoints of a run: which there are, and which are as they were written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.files import damage
from assay.records.history import STAGES

CONFIG = "config.toml"
"""What every run's folder holds."""
_CHECKPOINT = re.compile(r"(warmup|rl)-(\d+)")


def checkpoints(run: Path) -> list[Path]:
    """Checkpoint folders of a run, oldest first, whole or not."""
    found = [p for p in (run / "checkpoints").glob("*") if _CHECKPOINT.fullmatch(p.name)]
    return sorted(found, key=place)


def checkpoint(run: Path, stage: str, step: int) -> Path:
    """Where the checkpoint after ``step`` steps of ``stage`` is stored."""
    return run / "checkpoints" / f"{stage}-{step:06d}"


def kept_best(run: Path) -> list[Path]:
    """Folders of weights that were best at an evaluation and are kept for that, the best of all last."""
    return sorted((path for path in (run / "best").glob("rl-*") if _CHECKPOINT.fullmatch(path.name)), key=place)


def run_of(path: Path) -> Path | None:
    """Return the folder of the run that a folder is a checkpoint of, or its best weights; ``None`` for any other."""
    path = path.resolve() if path.name in ("", ".", "..") else path
    inside = _CHECKPOINT.fullmatch(path.name) and path.parent.name in ("checkpoints", "best")
    return path.parent.parent if inside and (path / "policy").is_dir() else None


def check_run(folder: Path) -> None:
    """Raise UsageError if a folder is not that of a run; for one that is not there it names a run called nearly so."""
    if (folder / CONFIG).is_file():
        return
    why = f"it holds no {CONFIG}" if folder.exists() else f"it is not there{nearest_beside(folder, [CONFIG])}"
    raise UsageError(f"{folder} is no run folder: {why}")


def nearest_beside(folder: Path, held: Sequence[str]) -> str:
    """Return ``"; did you mean 'runs/b'?"`` of the folder beside ``folder`` that is called nearly so and holds any of
    some files; else nothing."""
    if not folder.parent.is_dir():
        return ""
    known = [p.name for p in folder.parent.iterdir() if p != folder and any((p / name).is_file() for name in held)]
    close = get_close_matches(folder.name, known, n=1, cutoff=0.5)
    return f"; did you mean {str(folder.parent / close[0])!r}?" if close else ""


def last_checkpoint(run: Path) -> tuple[str, int, Path]:
    """Stage, step and folder of a run's last checkpoint that is as it was written.

    Raises:
        UsageError: there is none.
    """
    broken: list[str] = []
    for stage, step, path in whole_checkpoints(run, broken.append):
        return stage, step, path
    raise no_checkpoint(run, broken)


def whole_checkpoints(run: Path, tell: Callable[[str], Any]) -> Iterator[tuple[str, int, Path]]:
    """Yield stage, step and folder of a run's checkpoints that are as they were written, the last first.

    Args:
        run: its folder.
        tell: is given what is wrong with each other one, as ``rl-000050 lacks trainer.pt``.
    """
    for path in reversed(checkpoints(run)):
        if wrong := damage(path):
            tell(f"{path.name} {wrong}")
        else:
            stage, step = place(path)
            yield STAGES[stage], step, path


def no_checkpoint(run: Path, broken: Sequence[str]) -> UsageError:
    """The error for a run that has no checkpoint to go on from, after those that are broken."""
    reason = "; ".join(broken) if broken else "it has none"
    return UsageError(f"no whole checkpoint in {run / 'checkpoints'}: {reason}; start again in another run.dir")


def place(path: Path) -> tuple[int, int]:
    """Number of the stage, and step, that a checkpoint's folder is called after."""
    match = _CHECKPOINT.fullmatch(path.name)
    assert match is not None
    return STAGES.index(match[1]), int(match[2])
