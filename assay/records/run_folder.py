"""A run's folder: configuration, environment, metrics, rollouts, evaluations, checkpoints.

::

    config.toml  environment.json  log.txt  metrics.jsonl  tensorboard/
    rollouts/step-000012.parquet  evals/before.parquet  checkpoints/rl-000050/  reference/  report.html
    signs.json  best/rl-000025/  surveys/step-000000.jsonl
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import IO, Any

from assay.batch import Batch
from assay.config import RunConfig, differences, dump_config, load_config
from assay.errors import AssayError, RunError, UsageError
from assay.from_file import code_marks, described
from assay.records.checkpoints import check_run, checkpoint, checkpoints, kept_best, place, run_of, whole_checkpoints
from assay.records.evaluation import Evaluation
from assay.records.files import (
    disk_failure,
    missing_files,
    remove,
    sync,
    unfinished,
    write_file,
    write_folder,
    write_text,
)
from assay.records.history import STAGES, gaps, joined, read_metrics
from assay.records.rollout_table import rollout_columns
from assay.records.sign import Sign
from assay.records.surveys import Piece, read_survey, survey_file, surveys_after, write_piece
from assay.records.tensorboard import EventFile

RESUMABLE = ("run", "evaluate", "scale", "train.steps", "train.target")
"""Sections and keys that may change when a run is resumed; any other would make it a different run."""
LOG = "log.txt"
"""Every line that the run said, with the time of day."""


class RunFolder:
    """Everything a run leaves on disk. Files are there whole or not at all, except the last line of ``metrics.jsonl``.

    One process at a time holds a run folder, from here until :meth:`close`.

    Raises:
        UsageError: another process holds it.
    """

    def __init__(self, path: Path, config: RunConfig):
        self.path, self.config = path, config
        self._lock = _locked(path)
        self._events: EventFile | None = None

    @classmethod
    def create(cls, config: RunConfig, given: Mapping[str, Any] | None = None) -> RunFolder:
        """Make the folder of a new run; refuse one that already holds something.

        Args:
            config: of the run.
            given: Python objects in place of what it names, by name; their places are noted with the environment.
        """
        path, text = Path(config.run.dir), dump_config(config)
        check_free(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a name that no folder can have
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"run folder {path} cannot be made: {reason}; choose another with run.dir=...") from None
        run = cls(path, config)
        try:
            # Another process may have been quicker.
            check_free(path)
            with run.writing("config.toml"):
                about = {"id": uuid.uuid4().hex, **environment(), "code": code_marks(config.model_dump())}
                if objects := {name: described(made) for name, made in (given or {}).items() if made is not None}:
                    about["given"] = objects
                write_text(path / "environment.json", json.dumps(about, indent=1))
                write_text(path / "config.toml", text)
        except AssayError:
            run.close()
            raise
        return run

    @classmethod
    def resume(cls, path: Path, overrides: Iterable[str] = ()) -> RunFolder:
        """Open the folder of a run that stopped; only keys under :data:`RESUMABLE` may change."""
        check_run(path)
        if (owner := run_of(path)) is not None:
            raise UsageError(
                f"{path} is a checkpoint of the run in {owner}, which goes on from its last whole one: assay train "
                f"--resume {owner}; for another run from these weights: model={path / 'policy'}"
            )
        if moved := [each for each in overrides if each.partition("=")[0].strip() == "run.dir"]:
            raise UsageError(f"{moved[0]}: a resumed run stays in its folder, {path}; copy it to go on elsewhere")
        config = load_config(path / "config.toml", list(overrides))
        config = config.model_copy(update={"run": config.run.model_copy(update={"dir": str(path)})})
        run = cls(path, config)
        try:
            run._check_unchanged()
        except AssayError:
            run.close()
            raise
        return run

    def _check_unchanged(self) -> None:
        """Raise UsageError if the last checkpoint is of another configuration, whatever config.toml says by now."""
        last = next(whole_checkpoints(self.path, lambda _: None), None)
        if last is None:
            return
        for key, change in differences(load_config(last[2] / "config.toml"), self.config).items():
            if not any(key == k or key.startswith(f"{k}.") for k in RESUMABLE):
                raise UsageError(f"a resumed run keeps its configuration; {key}: {change} would make it another run")

    def changed_code(self) -> list[str]:
        """Return the Python files named in the configuration that are no longer what they were when the run began."""
        try:
            before = json.loads((self.path / "environment.json").read_text(encoding="utf-8")).get("code", {})
        except (OSError, ValueError):
            return []
        now = code_marks(self.config.model_dump())
        return sorted(path for path, mark in before.items() if path in now and now[path] != mark)

    @contextlib.contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turn a failure of the disk into one line; whatever was stored before is whole."""
        try:
            yield
        except AssayError:
            raise
        except Exception as error:
            reason = disk_failure(error)
            if reason is None:
                raise
            raise RunError(
                f"could not write {what}: {reason}; mend that and continue with: "
                f"assay train --resume {quote(str(self.path))}"
            ) from error

    # Metrics

    def log(self, stage: str, step: int, metrics: dict[str, float]) -> None:
        """Append one line of metrics after step ``step`` (counted from 1) of a stage."""
        row = {"stage": stage, "step": step, **metrics}
        with self.writing("metrics"):
            with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self._show([row])

    def _show(self, rows: list[dict[str, Any]]) -> None:
        """Add rows of metrics to TensorBoard's file, which is made for the first."""
        if not self.config.run.tensorboard or not rows:
            return
        if self._events is None:
            self._events = EventFile(self.path / "tensorboard")
        for row in rows:
            scalars = {f"{row['stage']}/{k}": v for k, v in row.items() if k not in ("stage", "step")}
            self._events.add(scalars, row["step"])

    def metrics(self) -> list[dict[str, Any]]:
        """Every complete line of the log; a line that was torn or damaged is left out."""
        return read_metrics(self.path / "metrics.jsonl")[0]

    # Rollouts and evaluations

    def save_rollouts(
        self, step: int, batch: Batch, version: int | None = None, tokens: Mapping[str, Any] | None = None
    ) -> None:
        """Store what was sampled in a step and what it was worth.

        Args:
            step: counted from 1.
            batch: valued.
            version: RL steps that the weights which sampled had behind them; one less than ``step`` if left out.
            tokens: columns of :func:`assay.records.token_columns.token_columns`, if they are kept.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, Any] = rollout_columns(step, batch)
        columns["passed"] = pa.array(columns["passed"], pa.bool_())
        columns["sample"] = list(range(len(batch)))
        columns["version"] = [step - 1 if version is None else version] * len(batch)
        for name, rows in (tokens or {}).items():
            kind = {"token/text": pa.string(), "token/origin": pa.int8()}.get(name, pa.float32())
            columns[name] = pa.array(rows, pa.list_(kind))
        table = pa.table(columns)
        with self.writing("rollouts"):
            folder = self.path / "rollouts"
            folder.mkdir(exist_ok=True)
            write_file(
                folder / f"step-{step:06d}.parquet", lambda p: pq.write_table(table, p, write_page_checksum=True)
            )

    def save_signs(self, signs: Sequence[Sign]) -> None:
        """Store the signs of a gamed reward that the run has shown, perhaps none."""
        with self.writing("the signs of a gamed reward"):
            write_text(self.path / "signs.json", json.dumps([asdict(sign) for sign in signs], indent=1))

    def stored_survey(self, step: int) -> list[Piece]:
        """Return what was found out of the data set so far, before the step that follows ``step`` finished ones."""
        return read_survey(survey_file(self.path, step))

    def add_survey(self, step: int, pieces: Sequence[Piece], piece: Piece) -> None:
        """Keep one more piece of that, after the ``pieces`` that are there."""
        with self.writing("what was found out of the data set"):
            write_piece(survey_file(self.path, step), pieces, piece)

    def evaluation(self, label: str) -> Path:
        """Where the evaluation called ``label`` is stored."""
        return self.path / "evals" / f"{label}.parquet"

    def stored_evaluation(self, label: str, step: int) -> Evaluation | None:
        """Return the evaluation called ``label`` if it is stored whole and of the weights after RL step ``step``."""
        path = self.evaluation(label)
        try:
            found = Evaluation.from_parquet(path) if path.is_file() else None
        except RunError:
            return None
        return found if found is not None and found.step == step else None

    def save_evaluation(self, evaluation: Evaluation) -> None:
        with self.writing(f"the evaluation {evaluation.label}"):
            evaluation.to_parquet(self.evaluation(evaluation.label))

    def evaluations(self) -> list[Evaluation]:
        """All that are stored whole, in the order of their labels."""
        found = []
        for file in sorted((self.path / "evals").glob("*.parquet")):
            with contextlib.suppress(RunError):
                found.append(Evaluation.from_parquet(file))
        return found

    # Checkpoints

    def best(self, step: int) -> Path:
        """Where the weights after RL step ``step`` are, if they are the best of a stage that keeps them."""
        return self.path / "best" / f"rl-{step:06d}"

    def save_checkpoint(self, stage: str, step: int, write: Callable[[Path], Any]) -> None:
        """Store a checkpoint after ``step`` steps of ``stage``, unless it is there already."""
        path = checkpoint(self.path, stage, step)
        if not self.has(path):
            with self.writing("a checkpoint"):
                self.sync_metrics()
                self.put(path, write)
                self.prune()

    def save_best(self, step: int, write: Callable[[Path], Any]) -> None:
        """Store the weights after RL step ``step``, the best of a stage, unless they are there already."""
        if not self.has(self.best(step)):
            with self.writing("the best weights"):
                self.put(self.best(step), write)

    def save_reference(self, write: Callable[[Path], Any], place: int = 0) -> None:
        """Store the policy that RL, or the stage at ``place`` in it, starts from."""
        with self.writing("the reference policy"):
            self.put(self.reference(place), write, config=False)

    def has(self, path: Path) -> bool:
        """Whether a folder is there with all its files."""
        return path.is_dir() and not missing_files(path)

    def put(self, path: Path, write: Callable[[Path], Any], config: bool = True) -> None:
        """Have ``write`` fill a folder that appears whole or not at all, with the run's configuration if wanted."""

        def whole(folder: Path) -> None:
            write(folder)
            if config:
                (folder / "config.toml").write_text(dump_config(self.config), encoding="utf-8")

        write_folder(path, whole)

    def sync_metrics(self) -> None:
        """Make the metrics survive a crash: a checkpoint stands for the lines before it."""
        if (self.path / "metrics.jsonl").exists():
            sync(self.path / "metrics.jsonl")

    def prune(self) -> None:
        """Remove all but the last checkpoints, as many as ``run.keep`` says."""
        if self.config.run.keep != "all":
            for old in checkpoints(self.path)[: -self.config.run.keep]:
                shutil.rmtree(old)

    def forget_best(self, wanted: Collection[int]) -> None:
        """Remove the weights that were best once, but for those after these steps."""
        for path in kept_best(self.path):
            if place(path)[1] not in wanted:
                remove(path)

    def reference(self, place: int = 0) -> Path:
        """Where the policy that RL, or the stage at ``place`` in it (from 0), started from is stored."""
        return self.path / ("reference" if place == 0 else f"reference-{place + 1}")

    def forget_after(self, stage: str, step: int) -> list[str]:
        """Remove what was written after a checkpoint and is about to be done again; store the configuration anew.

        Damaged files of what stays are set aside beside what could be read of them.

        Returns:
            A line on each of those.
        """
        now = (STAGES.index(stage), step)
        done = step if stage == "rl" else -1
        told = []
        with self.writing("what the checkpoint goes with"):
            for path in list(unfinished(self.path)):
                remove(path)
            log = self.path / "metrics.jsonl"
            rows, wrong = read_metrics(log)
            kept = [r for r in rows if (STAGES.index(r["stage"]), r["step"]) <= now]
            if lost := gaps(kept, stage, step):
                wrong.append(lost)
            if wrong:
                # Once: a second resume would set aside what the first one kept.
                aside = log.with_name("metrics.damaged.jsonl")
                if log.is_file() and not aside.exists():
                    shutil.copyfile(log, aside)
                told.append(f"{log}: {joined(wrong)}; the history goes on without, what was there is in {aside.name}")
            write_text(log, "".join(json.dumps(r) + "\n" for r in kept))
            write_text(self.path / "config.toml", dump_config(self.config))
            for file in (self.path / "rollouts").glob("step-*.parquet"):
                if (number := file.stem.removeprefix("step-")).isdecimal() and int(number) > done:
                    file.unlink()
            for file in sorted((self.path / "evals").glob("*.parquet")):
                try:
                    after = Evaluation.from_parquet(file).step > done
                except RunError as error:
                    os.replace(file, aside := file.with_name(f"{file.name}.damaged"))
                    told.append(f"{error}; it is set aside as {aside.name}, and measured again if it is due")
                else:
                    if after:
                        file.unlink()
            for file in surveys_after(self.path, done):
                file.unlink()
            for path in checkpoints(self.path):
                if place(path) > now:
                    shutil.rmtree(path)
            self.forget_best(range(done + 1))
            # TensorBoard merges event files; only a fresh one from the kept lines shows each step once.
            remove(self.path / "tensorboard")
            self._show(kept)
        return told

    def close(self) -> None:
        """Let other processes have the folder."""
        if self._events is not None:
            self._events.close()
        self._lock.close()


