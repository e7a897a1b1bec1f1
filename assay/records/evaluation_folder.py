"""An evaluation's folder: its settings, its samples in parts that appear whole, and the results made from them.

::

    evaluation.json   what is evaluated, how, and in how many parts
    samples/part-00000.parquet ...   samples of some tasks each
    results.json   every metric (results.schema.json has its schema)
    lm_eval/MODEL/results_DATE.json   the same for readers of lm-evaluation-harness
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.errors import AssayError, RunError, UsageError
from assay.records.sample import Sample, read_samples, write_samples

NAME = "evaluation.json"
FORMAT = "assay/evaluation-folder/1"


def is_folder(path: Path) -> bool:
    """Say whether an evaluation is in ``path``, finished or not."""
    return (path / NAME).is_file()


def check_free(path: Path) -> None:
    """Raise UsageError unless an evaluation can begin in ``path``."""
    if path.exists() and (not path.is_dir() or any(p.name != ".lock" for p in path.iterdir())):
        what = "a folder that holds something else" if path.is_dir() else "a file"
        raise UsageError(f"--out {path} is {what}; name a new folder, or one of an evaluation to go on with")


class EvaluationFolder:
    """Samples of one evaluation on disk. One process at a time works on it.

    Args:
        path: the folder.
        about: what :meth:`create` was given, as ``evaluation.json`` holds it.
    """

    def __init__(self, path: Path, about: dict[str, Any]):
        self.path, self.about = path, about
        self._before: dict[str, dict[str, float]] = about.get("usage", {})

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> EvaluationFolder:
        """Begin an evaluation, or go on with one of the same settings that is there.

        Args:
            path: a new or empty folder, or one of an evaluation.
            about: ``target``, ``overrides``, ``options`` (what was asked for), ``settings`` (all that samples depend
                on), ``parts`` (their number), ``tasks`` and ``step``.

        Raises:
            UsageError: the folder holds another evaluation or something else, or cannot be made.
        """
        from assay.records.files import unfinished, write_text

        if is_folder(path):
            folder = cls.open(path)
            folder._check(about["settings"])
            return folder
        check_free(path)
        whole = {"format": FORMAT, "started": now(), "finished": None, **about}
        try:
            (path / "samples").mkdir(parents=True, exist_ok=True)
            for left in unfinished(path):
                left.unlink(missing_ok=True)
            write_text(path / NAME, json.dumps(whole, indent=1, default=str))
        except OSError as error:
            raise UsageError(f"--out {path} cannot be written: {error.strerror or error}") from None
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> EvaluationFolder:
        """Open what :meth:`create` made.

        Raises:
            RunError: its ``evaluation.json`` cannot be read, or is of another version.
        """
        try:
            about = json.loads((path / NAME).read_text(encoding="utf-8"))
            if about["format"] != FORMAT:
                raise ValueError(f"its format is {about['format']!r}, not {FORMAT!r}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"cannot read the evaluation in {path}: {error}") from None
        return cls(path, about)

    def _check(self, settings: Mapping[str, Any]) -> None:
        # Through JSON, as the stored ones have been.
        here, there = flat(self.about["settings"]), flat(json.loads(json.dumps(settings, default=str)))
        changed = [f"{k}: {here.get(k)!r} -> {there.get(k)!r}" for k in [*here, *there] if here.get(k) != there.get(k)]
        if changed:
            more = f" and {len(set(changed)) - 1} more" if len(set(changed)) > 1 else ""
            raise UsageError(
                f"{self.path} holds an evaluation with other settings ({changed[0]}{more}); "
                "drop the change, or write to another folder with --out"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; raise UsageError if another process does."""
        try:
            lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"another process is at work on the evaluation in {self.path}; wait for it") from None
            yield

    def part(self, number: int) -> Path:
        """Where a part's samples are stored."""
        return self.path / "samples" / f"part-{number:05d}.parquet"

    @property
    def parts(self) -> int:
        return int(self.about["parts"])

    @property
    def missing(self) -> list[int]:
        """Parts that are still to be made."""
        return [i for i in range(self.parts) if not self.part(i).is_file()]

    def fill(self, make: Callable[[int], list[Sample]], made: Callable[[int, list[Sample]], None]) -> None:
        """Store the parts that are missing.

        Args:
            make: gives the samples of a part.
            made: told each stored part's number and samples.

        Raises:
            RunError: the disk would not take it; what was stored is kept.
        """
        from assay.records.files import unfinished

        for left in unfinished(self.path):
            left.unlink(missing_ok=True)
        for number in self.missing:
            samples = make(number)
            self._store(number, samples)
            made(number, samples)
        self.finish()

    def mend(self, again: Callable[[int, list[Sample]], list[Sample]]) -> None:
        """Ask again for the responses that could not be had, part by part.

        Args:
            again: given a part and its samples, returns them with what could be had this time.

        Raises:
            RunError: the disk would not take it; what was stored is kept.
        """
        for number in range(self.parts):
            if self.part(number).is_file() and any(s.failed for s in self._read(number)):
                self._store(number, again(number, self._read(number)))

    def _store(self, number: int, samples: list[Sample]) -> None:
        from assay.records.files import disk_failure

        try:
            write_samples(self.part(number), samples, "evaluation", int(self.about["step"]))
        except Exception as error:
            reason = None if isinstance(error, AssayError) else disk_failure(error)
            if reason is None:
                raise
            again = f"mend that and go on with: assay eval {self.path}"
            raise RunError(f"could not store samples in {self.path}: {reason}; {again}") from error

    def finish(self) -> None:
        """Note that all parts are there, once."""
        if self.about["finished"] is None:
            self.about["finished"] = now()
            self._write()

    def spend(self, usage: Mapping[str, Mapping[str, float]]) -> None:
        """Note what endpoints were asked since the folder was opened, beside what was noted before.

        Args:
            usage: by part of the evaluation, such as ``model`` and ``judge``, counts by name.
        """
        total = added(self._before, usage)
        if total != self.about.get("usage", {}):
            self.about["usage"] = total
            self._write()

    def _write(self) -> None:
        from assay.records.files import write_text

        write_text(self.path / NAME, json.dumps(self.about, indent=1, default=str))

    def samples(self) -> list[Sample]:
        """Return all samples that are stored, in the order of their parts.

        Raises:
            RunError: a part is damaged.
        """
        out: list[Sample] = []
        for number in range(self.parts):
            if self.part(number).is_file():
                out += self._read(number)
        return out

    def _read(self, number: int) -> list[Sample]:
        try:
            return read_samples(self.part(number))[0]
        except RunError as error:
            again = f"remove it and make it again with: assay eval {self.path}"
            raise RunError(f"{error}; {again}") from None


def added(
    usage: Mapping[str, Mapping[str, float]], more: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return two tables of counts in one."""
    out = {part: dict(counts) for part, counts in usage.items()}
    for part, counts in more.items():
        mine = out.setdefault(part, {})
        for name, count in counts.items():
            mine[name] = mine.get(name, 0) + count
    return out


def now() -> str:
    """Return the time to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def flat(settings: Any, key: str = "") -> dict[str, Any]:
    """Return nested tables as one, with keys ``a.b.c``."""
    if not isinstance(settings, Mapping):
        return {key: settings}
    out: dict[str, Any] = {}
    for name, value in settings.items():
        out |= flat(value, f"{key}.{name}" if key else str(name))
    return out
