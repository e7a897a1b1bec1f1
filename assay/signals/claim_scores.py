"""What an answer on a claim is worth, read from what the policy itself wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.signals.base import Models
from assay.signals.steps import Decode, decoder
from assay.types import Episode, Task
from assay.verify.grounding.claims import LABELS, read_answer, score_claim

COLUMNS = ("label", "validity", "iou", "form", "unknown")
SHOWN = "information"
TAGS = re.compile(rf"<(/?)(plan|search|think|answer|{SHOWN})>")


@dataclass(frozen=True, slots=True)
class ClaimScores:
    """Signal ``claim_scores`` ``(N, 5)``: label, validity, overlap (IoU) and form of each response, and whether its
    task's label is NOT ENOUGH INFO; NaN where a task is no claim.

    The first three are those of :class:`assay.verify.grounding.claims.ClaimScore` of the last ``<answer>``, the fourth
    is :func:`well_formed`. Only what the policy wrote is read: a document may have such tags in it.
    """

    name = "claim_scores"
    whole = True

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N 5"]:
        decode = decoder(models)
        rows = [
            columns(task.reference, pieces(episode, decode)) if is_claim(task) else [torch.nan] * len(COLUMNS)
            for task, episode in zip(batch.tasks, batch.episodes, strict=True)
        ]
        return torch.tensor(rows, dtype=batch.rewards.dtype).reshape(len(batch), len(COLUMNS))


def is_claim(task: Task) -> bool:
    """Whether a task's reference is ``{"label": ..., "evidence": [ids]}``."""
    return isinstance(task.reference, Mapping) and task.reference.get("label") in LABELS


def columns(reference: Mapping[str, Any], said: Sequence[tuple[str, bool]]) -> list[float]:
    """Return :data:`COLUMNS` of one response.

    Args:
        reference: of a claim.
        said: see :func:`pieces`.
    """
    label, cited = read_answer("\n".join(text for text, own in said if own))
    found = score_claim(label, cited, reference)
    return [found.label, found.validity, found.iou, float(well_formed(said)), float(found.unknown)]


def pieces(episode: Episode, decode: Decode) -> list[tuple[str, bool]]:
    """Return a response as texts in order, each with whether the policy wrote it."""
    borders = [0, *(np.flatnonzero(np.diff(episode.mask)) + 1).tolist(), len(episode.tokens)]
    return [(decode(episode.tokens[a:b].tolist()), bool(episode.mask[a])) for a, b in pairwise(borders) if a < b]


def well_formed(said: Sequence[tuple[str, bool]]) -> bool:
    """Return whether a response has the form of a verification.

    - In what the policy wrote, ``plan``, ``think``, ``search`` and ``answer`` are opened and closed one after the other
      within a turn, none inside another.
    - There is one ``answer``, and no tag after it.
    - What was found (``information``) is not its own word: it comes from the environment, after a ``</search>`` that
      ends a turn, and the next tag is ``<think>``.
    """
    marks: list[str] = []
    for text, own in said:
        if own:
            found = list(_marks(text))
            if SHOWN in " ".join(found) or not _flat(found):
                return False
            marks += found
        elif f"<{SHOWN}>" in text:
            if not marks or marks[-1] != "/search":
                return False
            marks.append(SHOWN)
    after = [b for a, b in pairwise(marks) if a == SHOWN]
    return (
        marks[-2:] == ["answer", "/answer"]
        and marks.count("answer") == 1
        and marks[-1] != SHOWN
        and all(mark == "think" for mark in after)
    )


def _marks(text: str) -> Iterator[str]:
    return (slash + name for slash, name in TAGS.findall(text))


def _flat(marks: Sequence[str]) -> bool:
    """Whether tags are opened and closed in turn."""
    return len(marks) % 2 == 0 and all(
        not a.startswith("/") and b == f"/{a}" for a, b in zip(marks[::2], marks[1::2], strict=True)
    )
