"""How likely the reference answer is: after the response's reasoning, after every step of it, or without it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.policies.tabular import path_of
from assay.registry import part
from assay.signals.answer_tokens import opened
from assay.signals.base import Models
from assay.signals.entropy_steps import EntropySteps
from assay.signals.scorer import loaded
from assay.signals.steps import Steps, decoder, token_ends
from assay.types import Episode, Task

After = Literal["reasoning", "nothing", "response", "steps", "tokens"]


@part("signal", "reference_likelihood")
@dataclass(frozen=True, slots=True)
class ReferenceLikelihood:
    """Signal ``(N, K, L)``: log pi(y*_j | x, prefix_k, open, y*_<j) of the reference y* after K prefixes of a response.

    y* takes the place of the response's own answer, where the task's verifier reads one: what follows a prefix is what
    opens that answer, y*, and what closes it, each tokenised by itself so that the borders do not move. With ``open``,
    those are ``open`` and ``close`` instead, whatever the verifier reads. Only the tokens of y* are told (with
    ``closed`` also those that close it). NaN where there is nothing: the response has no answer, the reference is empty
    or not a text or a number, or all together is longer than the model's context.

    Args:
        after: ``reasoning``: the response up to where its own answer opens (K = 1); ``nothing``: no token of the
            response (K = 1); ``response``: all of it, without its end-of-sequence token (K = 1); ``steps``: nothing,
            and then each step of the reasoning (K = 1 + most steps); ``tokens``: nothing, and then every ``every``
            tokens of the reasoning.
        open, close: what answers stand between; without ``open`` the verifier is asked. A response without an answer
            has no reasoning, unless ``required`` is false: it is then reasoning throughout, and nothing opens y*.
        closed: tell the tokens that close the answer too, so that a longer answer is not as good as one that ends.
        required: see ``open``.
        unfinished: whether a response that a limit cut off before its answer was closed has an answer.
        every: tokens between probes.
        steps: how steps are cut.
        model: ``policy``, as it stands before the update; ``reference``; or another model, see
            :func:`assay.signals.scorer.loaded`, which reads the texts of prompt and prefix in tokens of its own.
        temperature: divides the logits; that of sampling if ``None``.
        name: of the signal.
    """

    after: After = "reasoning"
    open: str | None = None
    close: str = "</answer>"
    closed: bool = False
    required: bool = True
    unfinished: bool = True
    every: int = 16
    steps: Steps | EntropySteps = field(default_factory=Steps)
    model: Any = "policy"
    temperature: float | None = None
    name: str = "reference_likelihood"

    whole = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", loaded(self.model, self.name))

    @property
    def models(self) -> frozenset[str]:
        return frozenset({self.model} if isinstance(self.model, str) else ())

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N K L"]:
        if not isinstance(self.model, str):
            return self._elsewhere(batch, models)
        at, what, told = self.plan(batch, models)
        return self.laid_out(models.continuations(batch, at, what, self.model, self.temperature), told)

    def _elsewhere(self, batch: Batch, models: Models) -> Float[Tensor, "N K L"]:
        """As another model tells it, to which prompt and prefix are one text."""
        there, decode = replace(models, policy=self.model), decoder(models)
        at, what, told = self.plan(batch, models, encoder(there))
        encode, context = encoder(there), getattr(self.model, "context", None)
        nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        places, heads = [], []
        for i, points in enumerate(at):
            for k, point in enumerate(points):
                said = encode(decode(batch.episodes[i].tokens[:point].tolist()))
                head = np.concatenate([self.model.encode(batch.tasks[i].prompt), said])
                if context is None or len(head) + len(what[i][k]) <= context:
                    places.append((i, k))
                    heads.append(head)
        size = max(map(len, at), default=0), max((len(w) for row in what for w in row), default=0)
        out = torch.full((len(batch), *size), torch.nan, dtype=batch.logprobs.dtype)
        if places:
            asked = batch.rows(torch.tensor([i for i, _ in places]))
            asked.episodes = [
                replace(e, prompt=head, tokens=nothing, mask=none, spans=())
                for e, head in zip(asked.episodes, heads, strict=True)
            ]
            texts = [[what[i][k]] for i, k in places]
            found = there.continuations(asked, [[0]] * len(places), texts, "policy", self.temperature)
            for (i, k), row in zip(places, found, strict=True):
                out[i, k, : row.shape[-1]] = row[0].to(out.dtype)
        return self.laid_out(out, told)

    @staticmethod
    def laid_out(found: Float[Tensor, "N K A"], told: list[tuple[int, int]]) -> Float[Tensor, "N K L"]:
        """Return of what was found of continuations the ranges that :meth:`plan` tells."""
        width = max((stop - start for start, stop in told), default=0)
        out = torch.full((*found.shape[:2], width), torch.nan, dtype=found.dtype)
        for i, (start, stop) in enumerate(told):
            out[i, :, : stop - start] = found[i, :, start:stop]
        return out

    def plan(
        self, batch: Batch, models: Models, other: Callable[[str], np.ndarray] | None = None
    ) -> tuple[list[list[int]], list[list[np.ndarray]], list[tuple[int, int]]]:
        """Return after how many tokens to probe, with which tokens, and the range of them that is told.

        Args:
            batch, models: as for the call.
            other: how another model writes a text; whether it has room is then left open.
        """
        policy: Any = models.policy
        at, what, told = [], [], []
        context = getattr(policy, "context", None) if other is None else None
        texts: dict[str, np.ndarray] = {}
        encode = other or encoder(models)

        def ids(text: str) -> np.ndarray:
            if text not in texts:
                texts[text] = encode(text)
            return texts[text]

        for episode, task in zip(batch.episodes, batch.tasks, strict=True):
            reference, points = text_of_reference(task), self.points(episode, task, models)
            start = stop = 0
            tokens = np.zeros(0, dtype=np.int64)
            if reference and points:
                before, behind = self.frame(episode, task, models)
                head, body, tail = ids(before), ids(reference), ids(behind)
                start, stop = len(head), len(head) + len(body) + len(tail) * self.closed
                tokens = np.concatenate([head, body, tail])[:stop]
                room = None if context is None else context - len(episode.prompt) - len(tokens)
                points = [p for p in points if room is None or p <= room]
            at.append(points if stop else [])
            what.append([tokens] * len(at[-1]))
            told.append((start, stop) if at[-1] else (0, 0))
        return at, what, told

    def frame(self, episode: Episode, task: Task, models: Models) -> tuple[str, str]:
        """Return what opens and what closes the reference: as in the response, unless ``open`` says what."""
        if self.open is not None:
            return self.open, self.close
        text = decoder(models)(episode.tokens.tolist())
        place = None if self.after == "response" else models.answer(task, text)
        return ("", "") if place is None else (text[place.begin : place.start], text[place.end : place.over])

    def points(self, episode: Episode, task: Task, models: Models) -> list[int]:
        """Return after how many of the episode's tokens to probe; none if it has no reasoning where one is wanted."""
        if self.after == "nothing":
            return [0]
        tokens = episode.tokens.tolist()
        end = len(tokens) - (episode.stop == "eos")
        if self.after == "response":
            return [end]
        decode = decoder(models)
        place = opened(task, decode(tokens), self.open, self.close, models)
        if place is not None and episode.truncated and place.over <= place.end and not self.unfinished:
            place = None
        if place is None and self.required:
            return []
        if place is not None:
            ends = token_ends(tokens, decode)
            end = bisect_left(range(len(tokens)), place.begin + 1, key=ends)
        if self.after == "reasoning":
            return [end]
        if self.after == "tokens":
            return sorted({*range(0, end, self.every), end})
        return sorted({0, *(min(span.end, end) for span in self.steps.of(episode, decode) if span.start < end)})


