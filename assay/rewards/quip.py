"""How much of a response is quoted from a trusted corpus, as reward."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.extract import Fallback, Rule, extract
from assay.verify.grounding.bloom import BloomIndex
from assay.verify.grounding.documents import plain_text, read_documents
from assay.verify.grounding.ngrams import NGramIndex

FILTER = ".bloom"
"""Suffix of files that :meth:`assay.verify.grounding.bloom.BloomIndex.save` wrote."""


@part("reward", "quip")
@dataclass(frozen=True, slots=True)
class Quip:
    """R_i = (n-grams of characters of the response that are in the corpus) / (n-grams of the response), in [0, 1].

    Repetitions count. The corpus is the files of ``corpus``, else the documents of ``task.reference`` (a list, a
    mapping, one text, or ``{"documents": ...}``); a task that has neither has no reward. It is looked up exactly, at 8
    bytes for each distinct n-gram, or in a Bloom filter, at 1.44 log2(1 / error) bits: see
    :class:`~assay.verify.grounding.ngrams.NGramIndex` and :class:`~assay.verify.grounding.bloom.BloomIndex`. The
    verdict plays no part, but a sample whose verifier failed has no reward (verifier ``none`` is none).

    Source: QUIP of "According to ..." prompting (arXiv 2305.13252), as in Quote-Tuning (arXiv 2404.03862).

    Args:
        corpus: UTF-8 text files; or one filter saved as ``NAME.bloom``, whose n and plainness are those it was made
            with.
        n: characters of an n-gram.
        error: of the Bloom filter of ``corpus``; ``None`` looks up exactly.
        plain: kinds of quotes and dashes, case and white space do not matter, see
            :func:`~assay.verify.grounding.documents.plain_text`.
        short: what has fewer than n characters is worth 0, or has no reward (``leave_out``).
        rules, fallback: which part of the response counts, see :func:`~assay.verify.extract.extract`.

    Raises:
        UsageError: an option out of range, or a file that cannot be read.
    """

    corpus: tuple[Path, ...] = ()
    n: int = 25
    error: float | None = None
    plain: bool = True
    short: Literal["zero", "leave_out"] = "zero"
    rules: tuple[Rule, ...] = ("answer_tag",)
    fallback: Fallback = "whole"
    _shared: NGramIndex | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.n < 1 or not (self.error is None or 0 < self.error < 1):
            raise UsageError(f"reward 'quip': n {self.n} must be at least 1, error {self.error} between 0 and 1")
        if self.corpus:
            index = corpus_index(tuple(map(Path, self.corpus)), self.n, self.error, self.plain)
            object.__setattr__(self, "_shared", index)
            object.__setattr__(self, "n", index.n)

    def __call__(self, batch: Batch) -> Reward:
        quip, valid = torch.zeros_like(batch.rewards), judged(batch)
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            index = self._documents(task) if self._shared is None else self._shared
            answer = extract(episode.text, self.rules, self.fallback) or ""
            text = plain_text(answer) if self.plain else answer
            short = len(text) < self.n and self.short == "leave_out"
            valid[i] = bool(valid[i]) and index is not None and not short
            if index is not None and bool(valid[i]):
                quip[i] = index.quip(text)
        return Reward(quip, valid=valid, terms={"quip": quip})

    def _documents(self, task: Task) -> NGramIndex | None:
        reference = task.reference
        if isinstance(reference, Mapping) and "documents" in reference:
            reference = reference["documents"]
        documents = read_documents(reference)
        return None if documents is None else _index(tuple(documents.values()), self.n, self.plain)


@functools.lru_cache(maxsize=32)
def _index(texts: tuple[str, ...], n: int, plain: bool) -> NGramIndex:
    return NGramIndex((plain_text(text) if plain else text for text in texts), n)


@functools.lru_cache(maxsize=4)
def corpus_index(paths: tuple[Path, ...], n: int = 25, error: float | None = None, plain: bool = True) -> NGramIndex:
    """Return the index of a corpus, see :class:`Quip`. For a Bloom filter files are read twice, one at a time.

    Raises:
        UsageError: a file cannot be read.
    """
    if len(paths) == 1 and paths[0].suffix == FILTER:
        return BloomIndex.load(paths[0])

    def texts() -> Iterator[str]:
        for path in paths:
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as failure:
                raise UsageError(f"reward 'quip': a file of the corpus cannot be read: {failure}") from None
            yield plain_text(text) if plain else text

    if error is None:
        return NGramIndex(texts(), n)
    return BloomIndex(texts(), n, error, max(sum(max(len(text) - n + 1, 0) for text in texts()), 1))
