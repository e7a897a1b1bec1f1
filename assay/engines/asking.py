"""How a judge is asked: every question once, with a seed of its own, in words that a response cannot break."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import build
from assay.types import Episode

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


def ask(judge: Engine, prompts: Sequence[str], sampling: Sampling) -> list[Episode]:
    """Return the judge's reply to each prompt, in one call; ``stop == "error"`` where it failed.

    Equal prompts are asked once. A request's seed is of its prompt alone, so that a reply does not depend on what else
    is in the batch.
    """
    once = list(dict.fromkeys(prompts))
    replies = judge.generate([Request(p, 1, sampling, seed_of(p)) for p in once]) if once else []
    said = {p: reply for p, [reply] in zip(once, replies, strict=True)}
    return [said[p] for p in prompts]


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
