"""How near an answer comes to a text: by the words that would have to be mended, and by the mean of three ROUGEs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.text.overlap import Overlap, rouge_l, rouge_words


@part("verify", "word_errors")
@dataclass(frozen=True, slots=True)
class WordErrors(Overlap):
    """max(0, 1 - WER) of a transcript, see :func:`word_error_rate`; options as :class:`Overlap`."""

    max_chars: int = 20_000

    def __call__(self, task: Task, response: str) -> Verdict:
        return self._judge(task, response, lambda r, a: max(0.0, 1 - word_error_rate(r, a)))


@part("verify", "rouge_mean")
@dataclass(frozen=True, slots=True)
class RougeMean(Overlap):
    """The mean of ROUGE-1, ROUGE-2 and ROUGE-L with a reference, F-measures; options as :class:`Overlap`."""

    def __call__(self, task: Task, response: str) -> Verdict:
        return self._judge(task, response, lambda r, a: (rouge_n(r, a, 1) + rouge_n(r, a, 2) + rouge_l(r, a)) / 3)


def word_error_rate(reference: str, answer: str) -> float:
    """Return the fewest words to be put in, taken out or replaced that make one text of the other, by the reference's
    number of words, which is at least one."""
    wanted, given = reference.split(), answer.split()
    codes = {word: i for i, word in enumerate(dict.fromkeys(wanted + given))}
    row, places = np.array([codes[word] for word in wanted]), np.arange(len(wanted) + 1)
    costs = places.copy()
    for word in given:
        kept = np.minimum(costs[1:] + 1, costs[:-1] + (row != codes[word]))
        costs = np.concatenate([costs[:1] + 1, kept])
        # What is left out of the reference costs one a word: the least of all that stand before.
        costs = np.minimum.accumulate(costs - places) + places
    return float(costs[-1]) / max(len(wanted), 1)


def rouge_n(reference: str, answer: str, n: int) -> float:
    """Return the F-measure of the runs of n words that both texts share (Lin 2004)."""
    wanted, given = (
        Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in map(rouge_words, (reference, answer))
    )
    shared = (wanted & given).total()
    return 2 * shared / (wanted.total() + given.total()) if shared else 0.0
