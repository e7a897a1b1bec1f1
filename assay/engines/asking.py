"""How a judge is asked: every question once, with a seed of its own, in words whose places no response can take."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError, UsageError
from assay.media import marks
from assay.registry import build
from assay.types import Episode, Message, Prompt, Task, pictures

T = TypeVar("T")
X = TypeVar("X")


def judge_of(spec: Any, who: str) -> Engine:
    """Return the judge: an engine, or what the specification of one makes.

    Raises:
        UsageError: it is neither; says for ``who``.
    """
    made = build("engine", spec)
    if not isinstance(made, Engine):
        raise UsageError(f"{who}: the judge must be an engine or the specification of one, not {made!r}")
    return made


def filled(template: str, **shown: str) -> str:
    """Return the template with each ``{name}`` replaced, in one pass, so that braces in what is shown are text."""
    names = "|".join(re.escape(name) for name in shown)
    return re.sub(rf"\{{({names})\}}", lambda m: shown[m[1]], template)


def escaped(text: str) -> str:
    """Return a text as it stands within the quotes of a JSON string, so that what is shown cannot end its quotation.

    In ``filled``, what is shown is text to the template, but a judge reads on: quotes and line breaks in a response may
    look to it like the end of the response. Escaped they are none.
    """
    return json.dumps(text, ensure_ascii=False)[1:-1]


def beside(task: Task, text: str) -> Prompt:
    """Return a prompt with a text below a task's pictures; where it has none, the text."""
    images = pictures(task.prompt)
    return (Message(role="user", content=f"{marks(len(images))}\n{text}", images=images),) if images else text


def ask(judge: Engine, prompts: Sequence[Prompt], sampling: Sampling) -> list[Episode]:
    """Return the judge's reply to each prompt, in one call; ``stop == "error"`` where it failed.

    Equal prompts are asked once. A request's seed is of its prompt alone, so that a reply does not depend on what else
    is in the batch.
    """
    names = [_name(p) for p in prompts]
    once = dict(zip(names, prompts, strict=True))
    replies = judge.generate([Request(p, 1, sampling, seed_of(name)) for name, p in once.items()]) if once else []
    said = {name: reply for name, [reply] in zip(once, replies, strict=True)}
    return [said[name] for name in names]


def _name(prompt: Prompt) -> str:
    """Return a text that is of this prompt alone: itself, or that of messages with digests of their pictures."""
    if isinstance(prompt, str):
        return prompt
    return json.dumps([[m["role"], m["content"], [p.digest.hex() for p in m.get("images", ())]] for m in prompt])


def likeliest(judge: Engine, prompts: Sequence[str], n: int = 20) -> list[dict[str, float]]:
    """Return the log-probabilities of the n likeliest first tokens of the reply to each prompt, by their text.

    White space around a token's text is left off, and tokens that then are one are one. Read by a beam search of width
    n and one token, which of assay's engines ``hf`` offers. Empty where the judge failed.

    Raises:
        RunError: the judge reports no log-probabilities.
    """
    once = list(dict.fromkeys(prompts))
    sampling = Sampling(1, 1.0)
    replies = judge.generate([Request(p, n, sampling, seed_of(p), beam=True) for p in once]) if once else []
    found = {prompt: first_tokens(judge, beams) for prompt, beams in zip(once, replies, strict=True)}
    return [found[p] for p in prompts]


def first_tokens(judge: Engine, beams: Sequence[Episode]) -> dict[str, float]:
    """Return the log-probabilities of replies' first tokens, by their text; see :func:`likeliest`.

    Raises:
        RunError: the judge reports no log-probabilities.
    """
    said: dict[str, float] = {}
    for reply in beams:
        if reply.stop == "error":
            continue
        if reply.logprobs is None:
            raise RunError("the judge reports no log-probabilities, by which it is to be read; take engine 'hf'")
        text, value = judge.decode(reply.tokens[:1]).strip(), float(reply.logprobs[0])
        said[text] = float(np.logaddexp(said.get(text, -math.inf), value))
    return said


def shared(engine: Engine, items: Sequence[X], work: Callable[[Sequence[X]], Sequence[T]]) -> list[T]:
    """Return ``work(items)``, one result an item. Where a run is of several processes each does its share, and all of
    them, which go on from there together, are told the same.

    Args:
        engine: the run's, which knows of the others, see :class:`assay.engines.base.Dividing`.
    """
    divided = getattr(engine, "divided", None)
    return list(work(items)) if divided is None else list(divided(items, lambda share, _: work(share)))


def seed_of(text: str) -> int:
    """Return a seed that is of a text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=7).digest(), "big")
