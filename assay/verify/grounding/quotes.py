"""Quotations that really stand in the documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.grounding.documents import holds, pieces_of, plain_document, read_documents
from assay.verify.text.exact import shorten

_QUOTE = re.compile(
    r"<quote>([^<]*)</quote>|\u201c([^\u201c\u201d]*)\u201d|\u00ab([^\u00ab\u00bb]*)\u00bb|\"([^\"\n]*)\"",
)
SHOWN = 20
"""Quotations that get a part of their own."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation, and where in the response it ends."""

    text: str
    end: int


def read_quotes(text: str) -> list[Quote]:
    """Return what stands in ``<quote>``, typographic, angle or straight double quotes (these on one line), in order."""
    return [Quote(next(g for g in m.groups() if g is not None), m.end()) for m in _QUOTE.finditer(text)]


def long_enough(pieces: list[str], words: int) -> bool:
    """Say whether a quotation has ``words`` words, and each of its pieces at least two of them."""
    counts = [len(piece.split()) for piece in pieces]
    return sum(counts) >= words and (len(counts) == 1 or min(counts) >= 2)


@part("verify", "quotes")
@dataclass(frozen=True, slots=True)
class Quotes:
    """Right iff the response quotes the documents, and everything it quotes stands in one of them.

    ``task.reference`` is the documents (a list, a mapping by identifier, one text), or ``{"documents": ...}``. White
    space, case, kinds of quotes and dashes do not matter; an ellipsis joins pieces that stand in one document in this
    order. Score = share of quotations found; ``parts``: ``found``, and each of the first :data:`SHOWN` quotations.

    Args:
        min_words: shorter quotations are names and scare quotes: they count neither way.
        min_quotes: fewer quotations that count are wrong.
        max_quotes: more are wrong.
        max_chars: a longer response is wrong.
    """

    min_words: int = 4
    min_quotes: int = 1
    max_quotes: int = 100
    max_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if not (self.min_words >= 1 and 0 <= self.min_quotes <= self.max_quotes):
            raise UsageError("verifier 'quotes': min_words must be at least 1, and 0 <= min_quotes <= max_quotes")

    def __call__(self, task: Task, response: str) -> Verdict:
        reference = task.reference
        if isinstance(reference, Mapping) and "documents" in reference:
            reference = reference["documents"]
        documents = read_documents(reference)
        if documents is None:
            return Verdict.abstain(f"task {task.id}: reference has no documents")
        if len(response) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        # The least length of so many words spares most of the work on a text full of quotation marks.
        texts = (quote.text for quote in read_quotes(response) if len(quote.text) >= 2 * self.min_words - 1)
        split = ((text, pieces_of(text)) for text in texts)
        quotes = [(text, pieces) for text, pieces in split if long_enough(pieces, self.min_words)]
        if len(quotes) < self.min_quotes or len(quotes) > self.max_quotes:
            return Verdict(0.0, False, {"found": 0.0}, f"{len(quotes)} quotations of {self.min_words} words or more")
        plain = [plain_document(text) for text in documents.values()]
        found = [any(holds(document, pieces) for document in plain) for _, pieces in quotes]
        score = sum(found) / len(found) if found else 1.0
        parts: dict[str, float | None] = {"found": score}
        parts |= {f"quote {i}": float(right) for i, right in enumerate(found[:SHOWN], 1)}
        if all(found):
            return Verdict(score, True, parts)
        return Verdict(score, False, parts, f"{shorten(quotes[found.index(False)][0])!r} is in no document")
