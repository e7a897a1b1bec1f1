"""How near an answer's meaning is to that of a reference: the cosine of their embeddings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.text import references

Embed = Callable[[list[str]], Any]


@part("reward", "embedding")
class EmbeddingSimilarity:
    """R_i = greatest cosine of the answer's embedding with one of the task's references, in [-1, 1].

    The answer is what stands in the last ``<answer>``, else the whole response; an empty one has similarity 0. A task
    without a reference that is a text has no reward.

    Args:
        embed: takes a list of n texts and returns ``(n, d)`` numbers; or the name or folder of a model of
            sentence-transformers. A vector of zeros is similar to nothing.

    Raises:
        UsageError: sentence-transformers is not installed.
        RunError: embeddings of another shape, or that are not finite.
    """

    def __init__(self, embed: Embed | str):
        self.embed: Embed = _model(embed) if isinstance(embed, str) else embed

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
        once = list(dict.fromkeys(texts))
        if not once:
            return {}
        found = np.asarray(self.embed(once), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(once) or not np.isfinite(found).all():
            raise RunError(f"reward 'embedding': embeddings of {len(once)} texts have shape {found.shape}, or NaN")
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        return dict(zip(once, found / np.where(norms > 0, norms, 1), strict=True))


def texts_of(task: Task) -> list[str]:
    """Return the task's references that are not blank."""
    return [text for text in references(task.reference) if text.strip()]


def answer_in(text: str) -> str:
    """Return what stands in the last ``<answer>...</answer>``, or else the whole text, without white space around."""
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return (found[-1] if found else text).strip()


def _model(name: str) -> Embed:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise UsageError(
            "reward 'embedding' needs sentence-transformers for a model by name: pip install sentence-transformers"
        ) from None
    encode: Embed = SentenceTransformer(name).encode
    return encode
