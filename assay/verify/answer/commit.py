r"""Which answer a response commits to: the last mark, unless what stands right beside it makes it none.

A mark is a tag, a box, ``####`` or a phrase such as "the answer is". The mark is the commitment: prose around it is not
judged, since it earns a policy nothing. What would pay for a policy that does not know the answer is structural, and is
refused: several values marked at once, a value that a formula goes on from, a negation that touches the mark.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.verify.answer.extract import SPANS, finder
from assay.verify.answer.spans import Span, open_tag

MAX_MARKS = 32
"""Marks at the end of a response that are compared with each other."""


@dataclass(frozen=True, slots=True)
class Marked:
    """An answer that a response marks.

    Attributes:
        text: what the mark frames; of a phrase, the rest of its sentence.
        rule: the rule that found it, see :func:`~assay.verify.answer.extract.extract`.
        beside: the other values that are marked beside it, in their order, itself among them; empty if there are none.
        before: up to 60 characters of the same line before the mark.
        after: up to 60 characters of the same line after it.
    """

    text: str
    rule: str
    beside: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a response has no answer, and the stage of judging that found so."""

    stage: str
    reason: str


@functools.cache
def _words() -> dict[str, re.Pattern[str]]:
    table = tomllib.loads((Path(__file__).parent / "beside_marks.toml").read_text(encoding="utf-8"))

    def joined(key: str) -> str:
        ascii_words = "|".join(re.escape(w) for w in table[key] if w.isascii() or w[0] < "\u0e00")
        others = "|".join(re.escape(w) for w in table[key] if not w.isascii() and w[0] >= "\u0e00")
        return rf"(?:\b(?:{ascii_words})\b|{others})" if others else rf"\b(?:{ascii_words})\b"

    return {
        "negation": re.compile(rf"(?:{joined('negations')}|n['’]t|≠|\\neq?|¬)$", re.I),
        "negated": re.compile(rf"\W*{joined('negations')}", re.I),
        "alternative": re.compile(joined("alternatives"), re.I),
    }


_TOUCHING = " \t\n:*_$({[\\"
"""What may stand between a negation and the mark that it touches."""


@functools.cache
def _endings() -> tuple[str, ...]:
    """What a text ends in that ends in a negation; looking for these is much faster."""
    table = tomllib.loads((Path(__file__).parent / "beside_marks.toml").read_text(encoding="utf-8"))
    return (*table["negations"], "n't", "n’t", "≠", "\\ne", "\\neq", "¬")


def negated(text: str) -> bool:
    """Say whether a text begins with a negation: ``not 5``."""
    return _words()["negated"].match(text) is not None


def denied(before: str) -> bool:
    """Say whether a text ends in a negation that touches what follows: ``The answer is not``."""
    tail = before.rstrip(_TOUCHING).removesuffix("<answer>").rstrip(_TOUCHING)[-24:].casefold()
    if not tail.endswith(_endings()):
        return False
    return _words()["negation"].search(tail) is not None


def alternatives(text: str) -> bool:
    """Say whether a text has a word that puts values side by side: ``4 or 5``."""
    return _words()["alternative"].search(text) is not None


def commit(
    text: str,
    rules: Sequence[str],
    states: Callable[[str], bool],
    same: Callable[[str, str], bool],
) -> Marked | Refused | None:
    """Return the answer that an undressed response marks, why it marks none, or ``None`` where there is no mark.

    The last mark decides; a phrase counts where what it announces states a value. An earlier mark with another value
    is replaced by a later sentence or line, unless a word puts the two side by side. Rules of the user's own
    (``regex:``, ``json:``) say where the answer is, and nothing else is looked at.

    Args:
        text: the response, see :func:`~assay.verify.answer.undress.undress`.
        rules: what marks an answer; their order does not matter.
        states: whether the rest of a sentence after a phrase states an answer rather than talks about one.
        same: whether two marked texts are the same answer.
    """
    framed: list[tuple[Span, str]] = []
    for rule in rules:
        spans = SPANS.get(rule)
        if spans is None:
            found = finder(rule)(text)
            if found is not None:
                return Marked(found.strip(), rule)
        elif rule != "phrase":
            framed += [(span, rule) for span in spans(text)]
    if (cut := _cut(text, rules, framed)) is not None:
        return cut
    if len(framed) > 1:
        framed = _innermost(sorted(framed, key=lambda entry: (entry[0].start, -entry[0].end))[-MAX_MARKS:])
    stated = [entry for entry in framed if text[entry[0].start : entry[0].end].strip(" \n\t$\\{}.")]
    if framed and not stated:
        return Refused("locate", "the mark is empty")
    if "phrase" in rules:
        over = stated[-1][0].over if stated else 0
        for begun in SPANS["phrase"](text[over:]):
            if states(text[over + begun.start : over + begun.end].strip()):
                stated.append((Span(*(place + over for place in begun)), "phrase"))
    if not stated:
        return None
    return _last(text, stated, same)


def _cut(text: str, rules: Sequence[str], framed: Sequence[tuple[Span, str]]) -> Refused | None:
    """A last box or tag that is opened and never closed: the response was cut."""
    if "boxed" in rules and (place := text.rfind("boxed")) >= 0:
        opening = re.match(r"boxed\s?\{", text[place : place + 8])
        closed = max((span.start for span, rule in framed if rule == "boxed"), default=-1)
        if opening is not None and place + opening.end() > closed:
            return Refused("locate", "the last box is not closed")
    if "answer_tag" in rules and "<" in text and open_tag(text):
        return Refused("locate", "the last <answer> is not closed")
    return None


