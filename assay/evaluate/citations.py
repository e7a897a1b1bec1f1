"""Do the sources of a text support its claims, and does the corpus hold better ones?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assay.environments.search.corpus import Corpus, Document
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.signals.embeddings import Embed, sentence_model, unit_vectors
from assay.statistics.rate import Rate
from assay.verify.grounding.claims import plain_id
from assay.verify.support.bi_encoder import BiEncoder, Sought, is_bi_encoder
from assay.verify.support.cross_encoder import Cited, CrossEncoder
from assay.verify.support.passages import WORDS, passages_of
from assay.verify.support.verifier import document_scores

Expand = Callable[[list[str]], list[str]]
"""Takes n queries and returns n texts, each what a source of the claim might be called or say."""
READ = 100
"""Words of a claim that an encoder reads."""


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim with the document it cites.

    Attributes:
        id: tells it from others.
        text: what is said, up to the citation.
        source: the document cited.
        title, section: of the page it stands on, where there are.
        better: a document known to support it, where one is; the cited one, of a claim that is in order.
        fails: whether the citation is known not to support it; ``None`` where that is not known.
    """

    id: str
    text: str
    source: str
    title: str = ""
    section: str = ""
    better: str | None = None
    fails: bool | None = None

    @property
    def query(self) -> str:
        """What is searched for: title, section and text."""
        return " ".join(part for part in (self.title, self.section, self.text) if part)

    @property
    def read(self) -> str:
        """The query as an encoder reads it, in :data:`READ` words: of a longer one the end of the text, next to the
        citation, after title and section, of each a fifth at most."""
        if len(self.query.split()) <= READ:
            return self.query
        head = [word for part in (self.title, self.section) for word in part.split()[: READ // 5]]
        return " ".join([*head, *self.text.split()[len(head) - READ :]])


def read_claims(path: Path) -> list[CitedClaim]:
    """Return the claims of a file of rows ``{"text", "source"}``, with the other attributes where they have them.

    Raises:
        UsageError: no such file, or a row without these two.
    """
    found = []
    for n, (place, row) in enumerate(read_rows(Path(path))):
        if not isinstance(row, dict) or not all(isinstance(row.get(k), str) and row[k] for k in ("text", "source")):
            raise UsageError(f"{place}: a claim is {{'text': ..., 'source': id of a document}}")
        if not isinstance(row.get("fails"), bool | None):
            raise UsageError(f"{place}: fails is true or false, not {row['fails']!r}")
        texts = {k: str(row[k]) for k in ("text", "source", "title", "section") if row.get(k) is not None}
        better = None if row.get("better") is None else str(row["better"])
        found.append(CitedClaim(str(row.get("id", n)), **texts, better=better, fails=row.get("fails")))
    return found


class Retrieval:
    """Finds documents for a claim in two ways, whose findings are put together.

    Sparse: BM25 of the claim's :attr:`~CitedClaim.query`, to which ``expand`` may add what a source might say. Dense:
    the cosine of embeddings.

    Args:
        corpus: what is searched.
        k: documents of either way.
        embed: takes n texts and returns ``(n, d)`` numbers; without it there is no dense way.
        expand: see :data:`Expand`.
    """

    def __init__(self, corpus: Corpus, k: int = 100, embed: Embed | None = None, expand: Expand | None = None):
        if k < 1:
            raise UsageError(f"retrieval finds one document or more, not {k}")
        self.corpus, self.k, self.embed, self.expand = corpus, k, embed, expand
        self._names = list(corpus.documents)
        texts = list(map(told, corpus.documents.values()))
        self._vectors = None if embed is None else _rows(embed, texts)

    def find(self, claims: Sequence[CitedClaim]) -> list[list[str]]:
        """Return the documents for each claim: the sparse ones, best first, then dense ones that are not among them."""
        queries = [claim.query for claim in claims]
        more = self.expand(queries) if self.expand is not None else [""] * len(queries)
        found = [
            [plain_id(d.id) for d in self.corpus.find(f"{query} {text}".strip(), self.k)]
            for query, text in zip(queries, more, strict=True)
        ]
        if self.embed is not None and self._vectors is not None:
            for have, vector in zip(found, _rows(self.embed, [claim.read for claim in claims]), strict=True):
                order = np.argsort(-(self._vectors @ vector), kind="stable")[: self.k]
                have += [name for i in order if (name := self._names[i]) not in have]
        return found


def embedding(source: str | Path) -> Embed:
    """Return what embeds texts: a retriever that was trained here, by its folder, or a model of sentence-transformers.

    Raises:
        UsageError: there is no such model.
    """
    return BiEncoder(source) if is_bi_encoder(source) else sentence_model(str(source))


def _rows(embed: Embed, texts: Sequence[str]) -> np.ndarray:
    known = unit_vectors(embed, list(texts))
    return np.stack([known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of a claim's citation.

    Attributes:
        claim: it.
        score: of the document that is cited.
        ranked: documents with their scores, best first; the cited one among them.
        retrieved: those that were found, in the order they were.
    """

    claim: CitedClaim
    score: float
    ranked: tuple[tuple[str, float], ...]
    retrieved: tuple[str, ...]

    @property
    def proposal(self) -> str | None:
        """The best document, where it supports the claim better than the one that is cited."""
        name, score = self.ranked[0]
        return name if score > self.score else None


def check(
    claims: Sequence[CitedClaim], retrieval: Retrieval, encoder: CrossEncoder, words: int = WORDS
) -> list[Checked]:
    """Score each claim's source and what is retrieved beside it; the worst citation comes first.

    Source: SIDE (arXiv 2207.06220): a document's score is that of its best passage, the claims whose citation scores
    lowest are the likeliest to fail verification.

    Raises:
        UsageError: a claim that cites what the corpus does not have.
    """
    documents = retrieval.corpus.documents
    _known(claims, documents)
    out = []
    for claim, found in zip(claims, retrieval.find(claims), strict=True):
        names = dict.fromkeys([claim.source, *found])
        texts, titles = {n: documents[n].text for n in names}, {n: documents[n].title for n in names}
        scores = document_scores(encoder, claim.read, texts, words, titles)
        # Of equal ones what is cited stands first: nothing is proposed that is no better.
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        out.append(Checked(claim, scores[claim.source], tuple(ranked), tuple(found)))
    return sorted(out, key=lambda checked: checked.score)


def examples(claims: Sequence[CitedClaim], retrieval: Retrieval, words: int = WORDS, passages: int = 8) -> list[Cited]:
    """Return what the encoder learns from: cited documents' passages, and those of others that were retrieved.

    Args:
        claims: whose citations are taken to be right.
        passages: of either sort, at most; the first ones.

    Raises:
        UsageError: a claim that cites what the corpus does not have.
    """
    documents = retrieval.corpus.documents
    _known(claims, documents)

    def of(names: Sequence[str]) -> tuple[str, ...]:
        found = [p for n in names for p in passages_of(documents[n].text, documents[n].title, words)]
        return tuple(found[:passages])

    return [
        Cited(claim.read, of([claim.source]), of([name for name in found if name != claim.source]))
        for claim, found in zip(claims, retrieval.find(claims), strict=True)
    ]


def sought(claims: Sequence[CitedClaim], retrieval: Retrieval, others: int = 1) -> list[Sought]:
    """Return what a retriever learns from: each claim with the document it cites, and the best ``others`` that are not.

    Raises:
        UsageError: a claim that cites what the corpus does not have.
    """
    _known(claims, retrieval.corpus.documents)

    def text(name: str) -> str:
        return told(retrieval.corpus.documents[name])

    return [
        Sought(claim.read, text(claim.source), tuple(text(n) for n in found if n != claim.source)[:others])
        for claim, found in zip(claims, retrieval.find(claims), strict=True)
    ]


def sources(claims: Sequence[CitedClaim], corpus: Corpus) -> list[tuple[CitedClaim, str]]:
    """Return claims with the titles of the documents they cite, those that have one.

    Raises:
        UsageError: a claim that cites what the corpus does not have.
    """
    _known(claims, corpus.documents)
    return [(claim, title) for claim in claims if (title := corpus.documents[claim.source].title.strip())]


def told(document: Document) -> str:
    """Return a document as it is embedded: title and text."""
    return f"{document.title} {document.text}"


def _known(claims: Sequence[CitedClaim], documents: Mapping[str, Document]) -> None:
    for claim in claims:
        for name in filter(None, (claim.source, claim.better)):
            if name not in documents:
                raise UsageError(f"claim {claim.id}: the corpus has no document {name!r}")


def measures(checked: Sequence[Checked], k: int = 100, worst: float = 0.1) -> dict[str, Rate]:
    """Return shares with exact 95% intervals, each over the claims for which it is known.

    ``retrieval/precision@1`` and ``retrieval/success@k``: the better document is the first retrieved, among the first
    k. ``ranked/first``: it is ranked first by the encoder. ``flagged/fails``: of the share ``worst`` of the claims with
    the lowest scores, the citation fails; ``fails``: of all. ``proposal/right``: of the proposals, the better document.
    """
    known = [c for c in checked if c.claim.better is not None]
    told = [c for c in checked if c.claim.fails is not None]
    flagged = told[: max(1, round(worst * len(told)))] if told else []
    hits = {
        "retrieval/precision@1": [c.claim.better in c.retrieved[:1] for c in known],
        f"retrieval/success@{k}": [c.claim.better in c.retrieved[:k] for c in known],
        "ranked/first": [c.claim.better == c.ranked[0][0] for c in known],
        "proposal/right": [c.claim.better == c.proposal for c in known if c.proposal is not None],
        "flagged/fails": [bool(c.claim.fails) for c in flagged],
        "fails": [bool(c.claim.fails) for c in told],
    }
    return {name: Rate.of(sum(found), len(found)) for name, found in hits.items() if found}
