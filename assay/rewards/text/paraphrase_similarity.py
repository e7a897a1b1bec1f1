"""Rewards for saying what the responses to other wordings of the question say; and the similarities of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rollout.paraphrased import VIEW
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.text.compare import normalise
from assay.verify.text.overlap import bleu, f1, rouge_l
from assay.verify.text.text import tokens

Measure = Literal["bleu", "bleu_1", "bleu_2", "bleu_3", "rouge_l", "token_f1", "jaccard", "exact"]


def jaccard(reference: str, answer: str) -> float:
    """Return the share of the words of both that both have; 1 for two empty texts."""
    wanted, given = {*tokens(reference.lower())}, {*tokens(answer.lower())}
    return len(wanted & given) / len(wanted | given) if wanted | given else 1.0


MEASURES: dict[str, Callable[[str, str], float]] = {
    "bleu": bleu,
    **{f"bleu_{order}": partial(bleu, order=order) for order in (1, 2, 3)},
    "rouge_l": rouge_l,
    "token_f1": f1,
    "jaccard": jaccard,
    "exact": lambda reference, answer: float(normalise(reference) == normalise(answer)),
}


@part("reward", "group_similarity")
class GroupSimilarity:
    """R_i = mean similarity of response i to the responses to the other wordings of its question.

    With n wordings of g responses each, r_ij = 1/((n-1) g) sum_{u != i} sum_m sim(o_ij, o_um). With ``wordings`` and
    ``responses``, as many other wordings and responses to each are drawn for every response, without replacement: an
    unbiased estimate where wordings have equally many. Where a question has one wording only, a response is compared
    with the others to it; one that has nothing to be compared with has no reward. Samples whose verifier failed have
    none either, and nothing is compared with them.

    Source: PS-GRPO (arXiv 2510.04392).

    Args:
        measure: ``bleu`` (see :func:`bleu`; ``bleu_1`` to ``bleu_3`` stop at so many words in a row), ``rouge_l``,
            ``token_f1``, ``jaccard`` (of the sets of words) or ``exact``.
        wordings, responses: how many to compare with; ``None`` for all.
        rules, fallback: what of a response is compared, see :func:`~assay.verify.answer.extract.extract`.
        seed: of the draws.

    Raises:
        UsageError: a number below 1.
    """

    def __init__(
        self,
        measure: Measure = "bleu",
        wordings: int | None = None,
        responses: int | None = None,
        rules: tuple[Rule, ...] = RULES,
        fallback: Fallback = "whole",
        seed: int = 0,
    ):
        if any(many is not None and many < 1 for many in (wordings, responses)):
            raise UsageError("reward 'group_similarity': wordings and responses must be at least 1")
        self.similarity, self.wordings, self.responses = MEASURES[measure], wordings, responses
        self.rules, self.fallback, self.seed, self._drawn = rules, fallback, seed, 0

    def __call__(self, batch: Batch) -> Reward:
        rng = np.random.default_rng([self.seed, self._drawn])
        self._drawn += 1
        valid, values = judged(batch), torch.zeros_like(batch.rewards)
        texts = [extract(e.text, self.rules, self.fallback) or "" for e in batch.episodes]
        asked: dict[int, dict[int, list[int]]] = {}
        for i, (group, episode) in enumerate(zip(batch.prompt_group.tolist(), batch.episodes, strict=True)):
            if valid[i]:
                asked.setdefault(group, {}).setdefault(int(episode.meta.get(VIEW, 0)), []).append(i)
        for views in asked.values():
            for view, rows in views.items():
                for i in rows:
                    others = [more for v, more in views.items() if v != view] or [[j for j in rows if j != i]]
                    chosen = [j for more in drawn(others, self.wordings, rng) for j in drawn(more, self.responses, rng)]
                    if chosen:
                        values[i] = float(np.mean([self.similarity(texts[j], texts[i]) for j in chosen]))
                    else:
                        valid[i] = False
        return Reward(values, valid=valid, terms={"similarity": values})

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self._drawn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._drawn = int(state["drawn"])


def drawn(items: Sequence[Any], most: int | None, rng: np.random.Generator) -> list[Any]:
    """Return all items, or ``most`` of them drawn without replacement."""
    if most is None or most >= len(items):
        return list(items)
    return [items[int(k)] for k in rng.choice(len(items), most, replace=False)]


def consistency(outputs: Sequence[str], measure: Measure = "bleu") -> float:
    """Return the mean similarity of all pairs of outputs, both ways round: of a generator asked in several wordings.

    With the documents held fixed it is the generator's, with each wording's own documents the whole system's. 1 for a
    single output.
    """
    similarity = MEASURES[measure]
    pairs = [(similarity(a, b) + similarity(b, a)) / 2 for a, b in combinations(outputs, 2)]
    return float(np.mean(pairs)) if pairs else 1.0


def retrieval_consistency(documents: Sequence[Sequence[str]]) -> float:
    """Return the mean Jaccard index of all pairs of sets of retrieved documents; 1 for two empty sets or one set."""
    sets = [set(found) for found in documents]
    pairs = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(sets, 2)]
    return float(np.mean(pairs)) if pairs else 1.0
