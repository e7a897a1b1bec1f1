"""A reward that is shown what stands behind the thinking, and nothing of the thinking."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.wrapped import Around, terms_of, valid_in

Missing = Literal["empty", "whole"]


@part("reward", "answer_only")
class AnswerOnly(Around):
    """R_i = the inner reward of the text behind the first ``delimiter``, and before the ``end`` if there is one.

    Where the delimiter is missing, the ``whole`` response up to the ``end`` is shown, or in strict mode an ``empty``
    one, which a judge of answers thinks little of; so it is there where the ``end`` is missing. Rewards that read
    tokens see them as they are. A sample whose verifier failed has no reward. Terms: those of the inner reward, and
    ``answered``, 1 where the delimiter is there.

    Source: RLMT (arXiv 2509.20357) and its authors' code.

    Args:
        inner: what :func:`assay.rewards.spec.reward_of` takes, such as ``preference_model``.
        delimiter, end: tags; no ``end`` shows all the rest.
        missing: see above.

    Raises:
        UsageError: no delimiter.
    """

    def __init__(
        self, inner: Any = "preference_model", delimiter: str = "</think>", end: str = "", missing: Missing = "empty"
    ):
        if not delimiter:
            raise UsageError("reward 'answer_only': name the delimiter that the answer stands behind")
        super().__init__({"inner": inner})
        self.delimiter, self.end, self.missing = delimiter, end, missing

    def shown(self, response: str) -> str:
        """Return what the inner reward sees of a response."""
        before, found, behind = response.partition(self.delimiter)
        answer = behind if found else before
        strict = self.missing == "empty"
        if strict and (not found or self.end not in answer):
            return ""
        answer = answer.partition(self.end)[0] if self.end else answer
        return answer.strip() if found or answer != response else response

    def __call__(self, batch: Batch) -> Reward:
        episodes = [replace(e, text=self.shown(e.text)) for e in batch.episodes]
        found = self.found(replace(batch, episodes=episodes))
        reward = found["inner"]
        answered = torch.tensor([self.delimiter in e.text for e in batch.episodes], dtype=batch.rewards.dtype)
        terms = {**terms_of(found), "answered": answered}
        return Reward(reward.values, reward.tokens, valid_in(found, batch) & judged(batch), terms)
