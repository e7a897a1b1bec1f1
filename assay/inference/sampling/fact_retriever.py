"""Facts of a knowledge graph about what a question names, those that fit its meaning best first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.environments.search.bm25 import words
from assay.environments.search.corpus import Document
from assay.errors import UsageError
from assay.signals.embeddings import MINILM, Embed, embedding, unit_vectors
from assay.tasks.graph_questions import Fact, read_graph


class FactRetriever:
    """Ranks the facts (h, r, t) whose head h is an entity of the question by the cosine of e(q) and e("h r t").

    Entities are those that are given with the question, or else the heads whose names stand in it as words; a name
    within a longer one that is found does not count. Facts that lack one of their three parts are left out, and of
    equals the first comes first. A fact is a document with its head as title, and the number of its line, from 0 among
    different facts, as identifier.

    Args:
        graph: a file of rows ``{"head", "relation", "tail"}``, see :func:`~assay.tasks.graph_questions.read_graph`, or
            facts.
        embedding: see :func:`assay.signals.embeddings.embedding`.

    Raises:
        UsageError: a file that cannot be read, or no fact that is whole.

    Source: the retriever of KALMV (arXiv 2310.12836) for knowledge graphs, and its authors' code.
    """

    def __init__(self, graph: Path | str | Sequence[Fact], embedding: str | Embed = MINILM):
        facts = read_graph(Path(graph), "the knowledge graph")[0] if isinstance(graph, Path | str) else graph
        self.facts = [tuple(part.strip() for part in fact) for fact in facts]
        self.embedding = embedding
        self.of: dict[str, list[int]] = {}
        for i, fact in enumerate(self.facts):
            if all(fact):
                self.of.setdefault(fact[0], []).append(i)
        if not self.of:
            raise UsageError("the knowledge graph has no fact with a head, a relation and a tail")
        self._named: dict[tuple[str, ...], list[str]] = {}
        for head in self.of:
            self._named.setdefault(tuple(words(head)), []).append(head)
        self._longest = max(map(len, self._named))
        self._vectors: dict[str, np.ndarray] = {}

    def find(self, question: str, k: int, entities: Sequence[str] | None = None) -> list[Document]:
        """Return the k facts that fit a question best, best first; fewer where its entities have fewer.

        Args:
            question: that is asked.
            k: facts.
            entities: heads that it is about; those that it names if ``None``.
        """
        heads = self.entities(question) if entities is None else dict.fromkeys(map(str, entities))
        rows = [i for head in heads for i in self.of.get(head, [])]
        texts = [" ".join(self.facts[i]) for i in rows]
        self._embed([question, *texts] if rows else [])
        scores = [float(self._vectors[question] @ self._vectors[text]) for text in texts]
        order = sorted(range(len(rows)), key=lambda j: (-scores[j], rows[j]))
        return [self._document(rows[j]) for j in order[:k]]

    def entities(self, question: str) -> list[str]:
        """Return the heads that a question names, in the order of their names in it."""
        said, spans = words(question), list[tuple[int, int]]()
        for start in range(len(said)):
            ends = range(min(start + self._longest, len(said)), start, -1)
            spans += [(start, end) for end in ends if tuple(said[start:end]) in self._named][:1]
        whole = [s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)]
        return list(dict.fromkeys(head for a, b in whole for head in self._named[tuple(said[a:b])]))

    def _embed(self, texts: Sequence[str]) -> None:
        new = [text for text in texts if text not in self._vectors]
        if new:
            self._vectors |= unit_vectors(embedding(self.embedding), new)

    def _document(self, i: int) -> Document:
        head, relation, tail = self.facts[i]
        return Document(str(i), head, f"{relation}, {tail}")
