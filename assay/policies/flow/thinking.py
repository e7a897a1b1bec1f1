"""A language model and a flow as one policy: a thought in tokens, and then a drawing that reads it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from assay.batch import Batch, pad
from assay.errors import UsageError
from assay.policies.base import PolicyOutput
from assay.policies.flow.policy import PIXELS, FlowPolicy
from assay.policies.flow.samples import DRAWN, split
from assay.types import Episode, Prompt

LANGUAGE, FLOW = "language", "flow"
STEP = 2**40
"""The first of the ids that stand for a drawing's decisions; those before it are a thought's tokens."""


class ThinkingFlow:
    """Writes a thought, and draws what follows from prompt and thought: decisions of two kinds in one response.

    A response's tokens are the thought's and then :data:`STEP` onwards, one for each noisy step; its text is the
    thought, :data:`~assay.policies.flow.samples.DRAWN` and the sample. Of a demonstration the last token stands for
    the sample, as of :class:`~assay.policies.flow.policy.FlowPolicy`.

    Args:
        language: writes thoughts.
        flow: draws; it reads a prompt.
    """

    quantities = frozenset({"step_mean", "step_deviation"})
    engine = "thinking_flow"
    draws = True
    adapter = None

    def __init__(self, language: Any, flow: FlowPolicy):
        self.language, self.flow = language, flow
        self.module: Any = torch.nn.ModuleDict({LANGUAGE: language.module, FLOW: flow.module})
        self.context: int = language.context
        self.config = flow.config

    @property
    def model(self) -> Any:
        return self.module

    @property
    def size(self) -> int:
        """D, the numbers of a sample."""
        return self.flow.size

    @property
    def width(self) -> int:
        return self.flow.width

    @property
    def device(self) -> torch.device:
        return self.flow.device

    # Text and tokens

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return the language model's tokens of a prompt."""
        return np.asarray(self.language.encode(prompt))

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return a thought's tokens, its end among them, and the one decision to draw what follows.

        Raises:
            UsageError: what follows is no sample of the flow's shape.
        """
        thought, drawn = split(text)
        self.flow.encode_response(drawn)
        return np.append(self.language.encode_response(thought), STEP)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Return a thought's text; a drawing is the text of its episode."""
        return str(self.language.decode([int(token) for token in tokens if token < STEP]))

    def shown(self, prompt: np.ndarray, thought: str) -> str:
        """Return what the flow reads: a prompt's text and the thought after it, the last of them where it is long."""
        return f"{self.language.decode(prompt)}\n{thought}"[-self.flow.context :]

    # The policy

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`; quantities of steps are zero, and deviations one, on thoughts."""
        steps = drawing_steps(batch)
        said = [self._said(episode) for episode in batch.episodes]
        width = max((len(e.tokens) for e in said), default=0)
        written = self.language.forward(_of(batch, said, width), (), temperature).logprobs
        logprobs = torch.zeros(batch.tokens.shape, device=self.device)
        logprobs[:, :width] = written.to(logprobs)
        drawn = [self._drawn(episode) for episode in batch.episodes]
        output = self.flow.forward(_of(batch, drawn, int(steps.sum(-1).max()) if len(batch) else 0), live, temperature)
        counts = steps.sum(-1, keepdim=True)
        inside = torch.arange(output.logprobs.shape[1]) < counts
        place = steps.to(self.device), inside.to(self.device)
        logprobs = logprobs.masked_scatter(place[0], output.logprobs[place[1]])
        found = {}
        for name, values in output.live.items():
            table = values.new_full((*batch.tokens.shape, *values.shape[2:]), float(name == "step_deviation"))
            found[name] = table.index_put(place[0].nonzero(as_tuple=True), values[place[1]])
        return PolicyOutput(logprobs, found)

    def _said(self, episode: Episode) -> Episode:
        tokens = episode.tokens[episode.tokens < STEP]
        count = len(tokens)
        logprobs = None if episode.logprobs is None else episode.logprobs[:count]
        return replace(episode, tokens=tokens, mask=episode.mask[:count], logprobs=logprobs, drawing=None)

    def _drawn(self, episode: Episode) -> Episode:
        thought, drawn = split(episode.text)
        tokens = episode.tokens[episode.tokens >= STEP] - STEP
        prompt, mask = self.flow.encode(self.shown(episode.prompt, thought)), np.ones(len(tokens), dtype=bool)
        return replace(episode, prompt=prompt, tokens=tokens, mask=mask, logprobs=None, text=drawn)

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """See :class:`assay.policies.base.Policy`: rows in order, prompts and thoughts and what is drawn."""
        parts: list[list[int]] = []
        size = 0
        for row, episode in enumerate(batch.episodes):
            steps = int((episode.tokens >= STEP).sum())
            own = len(episode.prompt) + len(episode.tokens) - steps + steps * max(1, self.size // PIXELS)
            if not parts or size + own > budget:
                parts.append([])
                size = 0
            parts[-1].append(row)
            size += own
        return [torch.tensor(part, dtype=torch.int64) for part in parts]

    def continuations(self, *_: Any, **__: Any) -> Tensor:
        """A drawing has no continuations. Raises UsageError."""
        raise UsageError("a flow draws samples and has no tokens to go on with; the method wants a language model")

    continuation_ranks = candidates = likeliest = continuations

    # Copies, and weights on disk

    def twin(self) -> ThinkingFlow:
        """Return a trainable copy with weights of its own."""
        return ThinkingFlow(self.language.twin(), self.flow.twin())

    def frozen(self, folder: Path) -> ThinkingFlow:
        """Return a copy with the weights in ``folder``, without gradients."""
        frozen = copy(self)
        frozen.language = self.language.frozen(Path(folder) / LANGUAGE)
        frozen.flow = self.flow.frozen(Path(folder) / FLOW)
        return frozen

    def save(self, folder: Path) -> None:
        """Write both to a folder that a recipe's ``model.source`` can name."""
        self.language.save(Path(folder) / LANGUAGE)
        self.flow.save(Path(folder) / FLOW)

    def load_weights(self, folder: Path) -> None:
        """Take the weights that :meth:`save` wrote."""
        self.language.load_weights(Path(folder) / LANGUAGE)
        self.flow.load_weights(Path(folder) / FLOW)


def drawing_steps(batch: Batch) -> Bool[Tensor, "N T"]:
    """Return which decisions of a batch are a drawing's, and not a thought's."""
    return batch.tokens >= STEP


def response(thought: str, sample: str) -> str:
    """Return a response's text."""
    return f"{thought}{DRAWN}{sample}"


def _of(batch: Batch, episodes: Sequence[Episode], width: int) -> Batch:
    """Return a batch of pieces of a batch's episodes; only what policies read is right in it."""
    tokens = pad([e.tokens for e in episodes], width, np.int64)
    mask = pad([e.mask for e in episodes], width, np.bool_)
    none = torch.zeros(tokens.shape)
    return replace(
        batch,
        episodes=list(episodes),
        tokens=tokens,
        mask=mask,
        logprobs=none,
        turn=torch.where(mask, 0, -1),
        advantages=none,
        token_rewards=None,
        live={},
    )
