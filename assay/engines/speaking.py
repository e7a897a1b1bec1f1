"""Text and tokens of engines that have a policy's tokenizer: the part of the engine protocol that is the policy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.engines.tokens import Tokens
from assay.policies.conversation import bridge, drops_thinking, opening
from assay.types import Message, Prompt, Tool


class Speaking:
    """What an engine has of its ``policy``: see :class:`assay.engines.base.Engine` and
    :class:`assay.engines.base.Conversing`."""

    policy: Any

    @property
    def window(self) -> int:
        """Tokens of the longest prompt with its response."""
        return int(getattr(self, "context", self.policy.context))

    def encode(self, prompt: Prompt) -> np.ndarray:
        return prompt.ids if isinstance(prompt, Tokens) else np.asarray(self.policy.encode(prompt))

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        """See :func:`assay.policies.conversation.opening`."""
        ids = opening(self.policy.tokenizer, self.policy.chat, self.policy.written(messages), tools)
        return self.policy.filled(ids, messages) if len(ids) else self.encode("")

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        """See :func:`assay.policies.conversation.bridge`."""
        written = self.policy.written(messages)
        ids = bridge(self.policy.tokenizer, self.policy.chat, written, ended, self.policy.stop_ids)
        return np.asarray(self.policy.filled(ids, messages))

    def drops_thinking(self, messages: Sequence[Message]) -> bool:
        """See :func:`assay.policies.conversation.drops_thinking`."""
        return drops_thinking(self.policy.tokenizer, self.policy.chat, messages)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.asarray(self.policy.encode_response(text, end))

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return str(self.policy.decode(tokens))
