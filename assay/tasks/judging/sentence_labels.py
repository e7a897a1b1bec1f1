"""Tasks of labelling an answer's sentences as faithful to documents, and as correct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.engines.asking import filled
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.seeded import check_index
from assay.tasks.sentences import segments
from assay.types import Task
from assay.verify.grounding.documents import read_documents
from assay.verify.grounding.sentence_labels import TEMPLATE, written_labels


@part("tasks", "sentence_labels")
class LabelledSentences:
    """Tasks of kind ``sentence_labels`` from rows with ``question``, ``documents``, ``answer`` or ``sentences``, and
    the labels of the sentences, ``faithful`` and ``correct``, lists of true or false.

    An answer is cut into its sentences. A row may have ``reasons``, a text for each, why it is correct or not: its task
    then has the labels with their reasons as worked solution, for the supervised start.

    Args:
        path: the file.
        template: of the prompt, with ``{question}``, ``{documents}`` and ``{sentences}``.

    Raises:
        UsageError: a row of another form, or with other than one label a sentence, with its line.
    """

    def __init__(self, path: Path, template: str = TEMPLATE):
        if any(f"{{{name}}}" not in template for name in ("question", "documents", "sentences")):
            raise UsageError("tasks 'sentence_labels': the template must show {question}, {documents} and {sentences}")
        self.tasks = [_task(where, row, template) for where, row in read_rows(Path(path))]
        if not self.tasks:
            raise UsageError(f"{path} has no rows")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def asked(question: str, documents: Any, sentences: Sequence[str], template: str = TEMPLATE) -> str:
    """Return what a judge of sentences is asked; ``documents`` as tasks have them, see
    :func:`~assay.verify.grounding.documents.read_documents`."""
    found = read_documents(documents) or {}
    shown = "\n".join(f"[{name}] {text}" for name, text in found.items()) or "(none)"
    numbered = "\n".join(f"{k}. {' '.join(text.split())}" for k, text in enumerate(sentences, 1))
    return filled(template, question=question, documents=shown, sentences=numbered)


def _task(where: str, row: Any, template: str) -> Task:
    row = row if isinstance(row, Mapping) else {}
    sentences = row.get("sentences") or segments(str(row.get("answer") or ""))
    lists = [row.get("faithful"), row.get("correct"), row.get("reasons", [""] * len(sentences))]
    fits = all(isinstance(x, list) and len(x) == len(sentences) for x in lists) and bool(sentences)
    if not fits or not isinstance(row.get("question"), str) or not {*lists[0], *lists[1]} <= {True, False}:
        raise UsageError(
            f"{where}: a row has question, documents, answer or sentences, and for each of the {len(sentences)} "
            "sentences one label in faithful and one in correct, true or false, and perhaps one text in reasons"
        )
    labels = [(bool(f), bool(c)) for f, c in zip(lists[0], lists[1], strict=True)]
    prompt = asked(row["question"], row.get("documents"), sentences, template)
    solution = written_labels(labels, lists[2]) if "reasons" in row else None
    return Task(where, prompt, labels, "sentence_labels", solution, meta={"sentences": list(sentences)})