def environment() -> dict[str, Any]:
    """What the run ran on: versions, machine, command; of a checkout, the commit."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "accelerators": accelerators(),
        "packages": versions(),
        "commit": commit(),
        "command": sys.argv,
    }


def run_id(folder: Path) -> str:
    """Return what tells a run from all others, wherever its folder is moved."""
    try:
        return str(json.loads((folder / "environment.json").read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError):  # of an older version, or lost
        return blake2b(str(folder.absolute()).encode(), digest_size=16).hexdigest()


@functools.cache
def accelerators() -> list[str]:
    """Return the names of the NVIDIA GPUs that this process may use, in the order it is told of them.

    Asked of their own program: a process that uses their driver cannot fork. ``CUDA_VISIBLE_DEVICES`` names them by
    index or by the beginning of their id; what follows one that is not there is not seen.
    """
    program = shutil.which("nvidia-smi")
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if program is None or wanted == "":
        return []
    try:
        done = subprocess.run(
            [program, "--query-gpu=index,uuid,name", "--format=csv,noheader"],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    there = [[cell.strip() for cell in line.split(",", 2)] for line in done.stdout.splitlines() if line.strip()]
    if wanted is None:
        return [name for _, _, name in there]
    found = []
    for key in map(str.strip, wanted.split(",")):
        names = [
            name for index, uuid, name in there if key == index or (key.startswith("GPU-") and uuid.startswith(key))
        ]
        if not names:
            break
        found += names[:1]
    return found


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of what a run's numbers depend on, where installed: once, as a process loads them once."""
    found = {}
    for package in ("assay", "torch", "transformers", "tokenizers", "numpy", "peft", "reasoning-gym", "datasets"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


@functools.cache
def commit() -> str | None:
    """Return the commit of the checkout that assay runs from, ``+`` after it where its code was changed since."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    said = []
    for command in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--", "assay"]):
        try:
            done = subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        said.append(done.stdout.strip())
    return said[0] + "+" * bool(said[1])


def free_folder(path: Path) -> Path:
    """Return ``path`` if a run can begin there, or the first of ``path-2``, ``path-3``, ... in which one can.

    Raises:
        UsageError: it is a file, or cannot be used.
    """
    tried, number = path, 1
    while True:
        try:
            check_free(tried)
            return tried
        except UsageError:
            # os.path asks where a name is too long to be looked at.
            if not os.path.isfile(tried / "config.toml"):
                raise
        number += 1
        tried = path.with_name(f"{path.name}-{number}")


def check_free(path: Path) -> None:
    """Raise UsageError unless a run can begin in ``path``, be it where one was killed in its first moments."""
    try:
        left = {".lock", "environment.json", *(p.name for p in unfinished(path))} if path.is_dir() else set()
        taken = path.exists() and (not path.is_dir() or {p.name for p in path.iterdir()} - left)
    except OSError as error:
        raise UsageError(
            f"run folder {path} cannot be used: {error.strerror}; choose another with run.dir=..."
        ) from None
    if taken:
        raise UsageError(
            f"run folder {path} exists already; continue it with: assay train --resume {quote(str(path))}, "
            "or choose another with run.dir=..."
        )


def _locked(path: Path) -> IO[str]:
    try:
        lock = open(path / ".lock", "w")  # noqa: SIM115 - held for the life of the process
    except OSError as error:
        raise UsageError(f"run folder {path} cannot be written: {error.strerror}; choose another run.dir") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise UsageError(
            f"run folder {path} is in use by another process; wait for it or choose another run.dir"
        ) from None
    return lock
