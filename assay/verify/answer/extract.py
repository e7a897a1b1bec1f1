"""Where in a response the final answer stands; :mod:`assay.verify.text.compare` then says whether it is right."""

from __future__ import annotations

import functools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from assay.errors import UsageError, nearest
from assay.verify.answer.phrases import phrases
from assay.verify.answer.spans import Span, boxes, hashes, open_tag, tags

Rule = Literal["answer_tag", "boxed", "hashes", "phrase"]
Fallback = Literal["line", "whole", "none"]

RULES: tuple[Rule, ...] = ("answer_tag", "boxed", "hashes", "phrase")


def extract(response: str, rules: Sequence[str] = RULES, fallback: Fallback = "line") -> str | None:
    r"""Return the final answer of ``response``, stripped; time is linear in its length.

    Each rule in turn narrows the text where it finds its marker, so ``<answer>It is \boxed{5}</answer>`` gives ``5``:

    - ``answer_tag``: the last ``<answer>...</answer>`` or ``<final_answer>``, in any case;
    - ``boxed``: the last ``\boxed{...}`` with balanced braces;
    - ``hashes``: the rest of the line after the last ``####``;
    - ``phrase``: the rest of the sentence after the last "answer is" or "answer:", or their like in another language;
    - ``regex:PATTERN``: the first group (the whole match if it has none) of the last match of PATTERN;
    - ``json:KEY.KEY``: the value at that path of the last JSON object in the text; a number indexes a list.

    Args:
        response: any text.
        rules: which markers count, in this order.
        fallback: without any marker, the last non-empty ``line``, the ``whole`` text, or ``none``.

    Returns:
        The answer (perhaps empty), or ``None`` where there is no marker and no fallback.

    Raises:
        UsageError: a rule that does not exist.
    """
    found, text = False, response
    for rule in rules:
        narrowed = finder(rule)(text)
        if narrowed is not None:
            found, text = True, narrowed
    if found or fallback == "whole":
        return text.strip()
    return _last_line(text) if fallback == "line" else None


def check_rules(rules: Iterable[str], where: str) -> None:
    """Raise UsageError, saying ``where``, for the first rule that does not exist."""
    for rule in rules:
        try:
            finder(rule)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None


@functools.lru_cache(256)
def finder(rule: str) -> Callable[[str], str | None]:
    """Return the function that finds the text a rule marks, or ``None``."""
    kind, colon, detail = rule.partition(":")
    if colon and kind == "regex":
        try:
            pattern = re.compile(detail, re.DOTALL)
        except re.error as error:
            raise UsageError(f"rule {rule!r} is no regular expression: {error}") from None
        return functools.partial(_by_pattern, pattern)
    if colon and kind == "json" and detail:
        return functools.partial(_by_path, tuple(detail.split(".")))
    spans = SPANS.get(rule)
    if spans is None:
        raise UsageError(f"no rule is called {rule!r}{nearest(rule, [*SPANS, 'regex:PATTERN', 'json:KEY'])}")
    return functools.partial(_last_of, spans)


def _last_of(spans: Callable[[str], Iterable[Span]], text: str) -> str | None:
    last = deque(spans(text), maxlen=1)
    return text[last[0].start : last[0].end] if last else None


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2].strip()


SPANS: dict[str, Callable[[str], list[Span]]] = {
    "answer_tag": tags,
    "boxed": boxes,
    "hashes": hashes,
    "phrase": phrases,
}


# --- other rules ------------------------------------------------------------------------------------------------------


def _by_pattern(pattern: re.Pattern[str], text: str) -> str | None:
    last = deque(pattern.finditer(text), maxlen=1)
    if not last:
        return None
    return (last[0].group(1) if pattern.groups else last[0].group()) or ""


MAX_JSON = 100_000
MAX_OBJECTS = 64


def _by_path(path: tuple[str, ...], text: str) -> str | None:
    """Try the last opening braces that could begin an object, from the outermost of the last object inwards."""
    text = text[-MAX_JSON:]
    decoder = json.JSONDecoder()
    places = [m.start() for m in re.finditer(r"[{\[](?=\s{0,20}[\"{\[])", text)][-MAX_OBJECTS:]
    best: str | None = None
    end = -1
    for place in places:
        if place < end:
            continue
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            continue
        found = _walk(value, path)
        best = found if found is not None else best
    return best


def _walk(value: Any, path: tuple[str, ...]) -> str | None:
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"-?[0-9]{1,6}", key) and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


__all__ = [
    "RULES",
    "SPANS",
    "Fallback",
    "Rule",
    "Span",
    "boxes",
    "check_rules",
    "extract",
    "finder",
    "hashes",
    "open_tag",
    "phrases",
    "tags",
]
