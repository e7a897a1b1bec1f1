"""How much of a response is quoted from a trusted corpus, as reward."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.answer.extract import Fallback, Rule, extract
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
        rules, fallback: which part of the response counts, see :func:`~assay.verify.answer.extract.extract`.

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
        values, valid = [0.0] * len(batch), judged(batch).tolist()
        asked: dict[int, list[int]] = {}
        for i, prompt in enumerate(batch.prompt_group.tolist()):
            asked.setdefault(prompt, []).append(i)
        for rows in asked.values():
            index = self._documents(batch.tasks[rows[0]]) if self._shared is None else self._shared
            texts = [self._text(batch.episodes[i].text) for i in rows]
            shares = [0.0] * len(rows) if index is None else quips(index, texts)
            for i, text, share in zip(rows, texts, shares, strict=True):
                short = len(text) < self.n and self.short == "leave_out"
                valid[i] = valid[i] and index is not None and not short
                values[i] = share if valid[i] else 0.0
        quip = torch.tensor(values, dtype=batch.rewards.dtype)
        return Reward(quip, valid=torch.tensor(valid, dtype=torch.bool), terms={"quip": quip})

    def _text(self, response: str) -> str:
        answer = extract(response, self.rules, self.fallback) or ""
        return plain_text(answer) if self.plain else answer

    def _documents(self, task: Task) -> NGramIndex | None:
        reference = task.reference
        if isinstance(reference, Mapping) and "documents" in reference:
            reference = reference["documents"]
        documents = read_documents(reference)
        return None if documents is None else _index(tuple(documents.values()), self.n, self.plain)


def quips(index: NGramIndex, texts: Sequence[str]) -> list[float]:
    """Return the QUIP score of each text, as :meth:`NGramIndex.quip` does; looking up is one pass over them all."""
    hits = np.concatenate([[0], np.cumsum(index.found("".join(texts)))])
    out, start = list[float](), 0
    for text in texts:
        # Those that run from one text into the next are counted in neither.
        grams = len(text) - index.n + 1
        out.append(float(hits[start + grams] - hits[start]) / grams if grams > 0 else 0.0)
        start += len(text)
    return out


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
