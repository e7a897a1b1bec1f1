# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Whether a response leaves more than one answer standing: the same announcement made again with another value.

Two neighbouring sentences that differ only in their values and in how they are counted ("Answer 1: 65", "Answer 2: 66")
announce the same thing; so does what a label after the answer introduces, unless the label says that it is something
else. Which words the label uses does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.against import VALUE
from assay.verify.math.read import read
from assay.verify.math.unmarked import whole
from assay.verify.math.values import Items, RealSet, Relation

# The first character comes before all conditions, so that ``re`` can skip to where one is.
_UNITS = re.compile(
    r"[\s,](?:(?<=[.!?;。！？]\s)\s*(?![a-z])|(?<=\n)\n*|(?:(?<=,)\s+|(?<=\s)\s*)and\s+(?=(?:the|it|answer|result)\b))"
)
_DRESS = re.compile(
    r"\\boxed\s?\{|\\(?:text|mathrm|textbf|mathbf)\s?\{|\\(?:[()\[\],;!: ]|quad|qquad)|</?answer>|[$*_#|{}`]"
)
_VALUE = re.compile(r"[-+−]?(?:\\?[A-Za-z]{2,8})?[0-9][^\s,;()]*|\\[a-z]+\S*|[√π∞]\S*")
_COUNTER = re.compile(
    r"\b(?:first|second|third|fourth|last|one|two|three|another|other|next|primary|secondary|main|"
    r"alternative|backup|final|"
    r"[a-e]|i{1,3}|iv|v[0-9]?)\b|[^\w@%]+"
)
_COUNTERS = frozenset(
    """
    first second third fourth last one two three another other next primary secondary main alternative backup final iii
    """.split()
)
"""Those in words and of three letters or more."""
_LABELLED = re.compile(r"^(?P<label>[^:=\n]{0,70}?)\s?(?::|=|—|–|\s->|→)\s?(?P<value>[^:\n]{1,120}?)[\s.]*$")
_HARMLESS = Caseless(
    r"\b(?:check\w*|verif\w*|proof|prove|practi[sc]e\w*|problems?|questions?|exercises?|more|test|sanity|"
    r"note|remark|hint|confiden\w+|certainty|difficulty|step|units?|time|points?|"
    r"page|mistakes?|errors?|wrong|incorrect|not|never|no|n't|fail\w*|example|where|with|since|because|"
    r"source|grade|level|"
    r"topic|year|score|approx\w*|rounded|decimal|about|tokens?|words?|forg\w+|instead of|rather than|trap|"
    r"pitfall|would|"
    r"excluded?|rejected?|ruled|impossible|compare|substitut\w+|given|input|sum|total|difference|remainder|before|"
    r"earlier|previous\w*|initial\w*|first attempt|let|then|assume|suppose|consider|denote|recall|formula|"
    r"method|by|via|using|in \w+)\b|≠|\?",
)
_ACCEPTED = Caseless(
    r"\b(?:also|too|as well|equally|likewise|acceptable|accept\w*|fine|works?|valid|plausible|defensible|use|"
    r"take|choose|pick|"
    r"select|prefer\w*|in case|if|should|otherwise|else|fallback|backup|spare|plan b|"
    r"alternative\w*|candidate|option|choice)\b",
)
_CHOOSE = Caseless(
    r"\b(?:choose|pick|select|take|use|keep|accept|grade|count|go with) (?:the |an?y? )?(?:one|whichever|"
    r"either|whatever|which|"
    r"any|best|better|answer|value|result|version)(?: one| of (?:them|these|the two|both))?(?: that| which| "
    r"you| fits| is| "
    r"works| suits| applies|[.!;]|$)|\bwhichever\b|\bboth (?:of (?:these|them)|(?:answers|values|results)) "
    r"(?:are|is|count|"
    r"can|may|should|were)\b|\bboth are (?:offered|given|possible|valid|correct|right|acceptable|final|fine|ok)|"
    r"\beither (?:one|of (?:these|them|the two)|is|answer|value|may|can|works)\b|\byour (?:choice|pick|call)\b|"
    r"\bup to you\b|\bas you (?:like|prefer|wish)\b",
)
_VARIANT = re.compile(
    r"[;(,]\s*(?:if|with|without|for|when|in case|or|otherwise|else|using|"
    r"counting)\b[^:;()\n]{0,60}[:=]\s*\$?(?P<value>-?[0-9][0-9.,/]*[0-9]|[0-9])"
)
_LONG = re.compile(r"(?<!\\)\b[^\W\d_]{3,}")
_ASIDES = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\\boxed")
_IF = re.compile(r"\b(?:if|in case|should)\b(?! you\b| i\b| we\b)[^,:]{0,40}(?=[,:])", re.IGNORECASE)
"""A condition about the answer before, whose words say nothing about the next."""
_ALONE = re.compile(r"^[\s.$*]*\n?\s*[(\[]\s?([^()\[\]\n]{1,40})[)\]][\s.$*]*(?:\n|$)")
_PICTURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
NEAR = 1200
"""Characters after an answer in which another one counts."""


