"""From the text of an answer to what it can mean.

:func:`read` returns every reading of a text, the likeliest first: ``1,234`` is a number, and where a list is wanted two
numbers; ``5 m`` is a length and also a product. Reading does not know the reference; comparing does.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from assay.verify.math.expressions.congruence import residue
from assay.verify.math.expressions.nodes import Unreadable
from assay.verify.math.expressions.values import Choice, Named, Scalar, Value
from assay.verify.math.read import forms
from assay.verify.math.read.latex import one_group, plain
from assay.verify.math.read.respell import always, unread
from assay.verify.math.read.structure import Reader
from assay.verify.math.read.tokens import tokenize
from assay.verify.math.words.clocks import clock
from assay.verify.math.words.counts import counted
from assay.verify.math.words.dates import calendar_date
from assay.verify.math.words.known import known
from assay.verify.math.words.number_words import in_full

MAX_LENGTH = 4000
"""Characters of the longest answer that is read; a longer one can only equal the reference as text."""

_BULLET = re.compile(r"\s*(?:[-*•+–]|[0-9]{1,2}[.)])[ \t]+")
_EDGES = " \n\t.,;:*`~_「」『』"
_ELLIPSIS = re.compile(r"[0-9]\.{3,5}$")
_EXCLAMATION = re.compile(r"(?<=[^\W\d_]{2})!+$|(?<=\s)!+$")
LEAD = re.compile(
    r"(?:(?:is|are|equals?|equal to|be|would be|it is|it's|they are|there are|exactly|approximately|"
    r"about|roughly|around|simply|just|only|"
    r"both|precisely|clearly|indeed|thus|so|therefore|hence|definitely|a total of|in total|the number|"
    r"the value|the set|the interval|"
    r"the point|the vector|probably|option|approx\.?|ca\.?|es|est|ist|in(?=[ ]?[\[(\]{ℝ⦃])|是|为|為|约|約|"
    r"等于)[ :,]+|~|≈\s?|=\s?|:\s?)+",
    re.IGNORECASE,
)
_IT_IS = re.compile(r"(?:it|this|that|they|he|she)(?:'s| is| was| are| were) (?=\S)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_SIGNED = re.compile(r"(minus|negative|plus|positive)\s+(?=[0-9.\\(√$])", re.IGNORECASE)
_CONJUNCTION = re.compile(r"(,? and |, )")
_TRANSPOSED = re.compile(r"(?<=[\])⟫])\s?\^\s?\{?\s?(?:T|\\top|⊤)\s?\}?$")
_COPULA = re.compile(r"\s?(?:です|である|だ|入니다|입니다|이다|है|हैं)$")
_SPACED_GROUPS = re.compile(r"(?<![0-9.,/^_}])([0-9]{1,3}(?:[ '_][0-9]{3})+)(?![0-9/])")
_POINT_GROUPS = re.compile(
    r"(?<![0-9.,])([0-9]{1,3}(?:\.[0-9]{3})+),([0-9]+)(?![0-9.,])|(?<![0-9.,])([0-9]{1,3}(?:\.[0-9]{3}){2,})(?![0-9.,])"
)
_DECIMAL_COMMA = re.compile(r"([^0-9,]*)([0-9]{1,15}),([0-9]{1,15})((?![0-9])[^,]*)")
_GROUPED_COMMA = re.compile(r"([^0-9,]*)([0-9]{1,3}(?:[ .'][0-9]{3})+),([0-9]{1,15})([^0-9,]*)")
_FEET = re.compile(r"([0-9]{1,4})\s?'\s?([0-9]{1,2})\s?(?:\"|'')")
_PLUS_MINUS = re.compile(r"\+\s?/\s?-\s?|\+-(?=[0-9√\\(])|plus[- /](?:or[- ])?minus\s", re.IGNORECASE)
_LOG_BASE = re.compile(r"\blog_?(2|10|e)\s?\(")
_TIMES_TEN = re.compile(r"(?<=[0-9])\s?[xX]\s?(?=10\s?\^)")
_APPROXIMATE = re.compile(r"(?:approximately|approx\.?|about|roughly|around|~|≈)", re.IGNORECASE)
_ORDINAL = re.compile(r"([0-9]{0,14}(?:1(?=st)|2(?=nd)|3(?=rd)|[0-9](?=th)))(?:st|nd|rd|th)(?=$|\s[^\W\d_]{2})")
_CJK_COUNT = re.compile(
    r"([0-9零〇一二两三四五六七八九十百千万亿点.,]+)\s?[个個只本人块元岁年月天日时時分秒米つ円名枚匹回次頁页张條条件]\w{0,8}"
)


@functools.lru_cache(16384)
def read(text: str) -> tuple[Value, ...]:
    """Return the readings of ``text``, likeliest first, the words of the text last; ``()`` where there is nothing."""
    if len(text) > MAX_LENGTH:
        return ()
    quick = forms.numeral(text)
    if quick is not None:
        return (quick,)
    if "\n" in text:
        text = _without_bullets(text)
    if not text.isascii():
        text = _without_pictures(text)
    spelling = _strip(plain(text))
    while spelling[:2] == "{{" and one_group(spelling) and one_group(spelling[1:-1]):
        spelling = spelling[2:-2].strip()
    if not spelling:
        return ()
    if spelling != text and (quick := forms.numeral(spelling)) is not None:
        return (quick,)
    if (sign := forms.sign(spelling)) is not None:
        return (sign,)
    if (named := known(spelling)) is not None:
        return (named,)
    readings: list[Value] = []
    approximate = _APPROXIMATE.match(spelling) is not None
    stripped = LEAD.sub("", spelling, count=1) if LEAD.match(spelling) else spelling
    stripped = _strip(stripped if stripped.isascii() else _COPULA.sub("", stripped))
    if not stripped:
        return (forms.words_of(spelling),)
    for found in _readings(stripped):
        value = replace(found, inexact=True) if approximate and isinstance(found, Scalar) else found
        if value not in readings:
            readings.append(value)
    words = forms.words_of(spelling)
    if (said := _IT_IS.match(spelling)) is not None:
        readings.append(forms.words_of(spelling[said.end() :]))
    readings.append(words)
    return tuple(readings)


def _without_pictures(text: str) -> str:
    """``text`` without emoji at its ends."""
    start, end = 0, len(text)
    while start < end and (text[start].isspace() or _is_picture(text[start])):
        start += 1
    while start < end and (text[end - 1].isspace() or _is_picture(text[end - 1])):
        end -= 1
    return text[start:end]


def _is_picture(c: str) -> bool:
    return c in "\ufe0f\u200d\u20e3" or (
        c not in "°℃℉™©®№" and not c.isascii() and unicodedata.category(c) in ("So", "Sk")
    )


def _without_bullets(text: str) -> str:
    """The lines of ``text`` without bullets or numbers, if all have one."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and all(_BULLET.match(line) for line in lines):
        return "\n".join(_BULLET.sub("", line, count=1) for line in lines)
    return text


