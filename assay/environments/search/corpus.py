"""Documents with identifiers, made or read, and the index over them."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.environments.search.bm25 import BM25
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.verify.grounding.claims import plain_id


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a title, and the identifier that it is opened and cited by."""

    id: str
    title: str
    text: str

    def told(self, chars: int | None = None) -> str:
        """Return it as it is shown, its text cut after so many characters."""
        text = self.text if chars is None or len(self.text) <= chars else f"{self.text[:chars]}..."
        return f"[[{self.id}]] {self.title}: {text}"


class Corpus:
    """Documents, and BM25 over their titles and texts; a title counts twice.

    Raises:
        UsageError: no documents, or two with one identifier.
    """

    def __init__(self, documents: Sequence[Document], where: str = "the corpus"):
        if not documents:
            raise UsageError(f"{where} has no documents")
        self.documents: dict[str, Document] = {}
        for document in documents:
            if self.documents.setdefault(plain_id(document.id), document) is not document:
                raise UsageError(f"{where} has two documents with the id {document.id!r}")
        self._order = list(documents)
        self._index = BM25([f"{d.title} {d.title} {d.text}" for d in documents])

    def find(self, query: str, k: int) -> list[Document]:
        """Return the k documents that fit a query best, best first; fewer where fewer share a word with it."""
        return [self._order[i] for i, _ in self._index.top(query, k)]


def read_corpus(path: Path) -> Corpus:
    """Return the documents of a file of rows ``{"id", "title", "text"}`` (JSON lines, or as its suffix says).

    A file is read once for as long as it does not change.

    Raises:
        UsageError: no such file, a row without an id or text, or two with one id.
    """
    place = Path(path)
    if not place.is_file():
        raise UsageError(f"environment 'search': no file {place}")
    found = os.stat(place)
    return _read(place.resolve(), found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> Corpus:
    documents = []
    for place, row in read_rows(path):
        if not isinstance(row, dict) or not {"id", "text"} <= set(row):
            raise UsageError(f"{place}: a document is {{'id', 'title', 'text'}}")
        documents.append(Document(str(row["id"]), str(row.get("title") or ""), str(row["text"])))
    return Corpus(documents, str(path))
