"""What people wrote of a response, taken apart into principles that it fulfils or does not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from assay.engines.asking import ask, filled
from assay.engines.base import Engine, Sampling

EXTRACT = """Below is what somebody wrote of a response. List the principles that he judges it by, each in a few words
that could be said of any response, with the words that say so, to the letter, and whether the response fulfils it.

{feedback}

Reply with a JSON list and nothing else:
[{"principle": "clarity of the explanation", "span": "very easy to follow", "fulfilled": "yes"}]
where fulfilled is yes, no or partially."""

KEYS = ("principle", "span", "fulfilled")

Similar = Callable[[Sequence[str]], np.ndarray]
"""Takes n principles and returns ``(n, n)`` cosines."""


@dataclass(frozen=True, slots=True)
class Principle:
    """Something that a response fulfils or does not, and the words of the feedback that say so."""

    text: str
    span: str
    fulfilled: bool


def quoted(span: str, feedback: str, least: float = 0.9) -> bool:
    """Whether a span stands in a feedback, or words that are nearly the same: of difflib's ratio ``least`` or above."""
    words, wanted = feedback.casefold().split(), span.casefold().split()
    if not wanted:
        return False
    text = " ".join(wanted)
    windows = (" ".join(words[k : k + len(wanted)]) for k in range(max(len(words) - len(wanted), 0) + 1))
    return any(SequenceMatcher(None, text, window, autojunk=False).ratio() >= least for window in windows)


def read_principles(reply: str, feedback: str) -> list[Principle]:
    """Return the principles in a reply whose span stands in the feedback; partial ones, and what is no principle, are
    left out."""
    found = re.search(r"\[.*\]", reply, re.DOTALL)
    try:
        rows: Any = json.loads(found[0]) if found else []
    except ValueError:
        return []
    out = []
    for row in rows:
        if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in KEYS):
            continue
        text, label = " ".join(row["principle"].split()), row["fulfilled"].strip().casefold()
        if text and label in ("yes", "no") and quoted(row["span"], feedback):
            out.append(Principle(text, row["span"], label == "yes"))
    return out


def extracted(feedback: Sequence[str], extractor: Engine, max_tokens: int = 1024) -> list[list[Principle] | None]:
    """Return the principles of each feedback; ``None`` where the extractor failed."""
    prompts = [filled(EXTRACT, feedback=text) for text in feedback]
    replies = ask(extractor, prompts, Sampling(max_tokens, 0.0))
    return [
        None if reply.stop == "error" else read_principles(reply.text, text)
        for reply, text in zip(replies, feedback, strict=True)
    ]


def by_words(texts: Sequence[str]) -> np.ndarray:
    """Cosines of counts of words."""
    counts = [Counter(re.findall(r"\w+", text.casefold())) for text in texts]
    words = sorted({word for count in counts for word in count})
    table = np.array([[count[word] for word in words] for count in counts], dtype=np.float64).reshape(len(texts), -1)
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return np.asarray(unit @ unit.T)


def agreed(people: Sequence[Sequence[Principle]], similar: Similar = by_words, least: float = 0.8) -> list[Principle]:
    """Return the principles that several people have of one response, each once, in their order.

    A principle is kept if somebody else has a similar one with the same label and nobody else has one with the other.

    Args:
        people: the principles of each.
        similar: see :data:`Similar`.
        least: cosine from which two are similar.

    Source: RLBFF (arXiv 2509.21319).
    """
    rows = [(who, p) for who, some in enumerate(people) for p in some]
    if not rows:
        return []
    near = similar([p.text for _, p in rows]) >= least
    kept: list[int] = []
    for i, (who, mine) in enumerate(rows):
        others = [p.fulfilled for j, (other, p) in enumerate(rows) if other != who and near[i, j]]
        if mine.fulfilled in others and (not mine.fulfilled) not in others and not near[i, kept].any():
            kept.append(i)
    return [rows[i][1] for i in kept]