def _strip(text: str) -> str:
    """Take off what surrounds an answer; the ellipsis of a decimal and the sign of a factorial stay."""
    text = text.strip(" \n\t")
    ellipsis = text.endswith("...") and _ELLIPSIS.search(text) is not None
    inner = text.strip(_EDGES)
    if inner[-1:] == "!":
        inner = _EXCLAMATION.sub("", inner).strip(_EDGES)
    if inner[:1].isdigit() and "." in (before := text[: text.find(inner)]) and before[-1] == ".":
        inner = f".{inner}"
    if inner[-1:] in (")", "]") and not any(c in inner for c in "([{⦃⟨<]"[: 7 if inner[-1] == "]" else 8]):
        inner = inner[:-1].rstrip(_EDGES)  # of "(Answer: 5)"
    text = inner
    return f"{text}..." if ellipsis else text


def _readings(text: str) -> list[Value]:
    found: list[Value] = []
    if text.startswith("."):
        text = "0" + text
    wordy = _LETTERS.search(text) is not None
    if "." in text:
        text = _POINT_GROUPS.sub(lambda m: m[1].replace(".", "") + "." + m[2] if m[1] else m[3].replace(".", ""), text)
    if _SPACED_GROUPS.search(text):
        text = _SPACED_GROUPS.sub(lambda m: re.sub("[ '_]", "", m[1]), text)
    if "+" in text or wordy:
        text = _PLUS_MINUS.sub("±", text)
    if "^" in text:
        text = _TRANSPOSED.sub("", _TIMES_TEN.sub("*", text))
    if wordy:
        if "log" in text:
            text = _LOG_BASE.sub(r"log_{\1}(", text)
        text = _SIGNED.sub(lambda m: "-" if m[1][0] in "mnMN" else "", text)
        text = in_full(text)
        if text.startswith("Rs."):
            text = "Rs " + text[3:].lstrip()
    if text[0] in "\"'" and text[-1] == text[0] and len(text) > 2:
        text = text[1:-1]
    if "'" in text and "°" not in text:
        text = _FEET.sub(r"\1 feet \2 inches", text)
    wordless = _WORDLESS.fullmatch(text) is not None
    for form in _FORMS_WITHOUT_WORDS if wordless else _FORMS:
        value: Value | None = form(text)
        if value is not None:
            found.append(value)
            if isinstance(value, Scalar):
                return found
    if not wordless:
        text = _with_counts(text)
    said = text
    if not wordless and (rank := _ORDINAL.match(text)) is not None:
        text = rank[1] + text[rank.end() :]
    found += structured(text)
    if (spelling := counted(text)) != text:
        found += [value for value in structured(spelling) if value not in found]
    if "," in text and (match := _DECIMAL_COMMA.fullmatch(text) or _GROUPED_COMMA.fullmatch(text)) is not None:
        before, whole, decimals, after = match.groups()
        # Three digits after a comma are a group of thousands, unless it is "0,125".
        if len(decimals) != 3 or whole == "0" or len(whole) > 3:
            whole = re.sub("[^0-9]", "", whole)
            decimal = structured(f"{before}{whole}.{decimals}{after}")
            found += [v for v in decimal if isinstance(v.value if isinstance(v, Named) else v, Scalar)]
    if not text.isascii() and not any(isinstance(value, Scalar) and value.unit is not None for value in found):
        found += _other_scripts(text)
    for spelling in always(said):
        found += [value for value in _respelled(spelling) if value not in found]
    if all(isinstance(value, Choice) for value in found):
        for spelling in unread(said):
            if further := _respelled(spelling):
                return found + further
    return found


