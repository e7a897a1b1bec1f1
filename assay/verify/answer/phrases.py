"""Where a phrase announces an answer, "the answer is" and its like in some thirty languages."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from assay.verify.answer.spans import Span

MAX_SENTENCE = 4000
"""Characters of a sentence after the phrase that announces an answer; the rest of a longer one is left out."""

# Emphasis that ends after "**Answer:**", a colon after "is", and words such as "also" in "Das Ergebnis ist also 5".
_LEAD_IN = re.compile(
    r"(?:[*_]{1,3}(?=\s))?\s?[:：]?\s*(?:(?:thus|therefore|then|also|somit|daher|demnach|donc|alors|entonces|pues|quindi|"
    r"dunque|portanto|logo|dus|alltså|więc)\b[ ,:]{1,3})?\s*",
    re.IGNORECASE,
)
# A full stop ends a sentence, but not in "i.e. 5", "Rs. 5", "No. 5", "p.m. on Friday", "5. März".
_SENTENCE_END = re.compile(
    r"\.(?=\s|$)(?<!\.\.\.)(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bd\.h\.)(?<!\bRs\.)(?<!\b[Nn]o\.)(?<!\bNr\.)(?<!approx\.)"
    r"(?<!\bca\.)(?<!\bsq\.)(?<!\bcu\.)(?!(?<=\bm\.)\s[a-z])(?!(?<=[0-9]\.)\s[A-Z][a-zä]{2,8}\b\s?[0-9])|[。\n]"
)
_ITEM = r"[ \t]{0,8}(?:[-*•+–]|[0-9]{1,2}[.)])[ \t]+\S[^\n]{0,60}"
_EQUATION = r"[ \t]{0,8}\$?[A-Za-z](?:_?\{?[0-9]\}?)?[ \t]?[=:][^\n]{1,60}"
_VALUE = r"[ \t]{0,8}[-+−]?[0-9][0-9./]{0,20}[ \t]{0,8}"
_BLOCK = re.compile("|".join(rf"(?:{line}(?:\n{{1,2}}|$)){{2,40}}" for line in (_ITEM, _EQUATION, _VALUE)))
_FORMULA = re.compile(r"[*_\s]{0,6}(?:(\$\$?)|(\\\()|(\\\[)|\\begin\{)")


@functools.cache
def _subjects(ascii_only: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Words in small letters, and the pattern of the announcements that hold them: looking for words is faster."""
    table = tomllib.loads((Path(__file__).parent / "announcements.toml").read_text(encoding="utf-8"))
    found = [(word, _pattern(entry)) for entry in table.values() for word in _shortest(entry["subject"])]
    return tuple(entry for entry in found if entry[0].isascii() or not ascii_only)


@functools.cache
def _line_starts() -> re.Pattern[str]:
    table = tomllib.loads((Path(__file__).parent / "announcements.toml").read_text(encoding="utf-8"))
    words = [re.escape(word) for entry in table.values() for word in entry.get("line", ())]
    signs = r"(?:[:：]|—|–|(?<=nswer\s)=|(?<=nswer)=)(?![:=])"  # "A = ..." gives a name
    return re.compile(rf"^[ \t*_#>]{{0,6}}(?:{'|'.join(words)})[*_]{{0,3}}\s?{signs}", re.I | re.M)


def _shortest(subjects: list[str]) -> tuple[str, ...]:
    """The subjects that hold no other one: where none of them is, no subject is."""
    return tuple(s for s in subjects if not any(other != s and other in s for other in subjects))


def _pattern(entry: dict[str, list[str]]) -> re.Pattern[str]:
    subjects = "|".join(map(re.escape, sorted(entry["subject"], key=len, reverse=True)))
    spaced = entry["subject"][0].isascii() or entry["subject"][0][0] < "\u0e00"
    start, gap = (r"\b", r"[ \t]{1,4}") if spaced else ("", r"\s?")
    verbs = "|".join(re.escape(verb) + (r"\b" if verb.isalpha() and spaced else "") for verb in entry["verbs"] if verb)
    aside = r"(?:[ \t]\([^()\n]{1,60}\)|[ \t](?:to|for|of)[ \t][^.:\n]{1,80}?)?"
    said = rf"|{gap}(?:{verbs})" if verbs else ""
    return re.compile(rf"{start}(?:{subjects}){aside}(?:[*_]{{0,3}}\s{{0,4}}[:：]{said})", re.IGNORECASE)


def phrases(text: str) -> list[Span]:
    """The rest of the sentence after each phrase that announces an answer, in their order; linear time."""
    low = text.lower()
    found: list[Span] = []
    done = 0
    for match in sorted(_announcements(text, low), key=re.Match.start):
        lead = _LEAD_IN.match(text, match.end())
        start = lead.end() if lead is not None else match.end()
        if found and match.end() == found[-1].start:
            continue
        if found and match.start() < found[-1].end:
            # Inside the sentence of the one before, which it narrows.
            found[-1] = Span(found[-1].begin, start, max(done, start), max(done, start))
            continue
        begin = _past_formula(text, start)
        end = _SENTENCE_END.search(text, begin, begin + MAX_SENTENCE)
        done = end.start() if end else min(begin + MAX_SENTENCE, len(text))
        done = max(done, _block_end(text, start, done))
        found.append(Span(match.start(), start, done, done))
    return found


def _announcements(text: str, low: str) -> Iterator[re.Match[str]]:
    ascii_only = text.isascii()
    subjects = _subjects(ascii_only)
    if ascii_only and "answer" in low and (found := list(subjects[0][1].finditer(text))):
        yield from found  # in English; no other language has to be looked for
    else:
        for pattern in {pattern for word, pattern in subjects if word in low}:
            yield from pattern.finditer(text)
    if any(map(text.__contains__, ":：—–=")):
        yield from _line_starts().finditer(text)


def _block_end(text: str, start: int, done: int) -> int:
    """Where a list of lines, or a bracket that is not closed in its line, ends; 0 if there is neither."""
    if done < len(text) and text[done] == "\n" and text[start] in "[({":
        depth = 0
        for place in range(start, min(start + 400, len(text))):
            depth += (text[place] in "[({") - (text[place] in "])}")
            if depth == 0:
                return place + 1
        return 0
    block = _BLOCK.match(text, start)
    return 0 if block is None else len(block.group().rstrip()) + start


def _past_formula(text: str, start: int) -> int:
    """Where to look for the end of a sentence that begins with a formula, which may hold full stops and line breaks."""
    match = _FORMULA.match(text, start)
    if match is None:
        return start
    closing = match[1] or (match[2] and "\\)") or (match[3] and "\\]") or "\\end{"
    end = text.find(closing, match.end(), match.end() + MAX_SENTENCE)
    return start if end < 0 else end + len(closing)
