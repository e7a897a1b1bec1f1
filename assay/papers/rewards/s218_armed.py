"""S218: open-ended answers rewarded by their words and by their meaning, the latter stretched so that it tells."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.rewards.judged import judged
from assay.rewards.shaping.running_range import RunningRange
from assay.rewards.shaping.weighted import WeightedSum
from assay.rewards.text.embedding import EmbeddingSimilarity, answer_in, texts_of
from assay.verify.text.overlap import chrf
from assay.verify.text.text import normalised, tokens

_BLOCK = r"(?:(?!</?(?:think|answer)>).)*"
FORM = re.compile(rf"\s*<think>{_BLOCK}</think>\s*<answer>{_BLOCK}</answer>\s*", re.DOTALL)


@paper(
    "S218",
    "ARMed",
    arxiv="2508.12957",
    seams=["verify", "reward"],
    essentials={
        "the sum of form, textual correctness and a semantic reward": "test_terms_add_up",
        "the semantic reward is of a model's similarity to the reference": (
            "test_meaning_comes_from_the_model_that_is_given"
        ),
        "it adapts: differences about a quantile of past similarities are spread by an S-shaped map": (
            "test_the_worked_example"
        ),
        "the band is followed as it moves with the policy": "test_it_follows_the_band_and_remembers_so_much",
        "discriminability of rewards": "test_discriminability_by_hand",
        "in training the spread band leads to right answers, the plain one does not": (
            "test_a_spread_band_teaches_what_a_narrow_one_does_not"
        ),
    },
    choices=(
        "weights of form, text and meaning: 1 each",
        "textual correctness: the mean of BLEU-1 and F1 of words, 1 for equal texts",
        "the threshold: the median of the last 2,048 similarities; the map a sigmoid of slope 10 over the band from "
        "their 5% to their 95% quantile",
    ),
    lacks="the paper's own constants and weights, pictures, and its stage of reinforcement learning before the "
    "fine-tuning; without a model chrF stands in for it",
)
def armed(
    embed: Any = None,
    form: float = 1.0,
    text: float = 1.0,
    semantic: float = 1.0,
    threshold: float = 0.5,
    low: float = 0.05,
    high: float = 0.95,
    slope: float = 10.0,
    memory: int = 2048,
) -> Method:
    """GRPO for open-ended answers with a reward for the reference's words and an adaptive one for its meaning.

        R_i     = form F_i + text T_i + semantic A(s_i)
        F_i     = 1 if the response is <think>...</think><answer>...</answer> and nothing else
        T_i     = 1 if the answer equals a reference but for case, punctuation and articles, else the greatest mean of
                  BLEU-1 and the F1 of words
        s_i     = similarity of answer and reference by a model, the greatest of all references
        A(s)    = sigmoid(slope (s - t) / (hi - lo)), t, lo and hi being quantiles of recent similarities

    Similarities of a model lie in a narrow band, so that answers of different meaning get almost the same reward
    ("reward collapse") and the other terms decide. A follows the band as it moves with the policy, see
    :class:`assay.rewards.shaping.running_range.RunningRange`; :func:`discriminability` measures how far right answers
    are from wrong ones. A task without a reference that is a text has no reward.

    Args:
        embed: a function from texts to vectors, or the name of a model of sentence-transformers, whose cosine is s, see
            :class:`assay.rewards.text.embedding.EmbeddingSimilarity`; without it, s is chrF, of character n-grams.
        form, text, semantic: weights.
        threshold, low, high, slope, memory: of A.

    Source: ARMed (arXiv 2508.12957), from a note on its text: a buffer of past rewards, a quantile of it as threshold
    and an S-shaped map; BLEU-1 and ROUGE-1 for the words, a model's similarity for the meaning; reinforcement learning,
    fine-tuning on chains of thought, reinforcement learning. Its constants, T and the weights are choices.
    """
    similarity: Any = Likeness() if embed is None else EmbeddingSimilarity(embed)
    spread = RunningRange(similarity, threshold, low, high, slope, memory)
    terms = {"form": Formed(), "text": Wording(), "semantic": spread}
    return Method(reward=WeightedSum(terms, {"form": form, "text": text, "semantic": semantic}))


@dataclass(frozen=True, slots=True)
class Formed:
    """F of :func:`armed`."""

    def __call__(self, batch: Batch) -> Reward:
        found = [FORM.fullmatch(e.text) is not None for e in batch.episodes]
        return Reward(torch.tensor(found, dtype=batch.rewards.dtype), valid=judged(batch))


@dataclass(frozen=True, slots=True)
class Wording:
    """T of :func:`armed`; an empty answer has none of the words."""

    def __call__(self, batch: Batch) -> Reward:
        return compared(batch, wording)


@dataclass(frozen=True, slots=True)
class Likeness:
    """chrF of the answer with the reference, the greatest of all."""

    def __call__(self, batch: Batch) -> Reward:
        return compared(batch, chrf)


def compared(batch: Batch, similarity: Any) -> Reward:
    """Return the greatest similarity of each answer with its task's references; 0 for an empty answer."""
    values, valid = [0.0] * len(batch), judged(batch).tolist()
    for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
        wanted, answer = texts_of(task), answer_in(episode.text)
        valid[i] = valid[i] and bool(wanted)
        if wanted and answer:
            values[i] = max(similarity(text, answer) for text in wanted)
    return Reward(torch.tensor(values, dtype=batch.rewards.dtype), valid=torch.tensor(valid, dtype=torch.bool))