def _with_counts(text: str) -> str:
    """``two apples and three pears`` as ``2 apples and 3 pears``."""
    whole = forms.counted_words(text)
    if whole is not None:
        return whole
    pieces = _CONJUNCTION.split(text) if " and " in text or ", " in text else [text]
    if any(forms.counted_words(piece) is not None for piece in pieces[::2]):
        return "".join(forms.counted_words(piece) or piece for piece in pieces)
    return text


_Form = Callable[[str], Value | None]
_FORMS: tuple[_Form, ...] = (
    forms.numeral,
    forms.truth,
    forms.choice,
    clock,
    calendar_date,
    residue,
    forms.based,
    forms.spelled,
)
_FORMS_WITHOUT_WORDS: tuple[_Form, ...] = (forms.numeral, calendar_date, forms.based)
_WORDLESS = re.compile(r"(?:[-+0-9.,;{}()\[\]^/*\s=<>|!√π∞∪∩⦃⦄]|\\(?:frac|sqrt)|(?<![A-Za-z])[k-z](?![A-Za-z]))*")
"""A formula without words, times or letters of options."""


def _respelled(text: str) -> list[Value]:
    value = forms.numeral(text) or residue(text)
    return structured(counted(text)) if value is None else [value]


def structured(text: str) -> list[Value]:
    """Read ``text`` by its brackets, separators, relations and operators."""
    found: list[Value] = []
    try:
        tokens = tokenize(text)
        found += Reader(tokens).readings()
    except (Unreadable, RecursionError, OverflowError):
        tokens = []
    if "," in text and any(token.grouped for token in tokens):
        try:
            found += [v for v in Reader(tokenize(text, grouping=False)).readings() if v not in found]
        except (Unreadable, RecursionError, OverflowError):
            return found
    return found


def _other_scripts(text: str) -> list[Value]:
    match = _CJK_COUNT.fullmatch(text)
    value = None if match is None else forms.numeral(match[1]) or forms.spelled(match[1])
    return [] if value is None else [value]


def number(text: str) -> Fraction | None:
    """Return the rational number that ``text`` is in its first reading, ``None`` otherwise."""
    for value in read(text)[:1]:
        if isinstance(value, Scalar) and isinstance(value.node, Fraction):
            return value.node
    return None
