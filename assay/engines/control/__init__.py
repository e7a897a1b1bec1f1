"""Stands where a run has its engine, for a policy that acts by numbers and answers nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from assay.engines.base import Request
from assay.errors import UsageError
from assay.policies.control.policy import ControlPolicy
from assay.registry import part
from assay.types import Episode, Prompt


@part("engine", "control")
class ControlEngine:
    """Holds the policy that rollout ``vector`` acts by."""

    def __init__(self, policy: ControlPolicy):
        self.policy = policy

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.policy.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self._speechless()

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Nothing: its tokens are no text."""
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return self._speechless()

    def _speechless(self) -> NoReturn:
        raise UsageError("a policy of numbers answers no prompts; let it act: method.rollout = vector")
