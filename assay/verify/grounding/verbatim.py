"""How much of a response is quoted from a trusted corpus."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.grounding.documents import plain_text, read_documents
from assay.verify.grounding.ngrams import NGramIndex


@functools.lru_cache(maxsize=32)
def _index(texts: tuple[str, ...], n: int, plain: bool) -> NGramIndex:
    return NGramIndex((plain_text(text) if plain else text for text in texts), n)


@part("verify", "verbatim")
@dataclass(frozen=True, slots=True)
class Verbatim:
    """The share of a response that stands verbatim in a corpus (QUIP, Quote-Tuning).

    QUIP = (n-grams of characters of the response that are in the corpus) / (n-grams of the response), 0 for a response
    shorter than n. The corpus is the files of ``corpus``, else the documents of ``task.reference`` (a list, a mapping,
    one text, or ``{"documents": ...}``). ``parts``: ``quip``, ``coverage`` (share of characters inside a verbatim match
    of n or more).

    Args:
        n: characters of an n-gram.
        score: what the score is.
        threshold: passed iff score >= threshold, in (0, 1].
        corpus: UTF-8 text files.
        plain: kinds of quotes and dashes, case and white space do not matter, see
            :func:`~assay.verify.grounding.documents.plain_text`.
        min_chars: a shorter answer is wrong.
        rules, fallback: which part of the response counts, see :func:`~assay.verify.answer.extract.extract`.
        max_chars: a longer answer is wrong.

    Raises:
        UsageError: when made, for a file of the corpus that cannot be read.
    """

    n: int = 25
    score: Literal["quip", "coverage"] = "quip"
    threshold: float = 0.5
    corpus: tuple[Path, ...] = ()
    plain: bool = True
    min_chars: int = 25
    rules: tuple[Rule, ...] = ("answer_tag",)
    fallback: Fallback = "whole"
    max_chars: int = 1_000_000
    _shared: NGramIndex | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.n >= 1 and 0 < self.threshold <= 1):
            raise UsageError(
                f"verifier 'verbatim': n {self.n} must be at least 1, threshold {self.threshold} in (0, 1]"
            )
        if self.corpus:
            try:
                texts = tuple(Path(path).read_text(encoding="utf-8") for path in self.corpus)
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"verifier 'verbatim': a file of the corpus cannot be read: {error}") from None
            object.__setattr__(self, "_shared", _index(texts, self.n, self.plain))

    def __call__(self, task: Task, response: str) -> Verdict:
        index = self._shared
        if index is None:
            reference = task.reference
            if isinstance(reference, Mapping) and "documents" in reference:
                reference = reference["documents"]
            documents = read_documents(reference)
            if documents is None:
                return Verdict.abstain(f"task {task.id}: neither a corpus nor documents in the reference")
            index = _index(tuple(documents.values()), self.n, self.plain)
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        text = plain_text(answer) if self.plain else answer
        # One character may stand for eighteen in Unicode's compatibility forms.
        if not self.min_chars <= len(text) <= self.max_chars:
            return Verdict.wrong(f"not between {self.min_chars} and {self.max_chars} characters")
        parts: dict[str, float | None] = {"quip": index.quip(text), "coverage": index.coverage(text)}
        score = parts[self.score] or 0.0
        passed = score >= self.threshold
        return Verdict(score, passed, parts, "" if passed else f"{self.score} {score:.3f} is below {self.threshold:g}")
