"""Where in a response the final answer stands; :mod:`assay.verify.compare` then says whether it is right."""

from __future__ import annotations

import functools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from assay.errors import UsageError, nearest

Rule = Literal["answer_tag", "boxed", "hashes", "phrase"]
Fallback = Literal["line", "whole", "none"]

RULES: tuple[Rule, ...] = ("answer_tag", "boxed", "hashes", "phrase")


class Span(NamedTuple):
    """An answer ``text[start:end]`` whose marker begins at ``begin`` and is over at ``over``."""

    begin: int
    start: int
    end: int
    over: int


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


# --- spans ------------------------------------------------------------------------------------------------------------

_TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}(?:final[ _-]?)?answer\s{0,3}>", re.IGNORECASE)


def tags(text: str) -> list[Span]:
    """Every ``<answer>...</answer>``, each from the last opening before its end.

    Case and blanks do not matter, and ``<final_answer>`` is the same tag.
    """
    found: list[Span] = []
    opened = None
    if "<" not in text:
        return found
    for match in _TAG.finditer(text):
        if not match[1]:
            opened = match
        elif opened is not None:
            found.append(Span(opened.start(), opened.end(), match.start(), match.end()))
            opened = None
    return found


def open_tag(text: str) -> bool:
    """Say whether the last ``<answer>`` is never closed."""
    last = deque(_TAG.finditer(text), maxlen=1)
    return bool(last) and not last[0][1]


_BRACES = re.compile(r"\\f?boxed\s?\{|\\.|[{}]", re.DOTALL)


def boxes(text: str) -> list[Span]:
    r"""Every ``\boxed{...}`` with balanced braces, in the order of their openings."""
    # One pass with a stack: looking for each box's end separately would be quadratic on unbalanced text.
    first = text.find("boxed")
    if first < 0:
        return []
    open_braces: list[re.Match[str] | None] = []
    found: list[Span] = []
    for token in _BRACES.finditer(text, max(first - 2, 0)):
        symbol = token.group()
        if symbol == "}":
            opened = open_braces.pop() if open_braces else None
            if opened is not None:
                found.append(Span(opened.start(), opened.end(), token.start(), token.end()))
        elif symbol == "{":
            open_braces.append(None)
        elif symbol.endswith("{") and "boxed" in symbol:
            open_braces.append(token)
    return sorted(found)


def hashes(text: str) -> list[Span]:
    """The rest of each line after ``####``, the last such marker of the line."""
    found = []
    place = text.find("####")
    while place >= 0:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        if text.find("\\begin{", place, end) >= 0 > text.find("\\end{", place, end):
            closing = text.find("\\end{", end, end + 4000)
            end = end if closing < 0 else text.find("\n", closing)
            end = len(text) if end < 0 else end
        start = text.rfind("####", place, end) + 4
        while start < end and text[start] in " \t":
            start += 1
        found.append(Span(place, start, end, end))
        place = text.find("####", end)
    return found


