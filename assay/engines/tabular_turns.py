"""A tabular policy that plays environments: each token stands for a word, each node for all that went before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.engines.base import Request
from assay.engines.tabular import TabularEngine
from assay.engines.tokens import Tokens
from assay.errors import UsageError
from assay.policies.tabular import TabularPolicy
from assay.types import Episode, Message, Prompt, Tool

Words = Sequence[Sequence[str]]
"""What can be said in a turn: one word of each, a line each."""


class TabularTurns(TabularEngine):
    """Says one of each of ``words`` in a turn, and converses (:class:`assay.engines.base.Conversing`).

    What an environment says becomes no token: it follows from what was said before, which the node of the tree knows.

    Args:
        policy: over the tree of what can be said, see :func:`assay.rollout.turns.enumerated.enumerated`.
        words: what its tokens mean, by their place in the turn.
        openings: the node's path where a conversation that opens so begins, by the opening's text.
    """

    def __init__(self, policy: TabularPolicy, words: Words, openings: Mapping[str, tuple[int, ...]]):
        super().__init__(policy)
        self.words, self.openings = words, openings

    @property
    def window(self) -> int:
        return self.policy.tree.depth + 2

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        return np.asarray(self.openings[opened(messages)], dtype=np.int64)

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return prompt.ids if isinstance(prompt, Tokens) else super().encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return the tokens of a turn that says the last of ``words`` alone, its thoughts the first ones there are.

        Raises:
            UsageError: there is no such word.
        """
        *thoughts, actions = self.words
        if text not in actions:
            raise UsageError(f"a turn of this policy says one of {', '.join(actions)}, not {text[:60]!r}")
        return np.array([0] * len(thoughts) + [list(actions).index(text)], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return "\n".join(self.words[k % len(self.words)][token] for k, token in enumerate(tokens))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        whole = len(self.words)
        turns = [
            replace(r, sampling=replace(r.sampling, max_tokens=min(whole, r.sampling.max_tokens))) for r in requests
        ]
        return [[self.worded(episode) for episode in made] for made in super().generate(turns)]

    def worded(self, turn: Episode) -> Episode:
        """Return a turn with its text; one that has all its words has ended."""
        stop = "eos" if len(turn.tokens) == len(self.words) else turn.stop
        return replace(turn, text=self.decode(turn.tokens), stop=stop)


def opened(messages: Sequence[Message]) -> str:
    """Return the text of the messages that open a conversation."""
    return "\n".join(message["content"] for message in messages)
