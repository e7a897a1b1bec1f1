"""What people wrote of a response, taken apart into principles that it fulfils or does not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.engines.asking import ask, filled
from assay.engines.base import Engine, Sampling
from assay.verify.text.overlap import common_subsequence

EXTRACT = """Below is what somebody wrote of a response. List the principles that he judges it by, each in a few words
that could be said of any response, with the words that say so, to the letter, and whether the response fulfils it.

{feedback}

Reply with a JSON list and nothing else:
[{"principle": "clarity of the explanation", "span": "very easy to follow", "fulfilled": "yes"}]
where fulfilled is yes, no or partially."""

KEYS = ("principle", "span", "fulfilled")
OVERALL = "helpfulness"

Similar = Callable[[Sequence[str]], np.ndarray]
"""Takes n principles and returns ``(n, n)`` cosines."""


@dataclass(frozen=True, slots=True)
class Principle:
    """Something that a response fulfils or does not, and the words of the feedback that say so."""

    text: str
    span: str
    fulfilled: bool


def quoted(span: str, feedback: str, least: float = 60.0) -> bool:
    """Whether a span stands in a feedback, or nearly: of :func:`partial_ratio` above ``least``."""
    text = " ".join(span.casefold().split())
    return bool(text) and partial_ratio(text, " ".join(feedback.casefold().split())) > least


def partial_ratio(one: str, other: str) -> float:
    """Return the most, from 0 to 100, that a part of the longer text is like the shorter one.

        100 max_w 2 L(s, w) / (|s| + |w|)

    L is the length of the longest common subsequence, s the shorter text, w a part of the longer one of the same
    length, or at either end of a smaller one: RapidFuzz's ``partial_ratio``. 0 for an empty text.
    """
    short, long = sorted((one, other), key=len)
    n, last = len(short), len(long)
    ends = [(max(k - n, 0), min(k, last)) for k in range(1, last + n)]
    parts = {long[begin:end] for begin, end in ends}
    return max((200 * common_subsequence(short, part) / (n + len(part)) for part in parts), default=0.0) if n else 0.0


def read_principles(reply: str, feedback: str) -> list[Principle]:
    """Return the principles in a reply whose span stands in the feedback; partial ones, helpfulness, which is about a
    response as a whole, and what is no principle are left out."""
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
        if text and text.casefold() != OVERALL and label in ("yes", "no") and quoted(row["span"], feedback):
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
    """Return the principles that all people have of one response, each once, in their order.

    A principle is kept if everybody else, and there is somebody, has a similar one with the same label, and nobody has
    one with the other.

    Args:
        people: the principles of each.
        similar: see :data:`Similar`.
        least: cosine above which two are similar.

    Source: RLBFF (arXiv 2509.21319).
    """
    rows = [(who, p) for who, some in enumerate(people) for p in some]
    if not rows:
        return []
    near = similar([p.text for _, p in rows]) > least
    kept: list[int] = []
    for i, (_, mine) in enumerate(rows):
        alike = [(other, p.fulfilled) for j, (other, p) in enumerate(rows) if near[i, j] or j == i]
        of_all = len({other for other, _ in alike}) == len(people) > 1
        if of_all and all(label is mine.fulfilled for _, label in alike) and not near[i, kept].any():
            kept.append(i)
    return [rows[i][1] for i in kept]
