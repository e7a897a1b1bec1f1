"""A run's folder: configuration, environment, metrics, rollouts, evaluations, checkpoints.

::

    config.toml  environment.json  metrics.jsonl  tensorboard/
    rollouts/step-000012.parquet  evals/before.parquet  checkpoints/rl-000050/  reference/  report.html
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from assay.batch import Batch
from assay.config import RunConfig, differences, dump_config, load_config
from assay.errors import RunError, UsageError
from assay.training.files import missing_files, write_file, write_folder, write_text

STAGES = ("warmup", "rl")
_CHECKPOINT = re.compile(r"(warmup|rl)-(\d+)")

RESUMABLE = ("run.", "train.steps", "train.target", "evaluate.")
"""Keys that may change when a run is resumed; any other would make it a different run."""


class RunFolder:
    """Everything a run leaves on disk. Files are there whole or not at all, except the last line of ``metrics.jsonl``."""

    def __init__(self, path: Path, config: RunConfig):
        self.path, self.config = path, config
        self._lock = open(path / ".lock", "w")  # noqa: SIM115 - held for the life of the process
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"run folder {path} is in use by another process; wait for it or choose another run.dir") from None
        self._tensorboard: Any = None

    @classmethod
    def create(cls, config: RunConfig) -> RunFolder:
        """Make the folder of a new run; refuse one that already holds something."""
        path = Path(config.run.dir)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(
                f"run folder {path} exists already; continue it with: assay train --resume {path}, or choose another "
                "with run.dir=..."
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"run folder {path} cannot be made: {error.strerror}; choose another with run.dir=...") from None
        run = cls(path, config)
        write_text(path / "config.toml", dump_config(config))
        write_text(path / "environment.json", json.dumps(environment(), indent=1))
        return run

    @classmethod
    def resume(cls, path: Path, overrides: list[str]) -> RunFolder:
        """Open the folder of a run that stopped; only keys under :data:`RESUMABLE` may change."""
        if not (path / "config.toml").is_file():
            raise UsageError(f"{path} is no run folder: it holds no config.toml")
        before = load_config(path / "config.toml")
        config = load_config(path / "config.toml", [*overrides, f"run.dir={json.dumps(str(path))}"])
        changed = [d for d in differences(before, config) if not d.startswith(RESUMABLE)]
        if changed:
            raise UsageError(f"a resumed run keeps its configuration; {changed[0]} would make it another run")
        return cls(path, config)

    # Metrics

    def log(self, stage: str, step: int, metrics: dict[str, float]) -> None:
        """Append one line of metrics after step ``step`` (counted from 1) of a stage."""
        line = json.dumps({"stage": stage, "step": step, **metrics})
        with guarded("metrics"), open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(line + "\n")
        if self.config.run.tensorboard:
            if self._tensorboard is None:
                from torch.utils.tensorboard import SummaryWriter

                self._tensorboard = SummaryWriter(str(self.path / "tensorboard"))
            for key, value in metrics.items():
                self._tensorboard.add_scalar(f"{stage}/{key}", value, step)

    def metrics(self) -> list[dict[str, Any]]:
        """Every complete line of the log; a line torn by a crash is left out."""
        rows = []
        path = self.path / "metrics.jsonl"
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    rows.append(json.loads(line))
        return rows

    # Rollouts and evaluations

    def save_rollouts(self, step: int, batch: Batch) -> None:
        """Store what was sampled in a step and what it was worth."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        n = len(batch)
        advantages = (batch.advantages.sum(-1) / batch.lengths.clamp(min=1)).tolist()
        columns: dict[str, Any] = {
            "step": [step] * n,
            "task_id": [t.id for t in batch.tasks],
            "prompt": [t.question for t in batch.tasks],
            "response": [_storable(e.text) for e in batch.episodes],
            "score": [v.score for v in batch.verdicts],
            "passed": pa.array([v.passed for v in batch.verdicts], pa.bool_()),
            "feedback": [_storable(v.feedback) for v in batch.verdicts],
            "reward": [r if ok else None for r, ok in zip(batch.rewards.tolist(), batch.valid.tolist(), strict=True)],
            "advantage": advantages,
            "length": batch.lengths.tolist(),
            "stop": [e.stop for e in batch.episodes],
        }
        columns |= {f"reward/{k}": v.tolist() for k, v in batch.reward_terms.items()}
        folder = self.path / "rollouts"
        folder.mkdir(exist_ok=True)
        with guarded("rollouts"):
            write_file(folder / f"step-{step:06d}.parquet", lambda p: pq.write_table(pa.table(columns), p))

    def evaluation(self, label: str) -> Path:
        """Where the evaluation called ``label`` is stored."""
        return self.path / "evals" / f"{label}.parquet"

    # Checkpoints

    def save_checkpoint(self, stage: str, step: int, write: Callable[[Path], Any]) -> None:
        """Store a checkpoint after ``step`` steps of ``stage``; keep the last two."""
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        with guarded("checkpoint"):
            write_folder(folder / f"{stage}-{step:06d}", write)
        for old in checkpoints(self.path)[:-2]:
            shutil.rmtree(old)

    def save_reference(self, write: Callable[[Path], Any]) -> None:
        """Store the policy that the RL stage starts from."""
        with guarded("reference policy"):
            write_folder(self.path / "reference", write)

    def forget_after(self, stage: str, step: int) -> None:
        """Remove what was written after a checkpoint and is about to be done again."""
        now = (STAGES.index(stage), step)
        kept = [r for r in self.metrics() if (STAGES.index(r["stage"]), r["step"]) <= now]
        write_text(self.path / "metrics.jsonl", "".join(json.dumps(r) + "\n" for r in kept))
        done = step if stage == "rl" else 0
        for file in (self.path / "rollouts").glob("step-*.parquet"):
            if int(file.stem.split("-")[1]) > done:
                file.unlink()
        for file in (self.path / "evals").glob("*.parquet"):
            label = file.stem
            late = label.startswith("step-") and int(label.split("-")[1]) > done
            if late or label == "after" or (label == "before" and stage == "warmup"):
                file.unlink()
        for path in checkpoints(self.path):
            if _order(path) > now:
                shutil.rmtree(path)
        for stray in [*self.path.glob(".*.partial"), *self.path.glob("*/.*.partial")]:
            shutil.rmtree(stray) if stray.is_dir() else stray.unlink()
        # TensorBoard merges event files; only a fresh one from the kept lines shows each step once.
        shutil.rmtree(self.path / "tensorboard", ignore_errors=True)
        if self.config.run.tensorboard and kept:
            from torch.utils.tensorboard import SummaryWriter

            self._tensorboard = SummaryWriter(str(self.path / "tensorboard"))
            for row in kept:
                for key, value in row.items():
                    if key not in ("stage", "step"):
                        self._tensorboard.add_scalar(f"{row['stage']}/{key}", value, row["step"])

    def close(self) -> None:
        if self._tensorboard is not None:
            self._tensorboard.close()
        self._lock.close()