def encoder(models: Models) -> Callable[[str], np.ndarray]:
    """Return how the policy writes a text, without an end; as a path, where it is no language model."""
    encode: Any = getattr(models.policy, "encode_response", None)
    if encode is None:
        return lambda text: np.asarray(path_of(text) or (), dtype=np.int64)
    return lambda text: np.asarray(encode(text, end=False), dtype=np.int64)


def text_of_reference(task: Task) -> str:
    """The reference answer as text; empty where it is something else than a text or a number."""
    reference = task.reference
    if isinstance(reference, bool) or not isinstance(reference, str | int | float):
        return ""
    return str(reference).strip()


def mean_probability(logprobs: Float[Tensor, "... L"]) -> Float[Tensor, "..."]:
    """Mean over a reference's tokens of their probability; NaN where there is none."""
    return logprobs.exp().nanmean(-1)


def total_logprob(logprobs: Float[Tensor, "... L"]) -> Float[Tensor, "..."]:
    """Log-probability of a reference as a whole; NaN where there is none."""
    known = ~logprobs.isnan()
    return torch.where(known.any(-1), torch.where(known, logprobs, 0).sum(-1), torch.nan)


def mean_logprob(logprobs: Float[Tensor, "... L"]) -> Float[Tensor, "..."]:
    """Mean over a reference's tokens of their log-probability; NaN where there is none."""
    return logprobs.nanmean(-1)
