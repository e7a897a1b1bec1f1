"""What a client asks, as requests to the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.engines.tokens import Tokens
from assay.errors import UsageError
from assay.serve.asked import Asked, Refusal
from assay.serve.decoding import ServedEngine


def requests(asked: Asked, engine: ServedEngine) -> list[Request]:
    """Return what to generate; a fast tokenizer must not be used by two threads at once, so one calls this at a time.

    Raises:
        Refusal: a prompt does not fit, or is none.
    """
    fields, context = asked.fields, engine.policy.context
    sampling = Sampling(asked.max_tokens, fields.temperature, fields.top_p, max(0, fields.top_k), fields.stops)
    out = []
    for i, prompt in enumerate(asked.prompts):
        ids = _encode(asked, prompt, engine)
        if len(ids) >= context:
            raise Refusal(
                f"a prompt of {len(ids)} tokens leaves no room for a response in the model's context of {context}",
                "messages" if asked.chat else "prompt",
                code="context_length_exceeded",
            )
        out.append(Request(Tokens(ids), fields.n, sampling, asked.seed + i))
    return out


def _encode(asked: Asked, prompt: Any, engine: ServedEngine) -> np.ndarray:
    policy = engine.policy
    if asked.chat:
        try:
            ids = engine.opening(prompt, asked.tools) if asked.tools else engine.encode(prompt)
        except UsageError as error:
            raise Refusal(str(error), "messages") from None
        return np.concatenate([ids, engine.encode_response(asked.begun, end=False)]) if asked.begun else ids
    if isinstance(prompt, str):
        return np.asarray(policy.tokenizer(prompt)["input_ids"] or [policy.stop_ids[0]], dtype=np.int64)
    outside = [t for t in prompt if not 0 <= t < len(policy.head.weight)]
    if outside:
        raise Refusal(f"prompt: the model has no token {outside[0]}", "prompt")
    return np.asarray(prompt, dtype=np.int64)
