"""Samples that a file holds, judged already or judged here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.evaluate.detail import final_answers
from assay.evaluate.source import Options
from assay.inference.scoring.scorers import ByFunction, ByVerifier, as_scorer
from assay.records.foreign import ForeignTask, Reader
from assay.records.sample import Sample, plain_meta
from assay.types import Episode, Verdict
from assay.verify.base import Verifier
from assay.verify.guard import judge
from assay.verify.isolate.pool import VerifierPool, check_verifier
from assay.verify.make import make_verifier

PART = 2_000
"""Completions that are judged, and stored, together."""


class FileSource:
    """Samples of a file. See :class:`~assay.evaluate.source.Source`.

    Args:
        target: the file, see :class:`~assay.records.foreign.Reader`.
        options: see there.

    Raises:
        UsageError: the file does not fit, or neither says what is right nor is there a verifier to say it.
    """

    def __init__(self, target: str, options: Options):
        voting = (options.votes, options.rule, options.every) != (3, "majority", False)
        if options.samples is not None or options.chain is not None or voting:
            raise UsageError(f"--samples and --chain are for a model, and {target} is a file of samples")
        path = Path(target).expanduser()
        self.options = options
        self.pool: VerifierPool | None = None
        self.verifier: Verifier | None = None
        verifier = options.verifier
        named = verifier.get("name") if isinstance(verifier, dict) else verifier
        kind = named if isinstance(named, str) and ":" not in named and named != "by_kind" else "exact"
        reader = Reader(options.fields, options.reference, verifier is None, options.threshold, options.by, kind)
        if verifier is None and not reader.says_right(path):
            raise UsageError(
                f"{target} does not say which completions are right (no passed, correct or score); map a field with "
                "--fields passed=NAME, or have them judged with --verifier KIND --reference FIELD"
            )
        self.given = reader.read(path)
        self.scorer = None
        if options.scorer not in (None, "none"):
            self.scorer = as_scorer(options.scorer)
            if not isinstance(self.scorer, ByFunction | ByVerifier):
                raise UsageError(
                    f"--scorer {options.scorer} needs the model that wrote the completions; for a file of samples give "
                    "path/to/file.py:function, or map a field with --fields confidence=NAME"
                )
        self.starts = _starts([len(t.given) for t in self.given])
        self.about: dict[str, Any] = {
            "target": target,
            "overrides": [],
            "options": options.plain(),
            "step": 0,
            "tasks": len(self.given),
            "parts": len(self.starts) - 1,
            "settings": {
                "file": {"name": path.name, "mark": _digest(path)},
                "fields": dict(options.fields),
                "reference": options.reference,
                "verifier": verifier,
                "threshold": options.threshold,
                "by": list(options.by),
                "equal": options.equal,
                "scorer": options.scorer,
                "tasks": {"source": path.stem},
            },
        }

    def start(self) -> None:
        """Make what judges, where there is something to judge."""
        spec, workers = self.options.verifier, self.options.workers
        if spec is None:
            return
        if workers == 0:
            self.verifier = make_verifier(spec)
        else:
            self.verifier = self.pool = VerifierPool(spec, workers)
        check_verifier(self.verifier, [t.task for t in self.given])

    def _part(self, part: int) -> list[ForeignTask]:
        return self.given[self.starts[part] : self.starts[part + 1]]

    def tasks(self, part: int) -> int:
        return self.starts[part + 1] - self.starts[part]

    def make(self, part: int) -> list[Sample]:
        here = self._part(part)
        pairs = [(t.task, g.text) for t in here for g in t.given]
        verdicts: Iterator[Verdict] = iter(())
        if self.pool is not None:
            verdicts = self.pool.map(pairs)
        elif self.verifier is not None:
            verdicts = (judge(self.verifier, *pair) for pair in pairs)
        scores: list[float | None] = [None] * len(pairs)
        if self.scorer is not None:
            episodes = [(task, _episode(text)) for task, text in pairs]
            # These two look at the text alone.
            scores = [s.value for s in self.scorer.score(episodes, None, np.random.default_rng(0))]  # type: ignore[arg-type]
        scored = iter(scores)
        return [s for t in here for s in self._samples(t, verdicts, scored)]

    def _samples(
        self, task: ForeignTask, verdicts: Iterator[Verdict], scored: Iterator[float | None]
    ) -> Iterator[Sample]:
        answers = final_answers(task.task, [g.text for g in task.given], self.options.equal)
        meta = plain_meta(task.task.meta)
        for given, answer in zip(task.given, answers, strict=True):
            score, passed, feedback = given.score, given.passed, ""
            if self.verifier is not None:
                verdict = next(verdicts)
                score, passed, feedback = verdict.score, verdict.passed, verdict.feedback
            found = next(scored)
            yield Sample(
                task_id=task.task.id,
                prompt=task.task.question,
                response=given.text,
                score=float(passed is True) if score is None or passed is None else score,
                passed=passed,
                feedback=feedback,
                length=given.length,
                stop=given.stop,
                answer=answer,
                confidence=given.confidence if self.scorer is None else found,
                sound=given.sound,
                meta=meta,
            )

    @property
    def usage(self) -> dict[str, dict[str, float]]:
        return {}

    def close(self) -> None:
        if self.pool is not None:
            self.pool.close()


def _starts(sizes: list[int]) -> list[int]:
    """Where parts of about :data:`PART` completions begin, and the number of tasks."""
    starts = [0]
    done = 0
    for i, total in enumerate(accumulate(sizes), 1):
        if total - done >= PART and i < len(sizes):
            starts.append(i)
            done = total
    return [*starts, len(sizes)]


def _digest(path: Path) -> str:
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()[:16]


def _episode(text: str) -> Episode:
    none = np.zeros(0, dtype=np.int64)
    return Episode(none, none, none.astype(bool), None, text, "eos")
