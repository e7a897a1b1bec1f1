"""Our requests in vLLM's terms, and its answers in ours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.engines.vllm.processors import TAG, Watched
from assay.errors import RunError, UsageError
from assay.types import Episode, Stop

COLDEST = 0.01
"""vLLM raises temperatures between 0 and this to it."""


def settings_of(request: Request, sample: int, limit: int, stop_ids: Sequence[int], tag: int) -> dict[str, Any]:
    """Return the arguments of vLLM's ``SamplingParams`` for one response of at most ``limit`` tokens."""
    sampling = request.sampling
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": seed_of(request.seed, sample),
        "max_tokens": min(sampling.max_tokens, limit),
        "stop": list(sampling.stop) or None,
        "include_stop_str_in_output": True,
        # Ended by our own list, which is the policy's.
        "ignore_eos": True,
        "stop_token_ids": list(stop_ids),
        "logprobs": 0,
        "flat_logprobs": True,
        "detokenize": bool(sampling.stop),
        "extra_args": {TAG: tag},
    }


def episode_of(
    request: Request,
    prompt: np.ndarray,
    output: Any,
    watched: Watched,
    stop_ids: Sequence[int],
    context: int,
    engine: Any,
) -> Episode:
    """Return the episode of one of vLLM's answers.

    Args:
        request, prompt: what was asked.
        output: vLLM's ``CompletionOutput``.
        watched: what our processors noted.
        stop_ids: tokens that end a response.
        context: longest prompt plus response.
        engine: decodes.

    Raises:
        RunError: it is no whole answer, or no probabilities.
    """
    tokens = np.asarray(output.token_ids, dtype=np.int64)
    logprobs = np.asarray(output.logprobs.logprobs, dtype=np.float32)
    whole = False
    if request.within is not None:
        # What was forced after a whole sequence is no part of it.
        tokens = tokens[: sequence_length(request, tokens)]
        logprobs, whole = logprobs[: len(tokens)], tokens in request.within
    if len(logprobs) != len(tokens):
        raise RunError(f"vllm told {len(logprobs)} log-probabilities of {len(tokens)} tokens")
    if np.isnan(logprobs).any():
        raise RunError("the model gives NaN for probabilities, so its weights have diverged; lower train.lr")
    entropies = [watched.entropies.get(t) for t in range(len(tokens))]
    text = engine.decode(tokens)
    stop: Stop = "length"
    if output.finish_reason not in ("stop", "length"):
        stop = "error"
    elif len(tokens) and int(tokens[-1]) in stop_ids:
        stop = "eos"
    elif whole or any(s in text for s in request.sampling.stop):
        stop = "stop"
    elif len(prompt) + len(tokens) >= context:
        stop = "context"
    return Episode(
        prompt=prompt,
        tokens=tokens,
        mask=np.ones(len(tokens), dtype=bool),
        logprobs=logprobs,
        entropies=None if None in entropies else np.asarray(entropies, dtype=np.float32),
        text=text,
        stop=stop,
        meta={"error": f"vllm ended the response with {output.finish_reason}"} if stop == "error" else {},
    )


def sequence_length(request: Request, tokens: np.ndarray) -> int:
    """Return how many of the tokens a catalogue's sequence has, all if they are not one and more."""
    assert request.within is not None
    node = 0
    for length, token in enumerate(tokens.tolist()):
        if request.within.complete(np.array([node]))[0]:
            return length
        node = int(request.within.follow(np.array([node]), np.array([token]))[0])
    return len(tokens)


def check_temperature(request: Request) -> None:
    """Raise UsageError for a temperature that vLLM would change."""
    if 0 < request.sampling.temperature < COLDEST:
        raise UsageError(
            f"vllm takes no temperature between 0 and {COLDEST:g}, as {request.sampling.temperature:g} is; use 0, or "
            "engine hf"
        )


def seed_of(seed: int, sample: int) -> int:
    """Return vLLM's seed of a request's response, below 2^63; those of seeds that follow each other are unrelated."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {sample}".encode(), digest_size=7).digest(), "big")
