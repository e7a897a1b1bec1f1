"""A reward for the phrases that reasoning is made of, whatever they are used for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.outcome.vote import Ballot
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.verify.answer.extract import Fallback, Rule

PLANS = (
    *("i need to", "we need to", "let's focus on", "let us first", "let's first", "let me first"),
    *("first, ", "firstly, ", "next, ", "finally, "),
)
CHECKS = (
    *("wait", "alternatively", "let me check", "let me see", "let me try", "let's try", "let us try", "try again"),
    *("still not", "not working", "not correct", "does not work", "doesn't work", "makes sense"),
)
INFERENCES = (
    *("we know that", "we can observe ", "we can see ", "since we ", "because we ", "if we", "given there "),
    *("consequently", "as a result", "thus", "therefore", "hence", "so that", "thereby"),
    *("for instance ", "for example "),
)
PHRASES = (*PLANS, *CHECKS, *INFERENCES)


@part("reward", "reasoning_patterns")
class ReasoningPatterns:
    """R_i = max(0, min(1, c_i / full) - rep_i - u_i), of the response in lower case; correctness plays no part.

    c_i counts the phrases that occur at least once, rep_i is the number of distinct ``ngram``-word sequences that occur
    more than once divided by the number of places where one begins, and u_i the number of times that the response has
    ``user: `` in it, by which it goes on to questions of its own. A response in which no answer is found has R_i = 0.

    Source: reasoning pattern reward, "The Climb Carves Wisdom Deeper Than the Summit" (arXiv 2505.22653), and its
    authors' code; one of their phrases is misspelled there and not here.

    Args:
        phrases: in lower case.
        full: how many of them are worth 1.
        ngram: words.
        rules, fallback: where an answer stands, see :class:`~assay.rewards.outcome.vote.Ballot`.

    Raises:
        UsageError: no phrases, ``full`` not above 0, or ``ngram`` below 1.
    """

    def __init__(
        self,
        phrases: Sequence[str] = PHRASES,
        full: float = 20.0,
        ngram: int = 20,
        rules: tuple[Rule, ...] | None = None,
        fallback: Fallback = "line",
    ):
        if isinstance(phrases, str) or not phrases or not all(phrases) or full <= 0 or ngram < 1:
            raise UsageError("reward 'reasoning_patterns': needs a list of phrases, full above 0 and ngram at least 1")
        self.phrases, self.full, self.ngram = tuple(p.lower() for p in phrases), full, ngram
        self.ballot = Ballot(rules, fallback)

    def __call__(self, batch: Batch) -> Reward:
        scores = [
            self.score(episode.text) if answer else 0.0
            for episode, answer in zip(batch.episodes, self.ballot.answers(batch), strict=True)
        ]
        values = torch.tensor(scores, dtype=batch.rewards.dtype)
        return Reward(values, valid=judged(batch), terms={"patterns": values})

    def score(self, response: str) -> float:
        """Return the reward of one response that has an answer."""
        text = response.lower()
        hits = sum(phrase in text for phrase in self.phrases)
        return max(0.0, min(1.0, hits / self.full) - repetition(text.split(), self.ngram) - text.count("user: "))


@part("reward", "calibrated")
class Calibrated(Around):
    """R_i = r_i where r_i >= threshold, else min(r_i + weight s_i, 1), s of a second part: a wrong "wrong" costs less.

    Where a verifier misses right answers, sound reasoning then earns something all the same. Kept below the worth of a
    right answer by ``weight``.

    Source: calibration of noisy reward models in arXiv 2505.22653, and its authors' code.

    Args:
        inner: the reward r.
        instead: the second part (``reasoning_patterns`` by default).
        threshold: see above.
        weight: of the second part's reward.
    """

    def __init__(
        self,
        inner: Any = "verdict",
        instead: Any = "reasoning_patterns",
        threshold: float = 0.5,
        weight: float = 0.1,
    ):
        super().__init__({"raw": inner, "instead": instead})
        self.threshold, self.weight = threshold, weight

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        raw, instead = found["raw"], found["instead"].values
        mended = (raw.values + self.weight * instead).clamp(max=1)
        values = torch.where(raw.values >= self.threshold, raw.values, mended)
        return Reward(values, raw.tokens, valid_in(found, batch), terms_of(found))


def repetition(words: Sequence[str], n: int) -> float:
    """Return how many distinct n-grams occur more than once, divided by the number of n-grams; 0 for short texts."""
    grams = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    return sum(count > 1 for count in grams.values()) / max(grams.total(), 1)
