"""Where in a response the final answer stands; :mod:`assay.verify.compare` then says whether it is right."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

Rule = Literal["answer_tag", "boxed", "hashes", "phrase"]
Fallback = Literal["line", "whole", "none"]

RULES: tuple[Rule, ...] = ("answer_tag", "boxed", "hashes", "phrase")


def extract(response: str, rules: Sequence[Rule] = RULES, fallback: Fallback = "line") -> str | None:
    r"""Return the final answer of ``response``, stripped; time is linear in its length.

    Each rule in turn narrows the text where it finds its marker, so ``<answer>It is \boxed{5}</answer>`` gives ``5``:

    - ``answer_tag``: the last ``<answer>...</answer>``;
    - ``boxed``: the last ``\boxed{...}`` with balanced braces;
    - ``hashes``: the rest of the line after the last ``####``;
    - ``phrase``: the rest of the sentence after the last "answer is" or "answer:".

    Args:
        response: any text.
        rules: which markers count, in this order.
        fallback: without any marker, the last non-empty ``line``, the ``whole`` text, or ``none``.

    Returns:
        The answer (perhaps empty), or ``None`` where there is no marker and no fallback.
    """
    found, text = False, response
    for rule in rules:
        narrowed = _FINDERS[rule](text)
        if narrowed is not None:
            found, text = True, narrowed
    if found or fallback == "whole":
        return text.strip()
    return _last_line(text) if fallback == "line" else None


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2].strip()


def _answer_tag(text: str) -> str | None:
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    return None if start < 0 else text[start + len("<answer>") : end]


_BRACES = re.compile(r"\\boxed\s?\{|\\.|[{}]", re.DOTALL)


def _boxed(text: str) -> str | None:
    # One pass with a stack: looking for each box's end separately would be quadratic on unbalanced text.
    if "\\boxed" not in text:
        return None
    open_braces: list[int | None] = []
    best: tuple[int, int] | None = None
    for token in _BRACES.finditer(text):
        symbol = token.group()
        if symbol == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None and (best is None or start > best[0]):
                best = (start, token.start())
        elif symbol == "{":
            open_braces.append(None)
        elif symbol.endswith("{") and symbol.startswith("\\boxed"):
            open_braces.append(token.end())
    return None if best is None else text[best[0] : best[1]]


def _hashes(text: str) -> str | None:
    _, marker, rest = text.rpartition("####")
    return rest.lstrip(" \t").partition("\n")[0] if marker else None


_PHRASE = re.compile(r"\banswer(?:\s{1,4}is)?(?:\s{0,4}:|(?<=is)\b)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"\.(?=\s|$)|\n")


def _phrase(text: str) -> str | None:
    last = deque(_PHRASE.finditer(text), maxlen=1)
    if not last:
        return None
    rest = text[last[0].end() :].lstrip()
    end = _SENTENCE_END.search(rest)
    return rest[: end.start()] if end else rest


_FINDERS: dict[Rule, Callable[[str], str | None]] = {
    "answer_tag": _answer_tag,
    "boxed": _boxed,
    "hashes": _hashes,
    "phrase": _phrase,
}
