"""How sure the policy is of its final answer, as reward: no verifier is asked, and no other model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.ops import row_mean
from assay.registry import build, part
from assay.rewards.judged import judged
from assay.signals.answer_tokens import AnswerTokens


@part("reward", "confidence")
@dataclass(frozen=True, slots=True)
class Confidence:
    r"""R_i = mean over the tokens of the final answer of pi(y_t | x, y_<t); 0 for a response without an answer.

    With ``over="response"`` the mean is over all learnable tokens. Where the log-probabilities asked for are not known
    (those of another author's tokens, as ``sampled``) there is no reward; nor where a verifier abstained, though its
    verdict plays no part (verifier ``none`` is none).

    Terms: ``confidence``, ``answered``.

    Source: Confidence as a Reward (arXiv 2510.13501), section 3.1.

    Args:
        over: see above.
        source: of the probabilities, all after the temperature of sampling: ``sampled``, as the response was generated
            (no pass is made); ``policy``, as it stands before the update; ``reference``.
        answer: which tokens are the answer's, see :class:`~assay.signals.answer_tokens.AnswerTokens`.
    """

    over: Literal["answer", "response"] = "answer"
    source: Literal["sampled", "policy", "reference"] = "sampled"
    answer: Any = field(default_factory=AnswerTokens)

    def __post_init__(self) -> None:
        if isinstance(self.answer, dict):
            object.__setattr__(self, "answer", build("signal", {"name": "answer_tokens", **self.answer}))

    @property
    def needs(self) -> frozenset[Any]:
        passes = set() if self.source == "sampled" else {f"{self.source}_logprobs"}
        return frozenset({self.answer, *passes})

    def __call__(self, batch: Batch) -> Reward:
        logs = batch.logprobs if self.source == "sampled" else batch.signals[f"{self.source}_logprobs"]
        found = batch.signals[self.answer.name]
        tokens = found if self.over == "answer" else batch.mask
        unknown = (logs.isnan() & tokens).any(1)
        means = row_mean(logs.exp(), tokens)[:, 0]
        values = torch.where(unknown, 0, means).to(batch.rewards.dtype)
        terms = {"confidence": values, "answered": found.any(1).to(values.dtype)}
        return Reward(values, valid=judged(batch) & ~unknown, terms=terms)