def checkpoints(run: Path) -> list[Path]:
    """Checkpoint folders of a run, oldest first, whole or not."""
    found = [p for p in (run / "checkpoints").glob("*") if _CHECKPOINT.fullmatch(p.name)]
    return sorted(found, key=_order)


def last_checkpoint(run: Path) -> tuple[str, int, Path]:
    """Stage, step and folder of a run's last whole checkpoint; raise UsageError when there is none."""
    broken = []
    for path in reversed(checkpoints(run)):
        missing = missing_files(path)
        if not missing:
            stage, step = _order(path)
            return STAGES[stage], step, path
        broken.append(f"{path.name} lacks {missing[0]}")
    reason = "; ".join(broken) if broken else "it has none"
    raise UsageError(f"no whole checkpoint in {run / 'checkpoints'}: {reason}; start again in another run.dir")


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn a failure of the disk into one line; whatever was stored before is whole."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        import errno

        text = str(error)
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in text or "iostream error" in text
        if not full and not isinstance(error, OSError):
            raise
        reason = "the disk is full" if full else (getattr(error, "strerror", None) or text)
        raise RunError(f"could not write {what}: {reason}; make room and continue with assay train --resume") from error


def environment() -> dict[str, Any]:
    """What the run ran on: versions, machine, command."""
    packages = ("assay", "torch", "transformers", "tokenizers", "numpy", "peft", "reasoning-gym", "datasets")
    versions = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": versions,
        "command": sys.argv,
    }


def _order(path: Path) -> tuple[int, int]:
    match = _CHECKPOINT.fullmatch(path.name)
    assert match is not None
    return STAGES.index(match[1]), int(match[2])


def _storable(text: str) -> str:
    """Parquet strings are UTF-8; half a surrogate pair from a decoder is not."""
    return text.encode("utf-8", "replace").decode("utf-8")
