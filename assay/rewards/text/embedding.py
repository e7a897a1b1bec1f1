"""How near an answer's meaning is to that of a reference: the cosine of their embeddings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.embeddings import MINILM, Embed, embedding, unit_vectors
from assay.types import Task
from assay.verify.text.text import references


@part("reward", "embedding")
class EmbeddingSimilarity:
    """R_i = greatest cosine of the answer's embedding with one of the task's references, in [-1, 1].

    The answer is what stands in the last ``<answer>``, else the whole response; an empty one has similarity 0. A task
    without a reference that is a text has no reward.

    Args:
        embed: takes a list of n texts and returns ``(n, d)`` numbers; or the name or folder of a model, see
            :func:`assay.signals.embeddings.embedding`. A vector of zeros is similar to nothing.

    Raises:
        UsageError: sentence-transformers is not installed, or has no such model.
        RunError: embeddings of another shape, or that are not finite.
    """

    def __init__(self, embed: Embed | str = MINILM):
        self.embed = embedding(embed)

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        pairs = []
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            wanted, answer = texts_of(task), answer_in(episode.text)
            valid[i] = bool(valid[i]) and bool(wanted)
            if wanted and answer:
                pairs.append((i, answer, wanted))
        known = self.vectors([text for _, answer, wanted in pairs for text in (answer, *wanted)])
        for i, answer, wanted in pairs:
            values[i] = max(float(known[answer] @ known[text]) for text in wanted)
        return Reward(values, valid=valid, terms={"embedding": values})

    def vectors(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the embedding of each text, of length 1; each is embedded once."""
        return unit_vectors(self.embed, list(texts))


def texts_of(task: Task) -> list[str]:
    """Return the task's references that are not blank."""
    return [text for text in references(task.reference) if text.strip()]


def answer_in(text: str) -> str:
    """Return what stands in the last ``<answer>...</answer>``, or else the whole text, without white space around."""
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return (found[-1] if found else text).strip()
