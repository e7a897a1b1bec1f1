"""Tasks of saying whether a response fulfils a principle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from assay.engines.asking import filled, judge_of
from assay.errors import UsageError
from assay.from_file import from_file
from assay.records.files import write_text
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.judging.feedback import Similar, agreed, by_words, extracted
from assay.tasks.seeded import check_index
from assay.types import Task
from assay.verify.principle import REASONS, WORD

Form = Literal["word", "reasons"]
LABELS: dict[Any, bool] = {True: True, False: False, "yes": True, "no": False}


@part("tasks", "principles")
class Principles:
    """Tasks of whether a response fulfils a principle, from a file of rows of either kind, all with ``prompt`` and
    ``response``:

    - ``principle`` and ``fulfilled`` (true, false, yes or no);
    - ``feedback``, a list of what several people wrote: an ``extractor`` takes it apart into principles, those that
      stand in the feedback and that all agree on (:mod:`assay.tasks.judging.feedback`) are written to ``keep`` as
      rows of the first kind. One that is there is read instead.

    In form ``word`` the reply is Yes or No and nothing else: kind ``exact``, with the reply as worked solution, so that
    supervised training on solutions is the cross-entropy of both. In form ``reasons`` it ends with a box: kind
    ``critique``.

    Args:
        path: the file.
        form: see above.
        extractor: the specification of an engine: an instruction-following model.
        keep: see above.
        embed: ``path/to/file.py:function`` that takes a list of n texts and returns ``(n, d)`` numbers, whose cosines
            say which principles are similar; those of counts of words unless given.
        similar: the cosine above which two are.

    Raises:
        UsageError: nothing there is of use, a row that is neither, or feedback without ``extractor`` and ``keep``.
    """

    def __init__(
        self,
        path: Path,
        form: Form = "word",
        extractor: Any = None,
        keep: Path | None = None,
        embed: str | None = None,
        similar: float = 0.8,
    ):
        if keep is not None and Path(keep).is_file():
            path = Path(keep)
        rows = [(where, dict(row)) for where, row in read_rows(Path(path)) if isinstance(row, Mapping)]
        told = [(where, row) for where, row in rows if "feedback" in row]
        if told:
            if extractor is None or keep is None:
                raise UsageError(f"{told[0][0]}: feedback is taken apart by an extractor and kept in a file: give both")
            cosines = by_words if embed is None else of_vectors(from_file(embed, "embed"))
            made = [row for _, row in rows if "feedback" not in row] + self._made(told, extractor, cosines, similar)
            if not made:
                raise UsageError(f"{path}: there is no principle that people agree on; give more feedback")
            write_text(Path(keep), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made))
            rows = [(f"{keep}, row {k + 1}", row) for k, row in enumerate(made)]
        self.tasks = [_task(where, row, form) for where, row in rows]
        if not self.tasks:
            raise UsageError(f"{path} has no rows")

    @staticmethod
    def _made(
        told: Sequence[tuple[str, dict[str, Any]]], extractor: Any, cosines: Similar, similar: float
    ) -> list[dict[str, Any]]:
        texts = [[str(x) for x in row["feedback"]] for _, row in told]
        found = iter(extracted([x for some in texts for x in some], judge_of(extractor, "tasks 'principles'")))
        out = []
        for (_, row), some in zip(told, texts, strict=True):
            people = [principles for principles in (next(found) for _ in some) if principles is not None]
            about = {"prompt": row["prompt"], "response": row["response"]}
            out += [{**about, "principle": p.text, "fulfilled": p.fulfilled} for p in agreed(people, cosines, similar)]
        return out

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _task(where: str, row: Mapping[str, Any], form: Form) -> Task:
    label = row.get("fulfilled")
    label = LABELS.get(label.strip().casefold() if isinstance(label, str) else label)
    if label is None or not all(isinstance(row.get(name), str) for name in ("prompt", "response", "principle")):
        raise UsageError(f"{where}: a row has prompt, response, principle and fulfilled (yes or no), or feedback")
    shown = {"question": row["prompt"], "response": row["response"], "principle": row["principle"]}
    meta = {"principle": row["principle"]}
    if form == "word":
        word = "Yes" if label else "No"
        return Task(where, filled(WORD, **shown), word, "exact", word, meta=meta)
    return Task(where, filled(REASONS, **shown), str(label), "critique", meta=meta)


def of_vectors(embed: Any) -> Similar:
    """Return the cosines of what a function makes of texts."""

    def cosines(texts: Sequence[str]) -> np.ndarray:
        table = np.asarray(embed(list(texts)), dtype=np.float64)
        unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
        return np.asarray(unit @ unit.T)

    return cosines
