"""How likely a user's next words are after a response, or the model's own when it is asked about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.likelihood import encoder
from assay.signals.scorer import loaded
from assay.tasks.files.feedback import swapped
from assay.types import Episode, Message, Prompt

HERE = "\u2981 follow-up \u2981"
"""Stands in a conversation for what is looked up there."""
TOGETHER = 16
"""Follow-ups that are told as branches of one row: attention costs the square of their length in all."""


@part("signal", "follow_ups")
@dataclass(frozen=True, slots=True)
class FollowUps:
    """Signal ``follow_ups`` ``(N, F)``: mean_t log p(f_t | conversation, response, f_<t) of F texts as the next turn.

    p is the scorer's at temperature 1. Where it has a chat template, the conversation is written in it and a text is
    the next message of the user; the tokens of the text count, those of the template do not. Else a text stands after
    the response and ``turn``. All texts are told from one pass over a response. A conversation that is too long loses
    its oldest turns, whole ones, but never its system message or its last question; NaN where that is not enough.

    Args:
        texts: what may follow.
        scorer: ``reference``, the policy as RL began; ``policy``, as it stands; or another language model: its hub id
            or folder, that of a run, a table of a recipe's ``[model]``, or a policy.
        opening: a scorer that was fine-tuned to play the user, with roles swapped, is asked for feedback by this first
            turn; its texts are then turns of the assistant. Tasks ``feedback`` are for such a fine-tuning.
        turn: see above.
        max_tokens: longest conversation, follow-up included; ``None`` for the scorer's context.
        question: put to the scorer in a turn of its own after the response; the texts are then beginnings of its reply,
            and the signal is called ``replies``.

    Raises:
        UsageError: no texts, an empty one, or a scorer that cannot be loaded.
    """

    texts: tuple[str, ...]
    scorer: Any = "reference"
    opening: str | None = None
    turn: str = "\n"
    max_tokens: int | None = 2048
    question: str | None = None

    whole = True

    def __post_init__(self) -> None:
        if not self.texts or not all(text.strip() for text in self.texts):
            raise UsageError("signal 'follow_ups': give one or more texts, none of them blank")
        object.__setattr__(self, "scorer", loaded(self.scorer, "follow_ups"))

    @property
    def name(self) -> str:
        return "follow_ups" if self.question is None else "replies"

    @property
    def models(self) -> frozenset[str]:
        return frozenset({self.scorer} if isinstance(self.scorer, str) else ())

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N F"]:
        scorer = getattr(models, self.scorer) if isinstance(self.scorer, str) else self.scorer
        encode = encoder(replace(models, policy=scorer))
        what = [encode(text) for text in self.texts]
        room = min(getattr(scorer, "context", 2**31), self.max_tokens or 2**31) - max(map(len, what))
        read = [self.head(t.prompt, e, scorer, room) for t, e in zip(batch.tasks, batch.episodes, strict=True)]
        heads = {i: head for i, head in enumerate(read) if head is not None}
        out = torch.full((len(batch), len(what)), torch.nan, dtype=batch.logprobs.dtype)
        if not heads:
            return out
        # What is scored is another sequence: the conversation is its prompt, and it has no response.
        nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        pieces = [what[k : k + TOGETHER] for k in range(0, len(what), TOGETHER)]
        rows = [i for i in heads for _ in pieces]
        asked = batch.rows(torch.tensor(rows))
        asked.episodes = [
            replace(e, prompt=heads[i], tokens=nothing, mask=none, spans=())
            for i, e in zip(rows, asked.episodes, strict=True)
        ]
        mean = sum(map(len, heads.values())) / len(heads)
        budget = max(int(models.token_budget * mean / (mean + sum(map(len, what)))), 1)
        here = replace(models, policy=scorer, token_budget=budget)
        texts = pieces * len(heads)
        found = here.continuations(asked, [[0] * len(piece) for piece in texts], texts, "policy", 1.0)
        # Each response has as many rows as there are pieces, the last of them with room to spare.
        out[list(heads)] = found.nanmean(-1).reshape(len(heads), -1)[:, : len(what)].to(out.dtype)
        return out

    def head(self, prompt: Prompt, episode: Episode, scorer: Any, room: int) -> np.ndarray | None:
        """Return the token ids of all that stands before a follow-up; ``None`` where they are more than ``room``."""
        if not hasattr(scorer, "tokenizer"):
            return np.concatenate([episode.prompt, episode.tokens])
        if not scorer.chat:
            asked = "" if self.question is None else self.question + self.turn
            told = scorer.encode_response(episode.text + self.turn + asked, end=False)
            ids = np.concatenate([scorer.encode(prompt), told])
            return ids if len(ids) <= room else None
        turns: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        system = [m for m in turns[:1] if m["role"] == "system"]
        turns = turns[len(system) :]
        while True:
            found = self._written([*system, *turns], episode.text, scorer)
            if len(found) <= room:
                return found
            later = [i for i, m in enumerate(turns) if i and m["role"] == "user"]
            if not later:
                return None
            turns = turns[later[0] :]

    def _written(self, turns: Sequence[Message], response: str, scorer: Any) -> np.ndarray:
        said: list[Message] = [
            *turns,
            {"role": "assistant", "content": response},
            {"role": "user", "content": HERE if self.question is None else self.question},
        ]
        if self.question is not None:
            said.append({"role": "assistant", "content": HERE})
        if self.opening is not None:
            said = swapped(said, self.opening)
        text = rendered(said, scorer.tokenizer)
        ids = scorer.tokenizer(text[: text.rindex(HERE)], add_special_tokens=False)["input_ids"]
        return np.asarray(ids, dtype=np.int64)


def rendered(messages: Sequence[Message], tokenizer: Any) -> str:
    """Return a conversation as the tokenizer's chat template writes it.

    Raises:
        UsageError: the template refuses it.
    """
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(list(messages), tokenize=False))
    except TemplateError as error:
        raise UsageError(f"signal 'follow_ups': the scorer's chat template refuses a conversation: {error}") from error
