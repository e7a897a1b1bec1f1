"""What a teacher says of the next token at every position of a response that it reads under another prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.policies.base import Policy
from assay.policies.combined.averaged import AveragedCopy
from assay.policies.combined.logit_sum import logit_sum
from assay.signals.base import Models, with_prompts
from assay.types import Prompt

Teacher = Literal["current", "initial", "averaged", "trust_region"]
Tokens = Literal["likeliest", "teachers", "drawn", "own"]


@runtime_checkable
class View(Protocol):
    """Says what the teacher reads each response under, ``None`` where there is nothing to show; hashable.

    Optional method: ``begun(batch) -> list[str]``, for each response the text that his own response to that prompt has
    begun with when he comes to read it.
    """

    def prompts(self, batch: Batch) -> list[Prompt | None]: ...


@dataclass(frozen=True)
class SecondView:
    """Signal ``teacher_logprobs`` ``(N, T, k)``: log q(c | x', y_<t) of k tokens c at every position of a response.

    x' is the prompt that ``view`` gives, y the response as the student sampled it: its ids are copied. The tokens are
    left in ``signals["candidates"]`` ``(N, T, k)``, where a live ``candidate_logprobs`` finds them, and in
    ``signals["shown"]`` ``(N,)`` whether there was anything to show. Where there was not, or where x' leaves no room
    for the response in the context, all of it is zero. Everything is at the temperature of sampling and as the policy
    stood before the step's first update.

    Args:
        view: what the teacher is shown, such as :class:`assay.rollout.reread.prompts.Hindsight`.
        teacher: the weights of q: ``current``, those of the policy; ``initial``, the policy when RL began;
            ``trust_region``, logits between these two. See :class:`AveragedView` for a fourth.
        k: tokens; of a vocabulary that has fewer, all.
        tokens: which: the ``likeliest`` under the student, or under the teacher (``teachers``); ``drawn`` from the
            teacher, who then is known by his samples alone; or the response's ``own``, with k = 1.
        share: of the current policy's logits in ``trust_region``, in [0, 1].

    Raises:
        UsageError: k below 1, k above 1 of a response's own tokens, or ``share`` out of range.
    """

    view: View
    teacher: Teacher = "current"
    k: int = 100
    tokens: Tokens = "likeliest"
    share: float = 0.05

    name = "teacher_logprobs"

    def __post_init__(self) -> None:
        if self.k < 1 or (self.tokens == "own" and self.k > 1):
            raise UsageError(f"a second view needs k of at least 1, and of 1 for a response's own tokens, not {self.k}")
        if not 0 <= self.share <= 1:
            raise UsageError(f"a second view: share {self.share:g} must lie in [0, 1]")

    @property
    def models(self) -> frozenset[str]:
        """The models of a run that it reads."""
        return frozenset({"reference"} if self.teacher in ("initial", "trust_region") else ())

    def by(self, models: Models) -> Policy:
        """Return the teacher."""
        if self.teacher == "current":
            return models.policy
        if models.reference is None:
            raise RunError("a second view reads the reference policy, which this run does not keep")
        if self.teacher == "initial":
            return models.reference
        return logit_sum([(models.reference, 1 - self.share), (models.policy, self.share)])

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T k"]:
        prompts = self.read_under(batch, models)
        shown = torch.tensor([float(p is not None) for p in prompts]).to(batch.rewards)
        batch.signals["shown"] = shown
        index = shown.nonzero()[:, 0]
        work = batch.rows(index)
        read = self.shown(work, [prompts[i] for i in index.tolist()])
        teacher = replace(models, policy=self.by(models))
        chosen = self.choose(work, read, models, teacher)
        read.signals = {"candidates": chosen}
        found = teacher.quantities(read, {"candidate_logprobs"})["candidate_logprobs"] if len(index) else None
        candidates = torch.zeros(*batch.tokens.shape, chosen.shape[-1], dtype=torch.int64)
        out = torch.zeros(candidates.shape, dtype=batch.logprobs.dtype)
        if found is not None:
            candidates[index, : chosen.shape[1]], out[index, : chosen.shape[1]] = chosen, found.to(out)
        batch.signals["candidates"] = candidates
        return out

    def read_under(self, batch: Batch, models: Models) -> list[np.ndarray | None]:
        """Return the token ids of each response's x', ``None`` where there is nothing to show or no room for it."""
        room, out = getattr(models.policy, "context", math.inf), list[np.ndarray | None]()
        begun: list[str] = getattr(self.view, "begun", lambda batch: [""] * len(batch))(batch)
        speaks: Any = models.policy if models.engine is None else models.engine
        for prompt, text, episode in zip(self.view.prompts(batch), begun, batch.episodes, strict=True):
            ids = None if prompt is None else np.asarray(models.encode(prompt), dtype=np.int64)
            if ids is not None and text:
                ids = np.concatenate([ids, speaks.encode_response(text, end=False)])
            fits = ids is not None and len(episode.tokens) > 0 and len(ids) + len(episode.tokens) <= room
            out.append(ids if fits else None)
        return out

    def shown(self, work: Batch, prompts: Sequence[np.ndarray | None]) -> Batch:
        """Return responses under the prompts that there are for all of them."""
        return with_prompts(work, [p for p in prompts if p is not None])

    def choose(self, work: Batch, read: Batch, models: Models, teacher: Models) -> Int[Tensor, "M T k"]:
        """Return the tokens of which both views are asked."""
        if self.tokens == "own" or not len(work):
            return work.tokens[..., None]
        generator = torch.Generator().manual_seed(int(models.rng.integers(2**62))) if self.tokens == "drawn" else None
        out: Tensor | None = None
        of, by = (work, models.policy) if self.tokens == "likeliest" else (read, teacher.policy)
        for rows in models.policy.micro_batches(of, models.token_budget):
            part = of.rows(rows)
            found = (
                by.candidates(part, self.k, models.temperature, generator)
                if self.tokens == "drawn"
                else by.likeliest(part, self.k)
            )
            if out is None:
                out = torch.zeros(*work.tokens.shape, found.shape[-1], dtype=torch.int64)
            out[rows, : found.shape[1]] = found
        assert out is not None
        return out


@dataclass(frozen=True)
class AveragedView(SecondView):
    """A second view whose teacher has weights phi of its own, a copy of the policy at first.

    After every ``every`` steps' updates phi <- (1 - rate) phi + rate theta, see
    :class:`~assay.policies.combined.averaged.AveragedCopy`. With ``rate`` 1 that is a copy: he is frozen in between.

    Args:
        rate: in [0, 1].
        every: steps, at least 1.
    """

    rate: float = 0.05
    every: int = 1
    _copy: AveragedCopy = field(default_factory=AveragedCopy, init=False, repr=False, compare=False)

    trains_model = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rate <= 1 or self.every < 1:
            raise UsageError(
                f"an averaged teacher needs a rate in [0, 1] and every of at least 1 step, not {self.rate:g} and "
                f"{self.every}"
            )

    @property
    def models(self) -> frozenset[str]:
        return frozenset()

    def by(self, models: Models) -> Policy:
        return self._copy.policy

    def start(self, models: Models) -> None:
        """Copy the policy."""
        self._copy.start(models.policy)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Move phi, if it is time; no metrics."""
        self._copy.follow(models.policy, self.rate, self.every)
        return {}

    def state_dict(self) -> dict[str, Any]:
        return self._copy.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._copy.load_state_dict(state)


def second_view(
    view: View,
    teacher: Teacher = "current",
    k: int = 100,
    tokens: Tokens = "likeliest",
    share: float = 0.05,
    rate: float = 0.05,
    every: int = 1,
) -> SecondView:
    """Return a second view by any of the teachers, see :class:`SecondView` and :class:`AveragedView`."""
    k = 1 if tokens == "own" else k
    if teacher == "averaged":
        return AveragedView(view, teacher, k, tokens, rate=rate, every=every)
    return SecondView(view, teacher, k, tokens, share)
