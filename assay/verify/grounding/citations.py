"""Citations of documents that exist, were asked for, and hold what is quoted before them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.grounding.documents import holds, pieces_of, plain_document, read_documents
from assay.verify.grounding.quotes import long_enough, read_quotes
from assay.verify.lists.matching import f_beta
from assay.verify.text.exact import shorten

_MARKER = re.compile(r"\[{1,2}([^\[\]\n]{1,200})\]{1,2}")
_RANGE = re.compile(r"([0-9]{1,6})\s?[-\u2013]\s?([0-9]{1,6})")
SHOWN = 40
"""Documents that get a part of their own."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A marker: the documents it names, and where it starts and ends in the response."""

    names: tuple[str, ...]
    start: int
    end: int


def read_citations(text: str, known: Mapping[str, object]) -> list[Citation]:
    """Return the markers ``[1]``, ``[1, 3]``, ``[2-4]``, ``[[id]]`` in ``text``, in order.

    What is in brackets is a marker if it consists of numbers or names a known document; else it is text ("[sic]").
    """
    found = []
    for match in _MARKER.finditer(text):
        names: list[str] = []
        if match[1].strip() in known:
            names = [match[1].strip()]
        else:
            for piece in re.split(r"[,;]", match[1]):
                span = _RANGE.fullmatch(piece.strip())
                if span and piece.strip() not in known and 0 <= int(span[2]) - int(span[1]) <= 100:
                    names += [str(i) for i in range(int(span[1]), int(span[2]) + 1)]
                else:
                    names.append(piece.strip())
        if all(name in known or re.fullmatch(r"[0-9]{1,6}", name) for name in names):
            found.append(Citation(tuple(names), match.start(), match.end()))
    return found


@part("verify", "citations")
@dataclass(frozen=True, slots=True)
class Citations:
    """Right iff the documents cited exist, hold what is quoted from them, and are those that are needed.

    ``task.reference`` is ``{"documents": ..., "gold": [ids]}``: the documents as a list (named 1, 2, ...) or by
    identifier; ``gold``, if given, are those that an answer should cite. A quotation of ``min_words`` words or more
    directly before a marker has to stand in one of the documents that the marker names.

    ``parts``: ``exist`` (share of citations whose document exists), ``quoted`` (share of such quotations that stand
    there; ``None`` without any), ``precision``, ``recall`` and ``f`` of the documents cited against ``gold``, and each
    cited document: 0 where it does not exist or lacks what is quoted from it. The score is the least of exist, quoted
    and f.

    Args:
        beta: weight of recall in ``f``.
        threshold: least ``f`` that passes, in (0, 1].
        min_citations: fewer citations are wrong.
        min_words: of a quotation that is looked up.
        max_citations: more citations are wrong.
        max_chars: a longer response is wrong.
    """

    beta: float = 1.0
    threshold: float = 1.0
    min_citations: int = 1
    min_words: int = 4
    max_citations: int = 500
    max_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if not (self.beta > 0 and 0 < self.threshold <= 1 and 0 <= self.min_citations <= self.max_citations):
            raise UsageError(
                "verifier 'citations': beta above 0, threshold in (0, 1], 0 <= min_citations <= max_citations"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = task.reference if isinstance(task.reference, Mapping) and "documents" in task.reference else None
        documents = read_documents(spec["documents"] if spec is not None else task.reference)
        gold = spec.get("gold") if spec is not None else None
        if documents is None or not (gold is None or isinstance(gold, list | tuple)):
            return Verdict.abstain(f"task {task.id}: reference is not {{'documents': ..., 'gold': [ids]}}")
        if len(response) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        citations = read_citations(response, documents)
        named = [name for citation in citations for name in citation.names]
        if not self.min_citations <= len(named) <= self.max_citations:
            return Verdict.wrong(f"{len(named)} citations")
        marks: dict[str, float] = {name: float(name in documents) for name in named}
        exist = sum(name in documents for name in named) / len(named) if named else 1.0
        complaint = (
            ""
            if exist == 1
            else f"cites {shorten(next(n for n in named if n not in documents))!r}, which is no document"
        )
        parts: dict[str, float | None] = {"exist": exist, "quoted": None}
        if attributed := self._attributed(response, citations, documents):
            parts["quoted"] = sum(right for _, right in attributed) / len(attributed)
            for citation, right in attributed:
                if not right:
                    marks |= dict.fromkeys(citation.names, 0.0)
                    complaint = complaint or f"the quotation is not in [{', '.join(citation.names)[:40]}]"
        scores = [exist, 1.0 if parts["quoted"] is None else parts["quoted"]]
        passed = min(scores) == 1
        if gold is not None:
            wanted = {str(g).strip() for g in gold}
            cited = set(named)
            precision = len(cited & wanted) / len(cited) if cited else float(not wanted)
            recall = len(cited & wanted) / len(wanted) if wanted else 1.0
            f = f_beta(precision, recall, self.beta)
            parts |= {"precision": precision, "recall": recall, "f": f}
            scores.append(f)
            passed = passed and f >= self.threshold
            complaint = complaint or (
                "" if passed else f"precision {precision:.2f}, recall {recall:.2f} of the documents"
            )
        parts |= {f"[{name}]": mark for name, mark in list(marks.items())[:SHOWN]}
        return Verdict(min(scores), passed, parts, complaint)

    def _attributed(
        self, response: str, citations: list[Citation], documents: Mapping[str, str]
    ) -> list[tuple[Citation, bool]]:
        """Return each citation directly after a quotation, and whether one of its documents holds that."""
        after = {quote.end: quote for quote in read_quotes(response)}
        found = []
        for citation in citations:
            before = response[max(citation.start - 8, 0) : citation.start].rstrip(" \t,.;:(")
            quote = after.get(max(citation.start - 8, 0) + len(before))
            pieces = pieces_of(quote.text) if quote is not None else []
            if long_enough(pieces, self.min_words):
                texts = [plain_document(documents[name]) for name in citation.names if name in documents]
                found.append((citation, any(holds(text, pieces) for text in texts)))
        return found
