"""How sure the policy is of the right option before it has looked anything up, and when it answers."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops.turns import own_turns
from assay.registry import part
from assay.signals.answer_tokens import answer_range
from assay.signals.base import Models
from assay.signals.likelihood import encoder
from assay.signals.steps import Decode, decoder, token_ends
from assay.types import Episode, Task
from assay.verify.answer.spans import Span

QUERY = re.compile(r"\s*<query>")


@part("signal", "option_confidence")
@dataclass(frozen=True, slots=True)
class OptionConfidence:
    """Signal ``(N, 2, 2)``: [log pi(o | prefix, open), tokens that are likelier] of the gold option o, twice.

    Row 0 is before anything was retrieved: the prefix is the response up to its first query, thoughts included. Row 1
    is where the response answers: the prefix goes up to ``open`` in its last turn. o is the first token of the task's
    label, as it is written after ``open``. NaN where there is nothing: a response that retrieved nothing, a last turn
    without ``open``, a reference that is no label, or no room in the context. Detached, by the policy as it sampled.

    Source: Med-RwR (arXiv 2510.18303), its authors' code, which reads what was sampled in place of the gold option.

    Args:
        open: what answers begin with.
        temperature: divides the logits; that of sampling if ``None``.
    """

    open: str = "<answer>"
    temperature: float | None = None

    whole = True

    @property
    def name(self) -> str:
        return "option_confidence"

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N 2 2"]:
        out = torch.full((len(batch), 2, 2), torch.nan, dtype=batch.logprobs.dtype)
        at: list[list[int]] = []
        what: list[list[np.ndarray]] = []
        place: list[tuple[list[int], int]] = []
        decode, context = decoder(models), getattr(models.policy, "context", None)
        for episode, task in zip(batch.episodes, batch.tasks, strict=True):
            tokens, option = self.written(task, models)
            points = [] if not len(tokens) else list(enumerate(self.points(episode, decode)))
            room = None if context is None else context - len(episode.prompt) - len(tokens)
            told = [(row, p) for row, p in points if p is not None and (room is None or p <= room)]
            at.append([p for _, p in told])
            what.append([tokens] * len(told))
            place.append(([row for row, _ in told], option))
        if any(at):
            logp = models.continuations(batch, at, what, "policy", self.temperature)
            ranks = models.continuation_ranks(batch, at, what, "policy")
            for i, (rows, option) in enumerate(place):
                for k, row in enumerate(rows):
                    out[i, row, 0], out[i, row, 1] = logp[i, k, option], ranks[i, k, option]
        return out

    def points(self, episode: Episode, decode: Decode) -> tuple[int | None, int | None]:
        """Return after how many tokens to ask, before retrieving and at the answer; ``None`` where there is no place.

        Where nothing was retrieved there is neither.
        """
        turns = own_turns(episode)
        looked = next((turn for turn in turns if turn.info.get("retrieved")), None)
        if looked is None:
            return None, None
        last = turns[-1]
        answer = episode.tokens[last.start : last.end].tolist()
        where = decode(answer).rfind(self.open)
        begun = episode.tokens[looked.start : looked.end].tolist()
        query = QUERY.search(decode(begun))
        before = len(begun) if query is None else tokens_before(begun, decode, query.start())
        after = None if where < 0 or last is looked else last.start + tokens_before(answer, decode, where)
        return looked.start + before, after

    def written(self, task: Task, models: Models) -> tuple[np.ndarray, int]:
        """Return the tokens of ``open`` and the gold option, up to its first token, and the place of that.

        Without tokens where the reference is no label, or the policy cannot write it.
        """
        label = label_of(task)
        whole = self.open + label
        tokens = encoder(models)(whole)

        def found(said: str) -> Span | None:
            return Span(len(self.open), len(self.open), len(whole), len(whole)) if said == whole else None

        first, end = answer_range(tokens.tolist(), decoder(models), found) if label else (0, 0)
        return tokens[: first + 1 if end > first else 0], first


def label_of(task: Task) -> str:
    """Return the label of the right option, a letter; empty where the reference is none."""
    reference = task.reference["answer"] if isinstance(task.reference, dict) else task.reference
    label = reference.strip() if isinstance(reference, str) else ""
    return label if len(label) == 1 and label.isalpha() else ""


def tokens_before(tokens: Sequence[int], decode: Decode, characters: int) -> int:
    """Return how many tokens write the first ``characters`` of a text and nothing beyond them."""
    ends = token_ends(tokens, decode)
    return bisect_left(range(len(tokens)), characters + 1, key=ends)
