"""The value that a sentence states: after an announcement, or at the end of a response that marks no answer.

Only the shape of a sentence is looked at, in any language: its formulas, its equals signs, its numbers, and which of
these the question holds already. A sentence that asks, or that puts two values side by side, states none.
"""

from __future__ import annotations

import functools
import re

from assay.verify.answer.commit import alternatives, denied, negated
from assay.verify.answer.phrases import phrases
from assay.verify.math.expressions.values import Choice, Scalar, Sign, Text, Truth, Value
from assay.verify.math.read.reading import LEAD, MAX_LENGTH, read
from assay.verify.math.words.number_words import in_digits

MAX_TAIL = 4000
"""Characters at the end of an unmarked response in which its last sentence is looked for."""
MOST_WORDS = 9
"""Words of the longest value."""
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_SPAN = re.compile(
    r"\$\$?(?! )([^$]{1,1000})(?<! )\$\$?(?![0-9])|\\\(((?:(?!\\\().){1,1000}?)\\\)|\\\[((?:(?!\\\[).){1,1000}?)\\\]|"
    r"\*\*([^*\n]{1,400})\*\*",
    re.DOTALL,
)
_CLAUSE = re.compile(
    r"[,;](?=\s)(?!\s[-+]?(?:[0-9$\\(]|[a-z]\s?[=,;)]))|\s[–—-]\s|\s\((?=[^()]*[^\W\d_]{3})|"
    r"\s(?=(?:because|since|as|so|which|where|when|for all|with|by|after|if|in total|per|each|every)\b)"
)
_ASIDE = re.compile(r"\s\(([^\W\d_]+(?:[- ][^\W\d_]+)*)\)$")
_EXCLAMATION = re.compile(r"(?<=[A-Za-z]\s[0-9])!+$|(?<=[A-Za-z]\s[0-9]{2})!+$")
"""Of "So the number is 5!", which is no factorial."""
_FULL_STOP = re.compile(r"(?<!\.\.)\.$")
_NUMBER = re.compile(
    r"(?<![\w.,^])(?:[$€£¥₹]\s?)?(?:(?<![\w)])[-−])?(?:[$€£¥₹]\s?)?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+(?:,[0-9]+)?)(?:\.[0-9]+)?"
    r"(?:\s?/\s?[0-9]+|\s[0-9]+/[0-9]+)?(?:\s?\\?%)?"
)
_BEGINS = re.compile(r"[$€£¥₹]?[-−]?[$€£¥₹]?[0-9]|[(\[{\\√π∞]|\*\*|\$")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z])|(?<=[。！？])|\n+")
_UNIT = re.compile(r"\s{0,2}((?:\\text\s?\{)?[^\W\d_]{1,20}(?:/[^\W\d_]{1,8})?|°\s?[CF]?)")
_RESULT = re.compile(r".*(?<![<>!=])[=≈](?![=<>])\s*(?=\S)", re.DOTALL)
_CUT = re.compile(r"(?:[-+*/×÷=^(\[{,<>≈]|\\(?:approx|cdot|times)|\b(?:and|or|minus|plus|times|the|is))[\s$*]*\Z")


def _reads(text: str) -> tuple[Value, ...]:
    """The readings of a text that may be a value; a text of many words is none, and need not be read to know it."""
    return () if text.count(" ") > MOST_WORDS and len(_WORD.findall(text)) > MOST_WORDS else read(text)


def states(text: str, kind: Value | None) -> bool:
    """Say whether what comes after "the answer is" states one of the reference's kind, or only talks."""
    if isinstance(kind, Truth):
        return truth(text) is not None
    said = announced(text)
    if said is None or isinstance(kind, Text | Sign | None):
        return said is not None
    return any(map(str.isdigit, said)) or any(not isinstance(value, Text) for value in read(said)[:1])


@functools.lru_cache(1024)  # asked for when marks are looked for, and again of the last one
def announced(text: str) -> str | None:
    """Return the value of a sentence from where its announcement ends, ``None`` where it does not begin with one.

    ``5``, ``5 apples, since 2 + 3 = 5``, ``$x = 5$ where ...``, ``2 + 3 = 5``; words where they are all there is.
    """
    text = _FULL_STOP.sub("", text.strip())
    for emphasis in ("**", "__", "*", "`"):
        opens, closes = text.startswith(emphasis), text.endswith(emphasis)
        if (opens or closes) and text.count(emphasis) == opens + closes:
            text = text.removeprefix(emphasis).removesuffix(emphasis).strip()
    if not text or len(text) > MAX_LENGTH or text.endswith("?") or _CUT.search(text):
        return None
    if (aside := _ASIDE.search(text)) is not None and any(map(str.isdigit, in_digits(aside[1]))):
        text = text[: aside.start()]  # "5 (five)"
    readings = _reads(text)
    if readings and not isinstance(readings[0], Text):
        return text
    head = _CLAUSE.split(text, maxsplit=1)[0].strip()
    if alternatives(text[: len(head) + 12]):
        return None
    if head != text and (readings := _reads(head)) and not isinstance(readings[0], Text | Choice):
        return head
    begun = head[found.end() :] if (found := LEAD.match(head)) is not None else head
    if (span := _SPAN.match(begun)) is not None:
        return next(group for group in span.groups() if group is not None).strip()
    if (chain := _RESULT.match(begun)) is not None and (number := _NUMBER.match(begun, chain.end())) is not None:
        return _with_unit(begun, number)
    if (number := _NUMBER.match(begun)) is not None:
        return _with_unit(begun, number) if len(set(map(_value, _NUMBER.findall(begun)))) == 1 else None
    return text if len(text.split()) <= 12 and not any(map(str.isdigit, head)) else None


