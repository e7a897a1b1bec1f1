"""How much of a reference an answer shares: token F1, ROUGE-L and chrF, each of one sentence."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.text.text import normalised, references, tokens


@dataclass(frozen=True, slots=True)
class Overlap(Marked):
    """The largest similarity to any reference; passed iff it is at least ``threshold``.

    Args:
        threshold: in (0, 1].
        max_chars: a longer answer is wrong without being compared; a longer reference makes the verifier abstain.
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.

    Raises:
        UsageError: when made, for a threshold outside (0, 1].
    """

    threshold: float = 0.5
    max_chars: int = 100_000
    rules: tuple[Rule, ...] = RULES
    fallback: Fallback = "whole"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise UsageError(f"an overlap verifier's threshold {self.threshold} must be in (0, 1]")

    def _judge(self, task: Task, response: str, similarity: Callable[[str, str], float]) -> Verdict:
        accepted = references(task.reference)
        if not any(r.strip() for r in accepted):
            return Verdict.abstain(f"task {task.id} has no reference to compare with")
        if max(map(len, accepted)) > self.max_chars:
            return Verdict.abstain(f"task {task.id}: a reference is longer than {self.max_chars} characters")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"the answer is longer than {self.max_chars} characters")
        score = max(similarity(r, answer) for r in accepted)
        # A mean of equal numbers may come out a rounding error above 1.
        score = min(score, 1.0)
        passed = score >= self.threshold
        return Verdict(score, passed, {}, "" if passed else f"overlap {score:.3f} is below {self.threshold:g}")


@part("verify", "token_f1")
@dataclass(frozen=True, slots=True)
class TokenF1(Overlap):
    """F1 of the words shared with a reference, after SQuAD's normalisation, see :func:`f1`.

    Options are those of :class:`Overlap`.
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        return self._judge(task, response, f1)


@part("verify", "rouge_l")
@dataclass(frozen=True, slots=True)
class RougeL(Overlap):
    """ROUGE-L F-measure with a reference, see :func:`rouge_l`; options as :class:`Overlap`.

    Args:
        words: ``unicode``: words of letters and digits of any script; ``ascii``: of a-z and 0-9 only, as the
            ``rouge-score`` package counts.
    """

    words: Literal["unicode", "ascii"] = "unicode"

    def __call__(self, task: Task, response: str) -> Verdict:
        return self._judge(task, response, lambda r, a: rouge_l(r, a, self.words))


@part("verify", "chrf")
@dataclass(frozen=True, slots=True)
class ChrF(Overlap):
    """chrF with a reference, in [0, 1], see :func:`chrf`; options as :class:`Overlap`.

    Args:
        word_order: longest word n-gram; 2 makes it chrF++.
        ignore_case: compare lower-case.
    """

    word_order: int = 0
    ignore_case: bool = False

    def __call__(self, task: Task, response: str) -> Verdict:
        def similarity(reference: str, answer: str) -> float:
            if self.ignore_case:
                reference, answer = reference.lower(), answer.lower()
            return chrf(reference, answer, word_order=self.word_order)

        return self._judge(task, response, similarity)


def f1(reference: str, answer: str) -> float:
    """Return ``2 P R / (P + R)`` over the multiset of words both share; scripts without blanks count characters."""
    wanted, given = tokens(normalised(reference)), tokens(normalised(answer))
    return _f(sum((Counter(wanted) & Counter(given)).values()), len(wanted), len(given))


def rouge_l(reference: str, answer: str, words: Literal["unicode", "ascii"] = "unicode") -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004, equations 2 to 4, beta = 1)."""
    wanted, given = rouge_words(reference, words), rouge_words(answer, words)
    return _f(common_subsequence(wanted, given), len(wanted), len(given))


def rouge_words(text: str, words: Literal["unicode", "ascii"] = "unicode") -> list[str]:
    """Return the words by which ROUGE compares a text."""
    if words == "ascii":
        return _ASCII.findall(text.lower())
    return tokens(" ".join(_WORD.findall(text.lower())))


_ASCII = re.compile(r"[a-z0-9]+")
_WORD = re.compile(r"[^\W_]+")


def common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, in ``len(left) * len(right) / wordsize`` steps.

    Bit i of the state is 0 where the subsequence grows at ``left[i]`` (Hyyrö 2004, bit-parallel LCS).
    """
    where: dict[str, int] = {}
    for i, item in enumerate(left):
        where[item] = where.get(item, 0) | 1 << i
    full = (1 << len(left)) - 1
    state = full
    for item in right:
        if match := state & where.get(item, 0):
            state = ((state + match) | (state - match)) & full
    return len(left) - state.bit_count()


def chrf(reference: str, answer: str, char_order: int = 6, word_order: int = 0, beta: float = 2.0) -> float:
    """Return chrF (Popović 2015), with ``word_order`` 2 chrF++ (Popović 2017), as sacrebleu defines it for a sentence.

    Precision and recall of character n-grams (white space removed) and word n-grams, averaged over the orders for which
    both texts have n-grams, then ``(1 + beta^2) P R / (beta^2 P + R)``.
    """
    precision = recall = 0.0
    orders = 0
    streams: list[tuple[Sequence[str], Sequence[str], int]] = [
        ("".join(reference.split()), "".join(answer.split()), char_order),
        (_words(reference), _words(answer), word_order),
    ]
    for wanted, given, order in streams:
        for n in range(1, order + 1):
            there, here = len(wanted) - n + 1, len(given) - n + 1
            if there <= 0 or here <= 0:
                continue
            shared = sum((_ngrams(wanted, n) & _ngrams(given, n)).values())
            precision, recall, orders = precision + shared / here, recall + shared / there, orders + 1
    if not orders or not precision or not recall:
        return 0.0
    precision, recall = precision / orders, recall / orders
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def _ngrams(items: Sequence[str], n: int) -> Counter[object]:
    if isinstance(items, str):
        return Counter(items[i : i + n] for i in range(len(items) - n + 1))
    return Counter(tuple(items[i : i + n]) for i in range(len(items) - n + 1))


def _words(text: str) -> list[str]:
    """Return the words with one punctuation mark split off: at the end, else at the beginning (chrF++)."""
    found = []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            found += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def _f(shared: int, wanted: int, given: int) -> float:
    return 2 * shared / (wanted + given) if shared else 0.0


def bleu(reference: str, answer: str, order: int = 4) -> float:
    """Return BLEU of one sentence: the brevity penalty times the geometric mean of n-gram precisions up to ``order``.

    Precisions above single words have one added to numerator and denominator; orders for which the answer is too short
    are left out. Words are lower case. 0 where no word is shared.
    """
    wanted, given = _word_grams(reference, order), _word_grams(answer, order)
    logs = []
    for n, (here, there) in enumerate(zip(given, wanted, strict=True), 1):
        if not here:
            break
        shared, extra = (here & there).total(), int(n > 1)
        if n == 1 and not shared:
            return 0.0
        logs.append(math.log((shared + extra) / (here.total() + extra)))
    if not logs:
        return 0.0
    return math.exp(min(0.0, 1 - wanted[0].total() / given[0].total()) + sum(logs) / len(logs))


@lru_cache(maxsize=1024)
def _word_grams(text: str, order: int) -> tuple[Counter[tuple[str, ...]], ...]:
    """The n-grams of words of a text, which is compared with many, for n from 1 to ``order``."""
    words = tokens(text.lower())
    return tuple(Counter(zip(*(words[k:] for k in range(n)), strict=False)) for n in range(1, order + 1))
