"""The engine of a flow that draws after thoughts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assay.engines.base import Request, Sampling
from assay.engines.flow.engine import FlowEngine
from assay.engines.flow.sampling import FlowSampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.policies.flow.thinking import STEP, ThinkingFlow, response
from assay.registry import part
from assay.types import Episode, Prompt


class ThinkingEngine:
    """Writes thoughts with the one, and draws one sample after each with the other; both are what is trained.

    ``sampling.max_tokens`` is the longest thought's; a drawing has as many steps as its model says. At temperature 0
    thoughts are greedy and drawings without noise.

    Args:
        policy: both.
        max_rows: responses made together.
    """

    def __init__(self, policy: ThinkingFlow, max_rows: int = 1024):
        self.policy = policy
        self.words = HFEngine(policy.language, max_rows)
        self.drawings = FlowEngine(policy.flow, max_rows)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.policy.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.policy.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.policy.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            UsageError: a request has a prefix, a catalogue or a beam.
        """
        if any(request.within is not None or request.beam or request.prefix for request in requests):
            raise UsageError("thoughts and drawings go on from no prefix, and search no catalogue and no beam")
        thoughts = self.words.generate([replace(r, sampling=_of_words(r.sampling)) for r in requests])
        asked: list[Request] = []
        for request, own in zip(requests, thoughts, strict=True):
            how = _of_drawings(request.sampling, self.policy.config.steps)
            for number, thought in enumerate(own):
                seed = int(np.random.default_rng([request.seed, number]).integers(2**62))
                asked.append(Request(self.policy.shown(thought.prompt, thought.text), 1, how, seed))
        drawn = iter(self.drawings.generate(asked))
        return [[_joined(thought, next(drawn)[0]) for thought in own] for own in thoughts]


def _of_words(sampling: Sampling) -> Sampling:
    return Sampling(sampling.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k, sampling.stop)


def _of_drawings(sampling: Sampling, steps: int) -> FlowSampling:
    if isinstance(sampling, FlowSampling):
        return replace(sampling, max_tokens=steps, stop=(), top_p=1.0, top_k=0)
    return FlowSampling(steps, sampling.temperature)


def _joined(thought: Episode, drawn: Episode) -> Episode:
    assert thought.logprobs is not None and drawn.logprobs is not None
    return replace(
        thought,
        tokens=np.concatenate([thought.tokens, STEP + drawn.tokens]),
        mask=np.concatenate([thought.mask, drawn.mask]),
        logprobs=np.concatenate([thought.logprobs, drawn.logprobs]),
        text=response(thought.text, drawn.text),
        entropies=None,
        drawing=drawn.drawing,
    )


@part("engine", "thinking_flow")
def thinking_engine(policy: ThinkingFlow, max_rows: int = 1024) -> ThinkingEngine:
    """Return the engine of a flow that draws after thoughts, in training.

    Args:
        policy: what is trained.
        max_rows: responses made together.

    Raises:
        UsageError: the policy is none.
    """
    if not isinstance(policy, ThinkingFlow):
        raise UsageError("engine thinking_flow draws after thoughts; set model.source=flow and model.flow.language")
    return ThinkingEngine(policy, max_rows)
