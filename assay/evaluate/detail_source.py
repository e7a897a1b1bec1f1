"""Samples that are there already, with what is to be found out of them found out again: nothing is sampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.target import Target, content_mark, files_mark, resolve, tasks_mark
from assay.errors import RunError, UsageError
from assay.evaluate.chain_judge import ChainJudge, as_chain_judge, settle
from assay.evaluate.detail import Detail, final_answers
from assay.evaluate.source import FILES, FLAGS, Options, Source, asks
from assay.inference.scoring.base import Scorer
from assay.inference.scoring.judge import Judge
from assay.inference.scoring.scorers import ByFunction, ByVerifier, Confidence, as_scorer
from assay.records.evaluation_folder import EvaluationFolder, is_folder
from assay.records.sample import Sample, by_task, is_samples, read_samples
from assay.types import Episode, Task


class DetailSource:
    """Samples of another source; what is asked for anew is found out again, all else is as it was. See :class:`Source`.

    - ``equal``: their answers;
    - ``scorer``: their confidences, by one that reads texts: a function, a verifier, a judge; or ``confidence``, of the
      log-probabilities that are stored;
    - ``chain``: whether their reasoning is right; ``rule`` alone settles the votes that are there.

    Args:
        inner: where the samples come from.
        options: what is asked for.
        tasks: gives their tasks, by id; called only where they are needed.
        model: gives the target that wrote them, for a judge that is the model itself.

    Raises:
        UsageError: a scorer that needs more than texts; votes or rules without a judge, or votes to be settled.
    """

    def __init__(
        self,
        inner: Source,
        options: Options,
        tasks: Callable[[], Mapping[str, Task]],
        model: Callable[[], Target],
    ):
        self.inner, self.options, self.asked = inner, options, asks(options)
        self._tasks, self._model = tasks, model
        self.engine: Any = None
        self.scorer = None if options.scorer in (None, "none") else _reader(options.scorer, "--scorer")
        self.chain: ChainJudge | Scorer | None = None
        if options.chain is not None:
            self.chain = as_chain_judge(options.chain, options.votes) or _reader(options.chain, "--chain")
        if not isinstance(self.chain, ChainJudge):
            loose = [
                n for n in ("votes", "every", "rule") if n in self.asked and (n != "rule" or self.chain is not None)
            ]
            if loose:
                raise UsageError(
                    f"--{FLAGS[loose[0]]} is for a judge of chains; give --chain judge, or "
                    "--chain openai:MODEL@http://host/v1"
                )
            if "rule" in self.asked and self.chain is None and not (isinstance(inner, StoredSource) and inner.voted):
                raise UsageError("--chain-rule: no votes of a judge are stored with these samples; give --chain too")
        # The judge stands where it can be told what it cost and closed at the end.
        self.detail = Detail(options.equal, None, self.chain, options.rule, options.every)
        readers = (self.scorer, self.chain)
        named = any(isinstance(r, ByFunction | ByVerifier) for r in readers) or options.equal == "verifier"
        self.known: Mapping[str, Task] = self._tasks() if named else {}
        settings = dict(inner.about["settings"])
        # As they would be called by an evaluation that had found this out at once.
        changed = {n: getattr(options, n) for n in self.asked}
        if isinstance(self.chain, ChainJudge):
            changed |= {"votes": self.chain.n, "rule": options.rule, "every": options.every}
        files = {**settings.get("files", {}), **files_mark(options.scorer, options.chain)}
        settings |= changed | ({"files": files} if files else {})
        self.about = {**inner.about, "options": options.plain(), "settings": settings}

    def start(self) -> None:
        self.inner.start()
        own = [p for p in (self.scorer, self.chain) if isinstance(p, Judge | ChainJudge) and p.engine is None]
        if own:
            self.engine = self._model().open()

    def tasks(self, part: int) -> int:
        return self.inner.tasks(part)

    def make(self, part: int) -> list[Sample]:
        samples = self.inner.make(part)
        pairs = [(self._task(s), _episode(s)) for s in samples]
        rng = np.random.default_rng(part)
        if "equal" in self.asked:
            samples = self._named(samples)
        if self.options.scorer is not None:
            found = self._confidences(samples, pairs, rng)
            samples = [replace(s, confidence=c) for s, c in zip(samples, found, strict=True)]
        if self.chain is not None:
            sound, votes = self.detail.sound(pairs, samples, self.engine, rng)
            samples = [replace(s, sound=a, votes=v) for s, a, v in zip(samples, sound, votes, strict=True)]
        elif "rule" in self.asked:
            samples = [replace(s, sound=settle(s.votes, self.options.rule)) if s.votes else s for s in samples]
        return samples

    def _task(self, sample: Sample) -> Task:
        if not self.known:
            return Task(sample.task_id, sample.prompt)
        if sample.task_id not in self.known:
            raise RunError(f"task {sample.task_id} of the samples is not among the tasks that they are said to be of")
        return self.known[sample.task_id]

    def _named(self, samples: Sequence[Sample]) -> list[Sample]:
        answers: dict[str, list[str | None]] = {
            name: final_answers(self._task(rows[0]), [s.response for s in rows], self.options.equal)
            for name, rows in by_task(samples).items()
        }
        return [replace(s, answer=answers[s.task_id].pop(0)) for s in samples]

    def _confidences(
        self, samples: Sequence[Sample], pairs: Sequence[tuple[Task, Episode]], rng: np.random.Generator
    ) -> list[float | None]:
        if self.scorer is None:
            return [None] * len(samples)
        if not isinstance(self.scorer, Confidence):
            return [s.value for s in self.scorer.score(pairs, self.engine, rng)]
        if samples and all(s.logprob is None for s in samples):
            raise UsageError("--scorer confidence: no log-probabilities are stored with these samples")
        sign, total = (-1.0 if self.scorer.negative else 1.0), self.scorer.total
        return [None if s.logprob is None else sign * math.exp(s.logprob * (s.length if total else 1)) for s in samples]

    @property
    def usage(self) -> dict[str, dict[str, float]]:
        engines = {"judge": getattr(self.chain, "engine", None), "scorer": getattr(self.scorer, "engine", None)}
        used = {name: getattr(engine, "usage", None) for name, engine in {**engines, "model": self.engine}.items()}
        return {**self.inner.usage, **{name: usage.plain() for name, usage in used.items() if usage is not None}}

    def close(self) -> None:
        self.inner.close()
        for thing in (self.engine, *(getattr(part, "engine", None) for part in (self.chain, self.scorer))):
            if callable(close := getattr(thing, "close", None)):
                close()


def _reader(spec: Any, option: str) -> Scorer:
    """Return a scorer of texts alone."""
    made = as_scorer(spec)
    if isinstance(made, ByFunction | ByVerifier | Judge) or (isinstance(made, Confidence) and option == "--scorer"):
        return made
    raise UsageError(
        f"{option} {spec} reads tokens or states, and of these samples the texts are there; give a judge, "
        "path/to/file.py:function, or verifier"
    )


def _episode(sample: Sample) -> Episode:
    none = np.zeros(0, dtype=np.int64)
    return Episode(none, none, none.astype(bool), None, sample.response, sample.stop)  # type: ignore[arg-type]


class StoredSource:
    """Samples of a finished evaluation, in its folder or in one file. See :class:`Source`.

    Raises:
        UsageError: the evaluation is not finished.
    """

    def __init__(self, path: Path):
        if is_folder(path):
            folder = EvaluationFolder.open(path)
            if folder.missing:
                raise UsageError(f"the evaluation in {path} is not finished; assay eval {path} goes on with it")
            before, samples, mark = folder.about, folder.samples(), content_mark(path / "samples")
            settings = before["settings"]
        else:
            samples, label, step = read_samples(path)
            before, mark, settings = {"step": step}, content_mark(path), {"label": label}
        self.rows = list(by_task(samples).values())
        self.voted = any(s.votes for s in samples)
        # A twentieth of the tasks at most is lost when it is stopped.
        self.chunk = max(8, -(-len(self.rows) // 20))
        self.about: dict[str, Any] = {
            "target": str(path),
            "overrides": [],
            "step": before["step"],
            "tasks": len(self.rows),
            "parts": -(-len(self.rows) // self.chunk),
            "settings": {**settings, "samples_of": {"path": str(path), "mark": mark}},
        }

    def start(self) -> None: ...

    def _slice(self, part: int) -> slice:
        return slice(part * self.chunk, (part + 1) * self.chunk)

    def tasks(self, part: int) -> int:
        return len(self.rows[self._slice(part)])

    def make(self, part: int) -> list[Sample]:
        return [s for rows in self.rows[self._slice(part)] for s in rows]

    @property
    def usage(self) -> dict[str, dict[str, float]]:
        return {}

    def close(self) -> None: ...


def detail_source(target: str, options: Options) -> DetailSource:
    """Return the samples of a finished evaluation, or of a file of samples, with what ``options`` ask of them.

    Raises:
        UsageError: something does not fit.
    """
    path = Path(target).expanduser()
    if is_folder(path) or (path.suffix.lower() == ".parquet" and is_samples(path)):
        return DetailSource(StoredSource(path), options, lambda: _tasks(path), lambda: _model(path))
    from assay.evaluate.file_source import FileSource

    # What reads the text alone the file's own source finds out itself, with the verdicts.
    text = options.scorer in (None, "none") or isinstance(as_scorer(options.scorer), ByFunction | ByVerifier)
    usual = Options()
    inner = replace(options, chain=None, votes=usual.votes, rule=usual.rule, every=False)
    file = FileSource(target, inner if text else replace(inner, scorer=None))
    rest = replace(options, equal=usual.equal, scorer=None if text else options.scorer)
    made = DetailSource(file, rest, lambda: {t.task.id: t.task for t in file.given}, lambda: _model(path))
    made.about["options"] = options.plain()
    return made


def _origin(path: Path) -> tuple[dict[str, Any], str]:
    """Return what is known of the evaluation that samples were first made by, and its target."""
    if not is_folder(path):
        raise UsageError(f"{path} holds samples alone; for this name the folder of the evaluation that they are of")
    about = EvaluationFolder.open(path).about
    target = Path(about["target"]).expanduser()
    return _origin(target) if is_folder(target) else (about, about["target"])


def _tasks(path: Path) -> dict[str, Task]:
    """Return the tasks that stored samples are of, by id."""
    from assay.evaluate.file_source import FileSource
    from assay.tasks.configured import held_out

    about, target = _origin(path)
    if Path(target).suffix.lower() in FILES:
        options = Options(**about["options"])
        file = FileSource(target, replace(options, chain=None, votes=3, rule="majority", every=False, scorer=None))
        found, same = [t.task for t in file.given], file.about["settings"]["file"] == about["settings"]["file"]
    else:
        found = held_out(resolve(target, about["overrides"]).config)
        same = tasks_mark(found) == about["settings"]["tasks"]["mark"]
    if not same:
        raise UsageError(f"the tasks of {target} are no longer those that the samples in {path} are of")
    return {t.id: t for t in found}


def _model(path: Path) -> Target:
    """Return the model that wrote stored samples."""
    if not is_folder(path):
        raise UsageError(
            f"{path} does not say which model wrote its samples, to be the judge of them; name one: --chain "
            "openai:MODEL@http://host/v1"
        )
    about, target = _origin(path)
    if Path(target).suffix.lower() in FILES:
        raise UsageError(f"{target} is a file; no model is known to judge it: --chain openai:MODEL@http://host/v1")
    found = resolve(target, about["overrides"])
    if found.weights != about["settings"]["weights"]:
        raise UsageError(f"the weights of {target} are no longer those that wrote the samples in {path}")
    return found
