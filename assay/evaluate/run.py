"""``assay eval``: sample a model or read samples, in parts that are stored as they come, and go on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, UsageError
from assay.evaluate.source import DETAILS, FILES, FLAGS, Options, Source, asks
from assay.records.evaluation_folder import EvaluationFolder, check_free, is_folder, now
from assay.records.sample import Sample, is_samples, read_samples

if TYPE_CHECKING:
    from assay.console import Reporter


def run(
    target: str, overrides: Sequence[str], options: Options, out: Path | None, reporter: Reporter
) -> tuple[list[Sample], dict[str, Any]]:
    """Evaluate, or go on with an evaluation; return its samples and what they are of.

    Args:
        target: of :func:`assay.engines.target.resolve`; a file of samples; or an evaluation's folder or file.
        overrides: changes to a model's configuration.
        options: see there.
        out: folder to keep the evaluation in.
        reporter: shows progress.

    Raises:
        UsageError: something does not fit; nothing was sampled.
        RunError: something failed on the way; what was stored is kept.
    """
    path = Path(target).expanduser()
    single = path.suffix.lower() == ".parquet" and path.is_file() and is_samples(path)
    if redoes(target, options) and (single or is_folder(path)):
        _nothing_else(target, overrides, options, None, DETAILS)
        return _filled(_source(target, overrides, options), out, reporter)
    if is_folder(path):
        return _reopened(path, overrides, options, out, reporter)
    if single:
        _nothing_else(target, overrides, options, out)
        samples, label, step = read_samples(path)
        tasks = len({s.task_id for s in samples})
        return samples, {"target": target, "step": step, "settings": {"label": label}, "tasks": tasks}
    source = _source(target, overrides, options)
    return _filled(source, out, reporter)


def redoes(target: str, options: Options) -> bool:
    """Say whether samples that are there are to be kept, and something found out of them again."""
    path = Path(target).expanduser()
    if is_folder(path) or (path.suffix.lower() == ".parquet" and path.is_file() and is_samples(path)):
        return bool(asks(options))
    # These a file's own source finds out.
    text = {"equal", "scorer"} if options.scorer is None or isinstance(options.scorer, str) else {"equal"}
    return path.suffix.lower() in FILES and path.is_file() and not set(asks(options)) <= text


def _reopened(
    path: Path, overrides: Sequence[str], options: Options, out: Path | None, reporter: Reporter
) -> tuple[list[Sample], dict[str, Any]]:
    _nothing_else(str(path), overrides, options, out)
    folder = EvaluationFolder.open(path)
    about, whole = folder.about, not folder.missing
    if whole:
        folder.finish()
        if not (failed := sum(s.failed for s in folder.samples())):
            return folder.samples(), folder.about
    given = Options(**about["options"] | {"workers": options.workers})
    try:
        return _filled(_source(about["target"], about["overrides"], given), path, reporter)
    except AssayError as error:
        if not whole:
            raise
        # What is there is shown even where the model cannot be asked any more.
        reporter.line(f"{failed} responses that failed could not be asked for again: {error}")
        return folder.samples(), folder.about


def _nothing_else(
    target: str, overrides: Sequence[str], options: Options, out: Path | None, but: Sequence[str] = ()
) -> None:
    """Refuse what would change samples that are there."""
    usual = Options()
    given = [
        f"--{FLAGS.get(f.name, f.name)}"
        for f in fields(Options)
        if getattr(options, f.name) != getattr(usual, f.name) and f.name not in ("by", "workers", *but)
    ]
    given += [*overrides, *([] if out is None else ["--out"])]
    if given:
        raise UsageError(f"{target} is an evaluation, whose samples are what they are; leave out {' '.join(given)}")


def _source(target: str, overrides: Sequence[str], options: Options) -> Source:
    from assay.engines.target import files_mark
    from assay.evaluate.detail_source import detail_source
    from assay.evaluate.file_source import FileSource
    from assay.evaluate.model_source import ModelSource

    path = Path(target).expanduser()
    if is_folder(path):
        return detail_source(target, options)
    if path.suffix.lower() not in FILES:
        return ModelSource(target, overrides, options)
    if not path.is_file():
        raise UsageError(f"no file {target}" if not path.is_dir() else f"{target} is a folder; name a file in it")
    if overrides:
        raise UsageError(f"{overrides[0]!r} would change a model's configuration, and {target} is a file of samples")
    source: Source = detail_source(target, options) if redoes(target, options) else FileSource(target, options)
    if files := files_mark(options.scorer, options.chain, options.verifier, options.reference):
        source.about["settings"]["files"] = files
    return source


def _filled(source: Source, out: Path | None, reporter: Reporter) -> tuple[list[Sample], dict[str, Any]]:
    """Make all parts that are not stored yet."""
    try:
        if out is None:
            source.start()
            samples = _sampled(source, reporter)
            return samples, {**source.about, "finished": now(), "usage": source.usage}
        if is_folder(out):
            folder = EvaluationFolder.create(out, source.about)
            if folder.missing or any(s.failed for s in folder.samples()):
                source.start()
        else:
            # What cannot be loaded leaves no folder behind.
            check_free(out)
            source.start()
            folder = EvaluationFolder.create(out, source.about)
        _stored(source, folder, reporter)
        return folder.samples(), folder.about
    finally:
        source.close()


def _sampled(source: Source, reporter: Reporter) -> list[Sample]:
    """Return the samples of all parts."""
    out: list[Sample] = []
    with reporter.progress("evaluate", int(source.about["tasks"])) as tick:
        told = _teller(source, tick, 0)
        for part in range(int(source.about["parts"])):
            samples = source.make(part)
            out += samples
            told(part, samples)
    return out


def _stored(source: Source, folder: EvaluationFolder, reporter: Reporter) -> None:
    """Make and store the parts that are missing; an interrupt says how to go on."""
    tasks = int(source.about["tasks"])

    def there() -> int:
        return tasks - sum(map(source.tasks, folder.missing))

    if there():
        reporter.line(f"{there()} of {tasks} tasks are in {folder.path} already")
    try:
        with folder.locked(), reporter.progress("evaluate", tasks, there()) as tick:
            told = _teller(source, tick, there())

            def made(part: int, samples: list[Sample]) -> None:
                folder.spend(source.usage)
                told(part, samples)

            try:
                _mended(source, folder, reporter)
                folder.fill(source.make, made)
            finally:
                folder.spend(source.usage)
    except KeyboardInterrupt:
        reporter.line(
            f"stopped with {there()} of {tasks} tasks stored; go on with: assay eval {quote(str(folder.path))}"
        )
        raise


def _mended(source: Source, folder: EvaluationFolder, reporter: Reporter) -> None:
    """Ask again for the responses that a model was asked for and did not give."""
    from assay.evaluate.model_source import ModelSource

    failed = sum(s.failed for s in folder.samples())
    if failed and isinstance(source, ModelSource):
        reporter.line(f"asking again for {failed} responses that failed")
        folder.mend(source.again)
        left = sum(s.failed for s in folder.samples())
        reporter.line(f"{failed - left} of {failed} responses were given this time")


def _teller(source: Source, tick: Callable[..., None], done: int) -> Callable[[int, list[Sample]], None]:
    """Return what is told of each part, and shows how far it is."""
    right = judged = 0

    def told(part: int, samples: list[Sample]) -> None:
        nonlocal done, right, judged
        done += source.tasks(part)
        right += sum(s.passed is True for s in samples)
        judged += sum(s.passed is not None for s in samples)
        tick(done, f"pass@1 {right / judged:.3f}" if judged else "")

    return told
