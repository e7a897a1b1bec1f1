"""Text and tokens of engines that have a policy's tokenizer: the part of the engine protocol that is the policy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.types import Prompt


class Speaking:
    """An engine's ``encode``, ``encode_response`` and ``decode``, see :class:`assay.engines.base.Engine`, as ``policy``
    has them."""

    policy: Any

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.asarray(self.policy.encode(prompt))

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.asarray(self.policy.encode_response(text, end))

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return str(self.policy.decode(tokens))