_ENGLISH = (
    r"\banswers?(?:[ \t]{1,4}(?:is|are|was|equals))?(?:[*_]{0,3}[ \t]{0,4}[:：]|(?<=is|re)\b|(?<=was)\b|(?<=equals)\b)"
)
_OPENERS = (
    r"\bfinal (?:result|value)\s?(?:is\b|:)",
    r"\bthe result is\b",
    r"(?:答案|答)\s?(?:应该|应|就)?\s?(?:是|为|為|[:：])|故选\s?[:：]?|結果は|答えは|答え\s?[:：]|解答\s?[:：]",
    r"(?:정답|답)\s?(?:은|는|[:：])",
    r"\b(?:la )?respuesta(?: final| correcta)?\s?(?:es\b|[:：])",
    r"\b(?:la )?réponse(?: finale)?\s?(?:est\b|[:：])",
    r"\b(?:die )?antwort\s?(?:ist\b|lautet\b|[:：])|\b(?:das )?(?:end)?ergebnis\s?(?:ist\b|lautet\b|beträgt\b|[:：])",
    r"\bответ(?:ом)?\s?(?:является|равен|[:：—–-])",
    r"\b(?:la )?risposta(?: finale)?\s?(?:è\b|[:：])",
    r"\b(?:a )?resposta(?: final)?\s?(?:é\b|[:：])",
    r"\b(?:het )?antwoord\s?(?:is\b|[:：])|\bsvaret (?:är|er)\b|\bsvar\s?[:：]|\bodpowied[źz]\s?(?:to\b|brzmi\b|[:：])",
    r"\bodpověď\s?(?:je(?: tedy)?\b|[:：])|\brăspuns(?:ul)?\s?(?:este\b|[:：])",
    r"(?:η )?απάντηση\s?(?:είναι|[:：])|\bвідповідь\s?[:：]",
    r"\bcevap\s?[:：]|\b(?:câu trả lời|đáp án)\s?(?:là\b|[:：])|\bjawaban(?:nya)?\s?(?:adalah\b|[:：])",
    r"(?:الجواب|الإجابة|النتيجة|الناتج|الحل)(?: النهائية?| الصحيحة?)?\s?(?:هو|هي|[:：])|उत्तर\s?[:：]|उत्तर(?=\s)|"
    r"परिणाम\s?[:：]|คำตอบ(?:สุดท้าย)?\s?(?:คือ|[:：])",
)
_PHRASE = re.compile(_ENGLISH, re.IGNORECASE)
_PHRASE_ANY = re.compile("|".join((_ENGLISH, *_OPENERS)), re.IGNORECASE)
_FOREIGN = re.compile(
    "result|final "
    "v|答|选|結果|답|respuesta|réponse|antwo|ergebnis|ответ|risposta|resposta|svaret|odpowied|cevap|trả "
    "lời|đáp án|jawaban"
    "|svar|odpově|răspuns|απάντηση|відпов"
    "|الجواب|الإجابة|النتيجة|الناتج|الحل|उत्तर|परिणाम|คำตอบ",
    re.IGNORECASE,
)
# Emphasis that ends after "**Answer:**", and words such as "also" in "Das Ergebnis ist also 5".
_LEAD_IN = re.compile(
    r"(?:[*_]{1,3}(?=\s))?\s*(?:(?:also|somit|daher|demnach|damit|folglich|donc|alors|entonces|pues|por tanto|"
    r"quindi|dunque|"
    r"portanto|logo|dus|alltså|więc|тогда|таким образом)\b[ ,:]{1,3})?\s*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<!\.)\.(?=\s|$)|[。।\n]")


MAX_SENTENCE = 4000
"""Characters of a sentence after the phrase that announces an answer; the rest of a longer one is left out."""


def phrases(text: str) -> list[Span]:
    """The rest of the sentence after each phrase that announces an answer."""
    pattern = _PHRASE_ANY if _FOREIGN.search(text) else _PHRASE
    found: list[Span] = []
    done = 0
    for match in pattern.finditer(text):
        lead = _LEAD_IN.match(text, match.end())
        start = lead.end() if lead is not None else match.end()
        if start < done and _MATH.match(text, start) is None:
            # Inside the sentence of the one before, which it narrows.
            found[-1] = Span(match.start(), start, done, done)
            continue
        if found and match.start() < found[-1].end:
            found.pop()
        begin = _past_math(text, start)
        if begin <= done:
            found.append(Span(match.start(), start, done, done))
            continue
        end = _SENTENCE_END.search(text, begin, begin + MAX_SENTENCE)
        done = end.start() if end else min(begin + MAX_SENTENCE, len(text))
        found.append(Span(match.start(), start, done, done))
    return found


_MATH = re.compile(r"[*_\s]{0,6}(?:(\$\$?)|(\\\()|(\\\[)|\\begin\{)")


def _past_math(text: str, start: int) -> int:
    """Where to look for the end of a sentence that begins with a formula, which may hold full stops and line breaks."""
    match = _MATH.match(text, start)
    if match is None:
        return start
    closing = match[1] or (match[2] and "\\)") or (match[3] and "\\]") or "\\end{"
    end = text.find(closing, match.end(), match.end() + MAX_SENTENCE)
    return start if end < 0 else end + len(closing)


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