def _innermost(found: list[tuple[Span, str]]) -> list[tuple[Span, str]]:
    """Leave out marks around marks."""
    return [
        (span, rule)
        for k, (span, rule) in enumerate(found)
        if k + 1 == len(found) or not span.start <= found[k + 1][0].start < found[k + 1][0].over <= span.over
    ]


def _last(text: str, found: list[tuple[Span, str]], same: Callable[[str, str], bool]) -> Marked | Refused:
    span, rule = found[-1]
    content = text[span.start : span.end].strip()
    line = text.rfind("\n", 0, span.begin) + 1
    before = text[max(line, span.begin - 60) : span.begin]
    after = text[span.over : span.over + 60].partition("\n")[0]
    if rule != "hashes" and denied(before):
        return Refused("commit", "the mark is denied")
    if rule in ("boxed", "answer_tag") and operand(before, after):
        return Refused("commit", "the marked value is a part of a formula")
    other = _OFFERED.match(_TOUCHED.sub("", after))
    if other is not None and alternatives(other[1]) and not same(other[2], content):
        return Refused("commit", "another value is offered beside the mark")
    beside, later = [content], span
    by = rule
    for earlier, how in reversed(found[:-1]):
        if _replaced(text, earlier, later) or (how != by != "boxed" and "\n" in text[earlier.over : later.begin]):
            break
        beside.insert(0, text[earlier.start : earlier.end].strip())
        later, by = earlier, how
    if all(same(one, content) for one in beside[:-1]):
        beside = []
    return Marked(content, rule, tuple(beside), before, after)


_BREAK = re.compile(r"[.!?](?=\s|$)|[。！？\n]")


def _replaced(text: str, earlier: Span, later: Span) -> bool:
    """Say whether a mark replaces an earlier one: it stands in a later sentence or line, with words of its own.

    Not where a word puts the two side by side, or one follows the other under the same label, as in a numbered list.
    """
    pieces = _BREAK.split(text[earlier.over : later.begin])
    own = [piece for piece in pieces[1:] if re.search(r"[^\W\d_]{2}", piece)]
    if len(pieces) < 2 or not (own or re.search(r"[^\W\d_]{2}", text[later.begin : later.start].replace("boxed", ""))):
        return False
    if own and alternatives(own[-1]):
        return False
    label = _BREAK.split(text[max(earlier.begin - 80, 0) : earlier.begin])[-1]
    return len(own) > 1 or _letters(own[0] if own else "") != _letters(label)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).casefold()


_TOUCHED = re.compile(r"^[\s$\\)\]},;(*_]*")
_OFFERED = re.compile(r"([^\W\d_]{1,20}(?: [^\W\d_]{1,8})?)\s[$\\({\[*]*([-−]?[0-9][0-9.,/]*)")
"""An alternative right behind a mark: ``\\boxed{5} or 6``."""
_OPERATOR = (
    r"[+*/×÷±^√<>≤≥≠|]|\\(?:cdot|times|div|pm|leq?|leqslant|geq?|geqslant|lt|gt|neq?|not|sqrt|[dt]?frac|sin|cos|tan|log|ln)\b|"
    r"<=|>=|(?<=\s)!="
)
_BEFORE = re.compile(
    rf"(?:(?:^|(?<=[\s$\w)}}\]]))(?:{_OPERATOR})[\s${{]*|(?:^|[=$({{\[:]|\bis|\bare)\s*[-−]\s*|"
    r"(?:^|[^A-Za-z\\0-9])[0-9)\]}]*[0-9)]\{?|(?<![A-Za-z\\])[A-Za-z])$"
)
"""An operator, a sign, a factor: what makes a formula of the marked value."""
_AFTER = re.compile(
    r"[\s$]*(?:[+*/×÷±<>≤≥≠]|\^(?!\s?\{?\s?\\?(?:circ|prime|['°]))|!(?=[\s$]*[-+*/=])|[-−]\s?(?:[0-9\\(]|[A-Za-z](?![A-Za-z]))|"
    r"\)\s?\^|\}\s?\{|\\(?:cdot|times|div|pm|leq?|geq?|lt|gt|neq?)\b)"
)
_EMPHASIS = re.compile(r"\*{2,3}|__|<answer>[\s$]*$|</answer>.*")
_BULLET = re.compile(r"^\s*(?:[-+*•>]|#+)\s")


def operand(before: str, after: str) -> bool:
    r"""Say whether what touches a box or tag makes it a part of a formula: ``\boxed{42} + 1``, ``x > \boxed{42}``.

    Args:
        before, after: the text of the same line that ends where the mark begins, and that begins where it ends.
    """
    if "*" in before or "_" in before or "<" in before:
        before = _EMPHASIS.sub("", before)
    head = _BULLET.sub("", before).rstrip()
    if head.endswith(("$", "\\(", "\\[")):
        opened = head.rstrip("$([\\ ")
        # "is $\boxed{5}$" opens a formula, "x > $\boxed{5}$" goes on with one.
        head = opened if opened[-1:] in "+*/×÷<>≤≥≠^" and opened[-2:-1] in " " and opened else ""
    tail = _EMPHASIS.sub("", after) if "*" in after or "_" in after or "<" in after else after
    return _AFTER.match(tail) is not None or (bool(head) and _BEFORE.search(head) is not None)


__all__ = ["MAX_MARKS", "Marked", "Refused", "alternatives", "commit", "denied", "negated", "operand"]