def wording(reference: str, answer: str) -> float:
    """Return how far an answer has the words of a reference, see T of :func:`armed`."""
    left, right = _plain(reference), _plain(answer)
    if left == right:
        return 1.0
    wanted, given = tokens(left), tokens(right)
    shared = (Counter(wanted) & Counter(given)).total()
    if not shared:
        return 0.0
    bleu = math.exp(min(0.0, 1 - len(wanted) / len(given))) * shared / len(given)
    f1 = 2 * shared / (len(wanted) + len(given))
    return (bleu + f1) / 2


_plain = lru_cache(maxsize=1024)(normalised)


def discriminability(rewards: Sequence[float], right: Sequence[bool]) -> float:
    """Return (mean of right answers - mean of wrong ones) / standard deviation of all; 0 where all are equal.

    Raises:
        UsageError: no right or no wrong answers.
    """
    values, mask = np.asarray(rewards, dtype=np.float64), np.asarray(right, dtype=bool)
    if len(values) != len(mask) or mask.all() or not mask.any():
        raise UsageError("discriminability needs rewards of right and of wrong answers")
    spread = values.std()
    return float((values[mask].mean() - values[~mask].mean()) / spread) if spread > 0 else 0.0


def _parts(text: float, meaning: float) -> dict[str, float]:
    return {"text": text, "meaning": meaning}


MEANING = {"name": "part", "part": "meaning"}


def _sum(meaning: Any) -> dict[str, Any]:
    terms = {"text": {"name": "part", "part": "text"}, "meaning": meaning}
    return {"name": "grpo", "reward": {"name": "weighted", "terms": terms}}


claims(
    Claim(
        paper="S218",
        text="Where similarities of right and wrong answers lie in one narrow band, stretching the band, beside a "
        "reward for the reference's words, leads to right answers more often than the plain similarity does.",
        setting="choices",
        evidence="construction",
        arms={"plain": _sum(MEANING), "adaptive": _sum({"name": "running_range", "inner": MEANING})},
        better="adaptive",
        baseline="plain",
        measure="right",
        options={
            # Right in words of its own; the reference's words with the wrong meaning; something else.
            "choices": [
                [[0.9, True, _parts(0.3, 0.94)], [0.1, False, _parts(0.1, 0.87)]],
                [[1.0, False, _parts(0.6, 0.89)]],
                [[0.8, False, _parts(0.0, 0.85)], [0.2, False, _parts(0.2, 0.86)]],
            ],
            "logits": [0.0, 1.0, 1.0],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