def offered(text: str, said: str, after: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether another value than the right one is announced in the same way, or offered after the answer.

    Args:
        text: the response.
        said: the answer, or the sentence around it, and the rest of its line.
        after: what follows the answer in the response.
        reference: what the answer is compared with.
        agrees: whether a text is the reference.
    """
    near = _PICTURE.sub("", after)[:NEAR]
    if left_open(near) and not left_open(reference):
        return True
    if (alone := _ALONE.match(near)) is not None and _another(alone[1], agrees):
        return True
    if any(map(str.isdigit, near)) or "\\" in near:
        for line in _UNITS.split(near)[:24]:
            if _introduced(line, agrees) or _accepted(line, agrees):
                return True
    if (other := _VARIANT.search(said)) is not None and not agrees(other["value"]):
        return True
    return repeated(text, after, reference, agrees)


def left_open(after: str) -> bool:
    """Say whether what follows an answer leaves the choice to the reader: ``Choose the one that fits.``"""
    return _CHOOSE.search(after) is not None


def _another(value: str, agrees: Callable[[str], bool]) -> bool:
    value = value.strip(" .$*").removeprefix("\\(").removesuffix("\\)")
    return any(map(str.isdigit, value)) and whole(value) and not agrees(value)


def _introduced(line: str, agrees: Callable[[str], bool]) -> bool:
    """``Plan B: 66`` after the answer."""
    match = _LABELLED.match(_light(line))
    if match is None or not re.search(r"[^\W\d_]{2}", match["label"]) or _HARMLESS.search(_IF.sub("", line)):
        return False
    if re.search(r"[=—–→>]", line) and re.search(r"[0-9\\]", match["label"]) and ":" not in line:
        return False
    return _another(match["value"], agrees) and "=" not in match["value"]


def _accepted(line: str, agrees: Callable[[str], bool]) -> bool:
    """``66 is also acceptable.`` after the answer."""
    if len(line) > 160 or "=" in line or not _ACCEPTED.search(line):
        return False
    if _HARMLESS.search(_IF.sub("", line)):
        return False
    values = list(VALUE.finditer(_light(line)))
    return len(values) == 1 and not agrees(_text(values[0]))


def _light(text: str) -> str:
    """A line without emphasis and boxes around numbers."""
    return re.sub(r"\\boxed\s?\{([^{}]*)\}", r"\1", re.sub(r"[*_#|`](?![{0-9])", "", text)).strip()


def _text(value: re.Match[str]) -> str:
    return next(group for group in value.groups() if group is not None)


def _plain(text: str) -> str:
    return " ".join(_DRESS.sub(" ", text).split())


def _frame(sentence: str) -> str:
    """A sentence with its values as @, without counters: what announces the same looks the same."""
    said = re.sub(
        r"\([^()]*\)(?!\s*$)|\[[^\[\]]*\]|^\s*(?:[-•–+]|[0-9]{1,2}[.)]|\(?[a-zA-Z0-9][).])\s", " ", f"{sentence} "
    )
    said = _VALUE.sub("@", _plain(said).casefold())
    return re.sub(r"(?:@\s?)+", "@", _COUNTER.sub(" ", said).replace(" ", ""))


def _words(sentence: str) -> list[str]:
    """The longer words that are no counters: a quick look at what :func:`_frame` would compare."""
    if "(" in sentence or "[" in sentence or "\\boxed" in sentence:
        sentence = _ASIDES.sub(" ", sentence)
    return [word for word in _LONG.findall(sentence.casefold()) if word not in _COUNTERS]


def repeated(text: str, after: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a neighbour of the answer's sentence announces another: ``Option A: 66`` beside ``Option B: 65``."""
    before = text[: len(text) - len(after)] if after else text
    after = after[:400]
    tail = before[-400:]
    lines = [line for line in _UNITS.split(tail) if line and line.strip(" $*.-|")][-3:]
    following = [line for line in _UNITS.split(after[:400]) if line and line.strip(" $*.-|")][:2]
    if after and lines and not after.startswith("\n") and following:
        joined = lines[-1] + following[0]
        place, lines = len(lines) - 1, [*lines[:-1], joined, *following[1:]]
    else:
        place, lines = len(lines) - 1, [*lines, *following]
    if place < 0:
        return False
    words = _words(lines[place])
    beside = [k for k in (place - 1, place + 1) if 0 <= k < len(lines) and _words(lines[k]) == words]
    kind = read(reference)[:1] if beside else ()
    if not kind or isinstance(kind[0], Items | RealSet | Relation) or "\\begin" in reference:
        return False
    mine = _frame(lines[place])
    if "=" in "".join(lines) and re.search(r"[a-z]", mine) is None:
        return False  # a computation
    if "@" not in mine or "step" in mine or "&" in lines[place] or "\\\\" in lines[place]:
        return False
    for other in beside:
        if _frame(lines[other]) == mine and not lines[other].rstrip().endswith("?"):
            values = list(VALUE.finditer(_light(lines[other])))
            if values and not agrees(_text(values[-1])) and not agrees(_light(lines[other]).rpartition(":")[2].strip()):
                return True
    return False