def concluded(response: str, question: str) -> str | None:
    """Return the value of the last sentence of an unmarked response that holds one, ``None`` where none does."""
    tail = _EXCLAMATION.sub("", response[-MAX_TAIL:].rstrip())
    before, _, last = tail.rpartition("\n")
    for whole in dict.fromkeys((tail, last)):
        if len(whole) <= 400 and (readings := _reads(whole)) and not isinstance(readings[0], Text):
            beside = _reads(before.rstrip().rpartition("\n")[2][-400:]) if _bare(readings) else ()
            return None if _bare(beside) and beside[0] != readings[0] else whole
    if not any(map(str.isdigit, whole)) and len(whole) <= 400:
        tail = tail[: -len(whole)] + in_digits(whole)
    for sentence in reversed([s.strip() for s in _SENTENCES.split(tail) if s and s.strip()]):
        if any(map(str.isdigit, sentence)) or "$" in sentence or "\\" in sentence:
            if sentence.endswith(("?", "？", ":")) or _CUT.search(sentence):
                return None
            if said := phrases(sentence):
                return announced(sentence[said[-1].start :])
            readings = _reads(sentence)
            if readings and not isinstance(readings[0], Text):
                return sentence
            return _single(sentence, question)
    return _SENTENCES.split(tail)[-1].strip() or None


def last_words(sentence: str, count: int) -> str | None:
    """Return the last ``count`` words of a sentence that states them: ``The fastest one is Evelyn.``"""
    if alternatives(sentence) or sentence.endswith(("?", "？")):
        return None
    words = sentence.rstrip(" .!*_$").split()
    return " ".join(words[-count:]) if len(words) > count and not denied(" ".join(words[:-count])) else None


def _single(sentence: str, question: str) -> str | None:
    """The one value of a sentence: a formula or bold text, the end of a chain, or the number that is no given one."""
    if (begun := _BEGINS.search(sentence)) is not None and not denied(sentence[: begun.start()]):
        rest = _FULL_STOP.sub("", sentence[begun.start() :])
        readings = _reads(rest)
        told = re.search(r"(?<![\\A-Za-z])[^\W\d_]{3}", rest.rpartition("=")[0])  # "2 and 3 make 2 + 3 = 5"
        if readings and not isinstance(readings[0], Text | Choice) and told is None:
            return rest
    if alternatives(sentence):
        return None
    outside = _SPAN.sub(" ", sentence)
    matches = list(_NUMBER.finditer(outside))
    spans = [next(g for g in m.groups() if g is not None).strip() for m in _SPAN.finditer(sentence)]
    spans = [s for s in spans if re.search(r"[0-9\\]", s) or not matches]
    spans = [s for s in spans if (found := read(s)) and not isinstance(found[0], Text)]
    if spans and (len(set(spans)) == 1 or not matches):
        return spans[-1]
    if (chain := _RESULT.match(outside)) is not None and (end := _NUMBER.match(outside, chain.end())) is not None:
        return _with_unit(outside, end)
    if len({_value(m.group()) for m in matches}) > 1:
        given = set(map(_value, _NUMBER.findall(question)))
        matches = [m for m in matches if _value(m.group()) not in given]
    if len({_value(m.group()) for m in matches}) != 1 or denied(outside[: matches[-1].start()]):
        return None
    return _with_unit(outside, matches[-1])


def _bare(readings: tuple[Value, ...]) -> bool:
    return bool(readings) and isinstance(readings[0], Scalar)


def _value(number: str) -> object:
    found = read(number)
    return found[0].node if found and isinstance(found[0], Scalar) else number


def _with_unit(sentence: str, number: re.Match[str]) -> str:
    """The number with the word after it, if the two read as a quantity."""
    text = number.group().strip()
    if (unit := _UNIT.match(sentence, number.end())) is not None:
        both = f"{text} {unit[1]}"
        if any(isinstance(value, Scalar) and value.unit is not None and value.unit.known for value in read(both)):
            return both
    return text


def truth(sentence: str) -> bool | None:
    """Return what the first clause of a sentence says of yes and no, ``None`` where it says neither or both."""
    clause = next(filter(str.strip, re.split(r"[,;.:!\n]", sentence)), "")
    said = {v.value for word in re.findall(r"[^\W\d_]+", clause) for v in read(word)[:1] if isinstance(v, Truth)}
    return said.pop() if len(said) == 1 and not negated(clause.strip()) else None


def verdict_line(response: str) -> bool | None:
    """Return the yes or no that opens the last line of a response which opens with one."""
    for line in reversed(response[-MAX_TAIL:].split("\n")):
        opening = re.match(r"\W*([^\W\d_]+)\b(?!\s+or\b)", line)
        if opening is not None and (found := read(opening[1])[:1]) and isinstance(found[0], Truth):
            return found[0].value
    return None
