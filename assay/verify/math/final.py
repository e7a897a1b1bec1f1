"""Which part of a response is its final answer, and whether the response stands by it.

Markers count by place, not by kind: the last one is the answer. A response is refused where it does not commit to one
answer: its last box or tag is not closed, it marks different answers without taking back the earlier ones, it denies or
doubts what it marks, or it goes on to another answer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from assay.verify.answer.extract import SPANS, Span, finder, open_tag
from assay.verify.caseless import Caseless
from assay.verify.math.against import led_against
from assay.verify.math.context import Context
from assay.verify.math.equal import matches
from assay.verify.math.foreign_doubt import CORRECTED
from assay.verify.math.operand import operand
from assay.verify.math.read import MAX_LENGTH, read
from assay.verify.math.stance import ATTRIBUTED
from assay.verify.math.unmarked import DENIAL, UNFINISHED, Final, Missing, contrasted, thinking, unmarked, whole
from assay.verify.math.values import RealSet, Text, Truth

MAX_RESPONSE = 100_000
"""Characters at the end of a response that are searched for the final answer."""


_CORRECTION = Caseless(
    r"\b(?:wait|actually|correct(?:ion|ing|ed)?|mistake|error|instead|rather|recheck|re-check|hmm|sorry|oops|"
    r"scratch|redo|"
    r"make that|re-?evaluat\w+|re-?calculat\w+|re-?consider\w*|double[- ]check\w*|wrong|incorrect|not right|"
    r"no,|let me re\w+|let me check|final answer|finally|"
    r"in conclusion|to conclude|therefore|thus|hence|in total|altogether|combin\w+|revis\w+|i meant?|on second thought|"
    r"all together|overall|substitut\w+|reflection|change my|changed my|revise|redone|redoing|"
    r"after check\w*|however|but |so the (?:final )?answer|now (?:we|that))\b|等等|不对|更正|所以|因此|最终|"
    r"espera|corrección|attends|moment|nein|" + CORRECTED
)
_TAKEN_BACK = Caseless(
    r"\b(?:wait|correct(?:ion|ing|ed)|mistake\w*|error|wrong|incorrect|oops|sorry|hold on|instead|replaced?|redo\w*)\b|"
    + CORRECTED
)
"""What tells that an earlier marked answer is no part of the final one."""
_DENIED = re.compile(
    r"\W*(?:\w{2,12}ly |in fact |of course )?(?:not|never|neither|no longer|anything but|"
    r"anything other|other than|n't|different from|unequal|不是|不|nicht|pas|no es|לא|אינ\w{1,3})\b",
    re.IGNORECASE,
)
_DOUBTED = Caseless(
    r"\b(?:whether|if|unless|cannot|can't|couldn't|(?<!no )(?<!without )doubt\w*|assum\w*|suppos\w*|claim\w*|wonder\w*|"
    r"unsure|not sure|wrong(?:ly)?|false(?:ly)?|"
    r"unlikely|possible|candidate|disagree|deny|denies)\b[^.,;:!?\n]{0,40}$",
)
_SO_THE = re.compile(
    r"\b(?:is|are|was|were) (?:clearly |simply |just )?(?:wrong|false|mistaken|incorrect),? (?:and|so|hence|"
    r"thus|therefore)\b",
    re.IGNORECASE,
)
"""Where a doubt about something else ends: "so the claim is wrong and the answer is 5"."""
_RULED_OUT = Caseless(r"\b(?:either|is not|isn't|cannot be|can't be|wrong|rule out|not equal to)\b[^.,]{0,24}$")
_CUT = re.compile(r"(?:[0-9$)}],|\b(?:minus|plus|times|divided|over|and|or|und|y|et))[\s$]*$", re.IGNORECASE)
_OR = re.compile(r"(?:\bor|\boder|\bou|或|或者|\bили)\s*[$\\(\[*]*$", re.IGNORECASE)
_EXAMPLE = re.compile(
    r"\b(?:example|e\.g\.|for instance|similar|sample|template|format(?:ted)?|such as|textbook|trial|look(?:s|"
    r"ing)? like|"
    r"in the form|(?:another|other|previous|earlier|different) (?:task|problem|question|exercise)|"
    r"(?:first|initial|my) (?:attempt|try|guess|estimate)|draft|(?:intermediate|auxiliary) (?:step|result|value)|"
    r"(?:along|on) the way|"
    r"zwischen(?:schritt|ergebnis)|half the \w+|first the \w+)\b",
    re.IGNORECASE,
)
"""What stands before a box that shows a format, a trial, or the answer of another task."""
_THE_ANSWER = re.compile(
    r"\bthe (?:final |correct |actual |real |full )?(?:answer|result|solution)\b|答案|respuesta|réponse|antwort|ответ",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"\b(?:another|other|or|also|alternativ\w+|possib\w+|maybe|perhaps|either|could|might)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"-?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?")


MAX_MARKS = 32
"""Markers at the end of a response that are compared with each other."""


def locate(response: str, rules: Sequence[str], strict: bool) -> Final | Missing:
    """Return the final answer of ``response``.

    Args:
        response: any text; only its last :data:`MAX_RESPONSE` characters are searched.
        rules: markers, see :func:`~assay.verify.answer.extract.extract`; their order does not matter.
        strict: a response without a marker has no answer; otherwise its last sentence that can hold one is taken.
    """
    text = response[-MAX_RESPONSE:]
    for end in ("</think>", "</thinking>"):
        if end in text:
            rest = text.rpartition(end)[2]
            text = rest if rest.strip() else text.replace(end, "\n")
    if thinking(text):
        return Missing("the thinking does not end")
    found: list[tuple[Span, str]] = []
    for rule in rules:
        spans = SPANS.get(rule)
        if spans is not None:
            found += [(span, rule) for span in spans(text)]
            continue
        marked = finder(rule)(text)
        if marked is not None:
            # Rules of the user's own say where the answer is; nothing else is looked at.
            return Final(marked.strip(), True)
    if (broken := _broken(text, rules, found)) is not None:
        return broken
    if len(found) > 1:
        found.sort(key=lambda entry: (entry[0].start, -entry[0].end))
        found = _innermost(text, found[-MAX_MARKS:])
    if not found:
        return Missing("no marked answer") if strict else unmarked(text)
    return _committed(text, found)


def _broken(text: str, rules: Sequence[str], found: list[tuple[Span, str]]) -> Missing | None:
    """A last box or tag that is opened and never closed: the response was cut."""
    if "boxed" in rules and (place := text.rfind("boxed")) >= 0:
        closed = max((span.start for span, rule in found if rule == "boxed"), default=-1)
        opening = re.match(r"boxed\s?\{", text[place : place + 8])
        if opening is not None and place + opening.end() > closed:
            return Missing("the last box is not closed")
    if "answer_tag" in rules and "<" in text and open_tag(text):
        return Missing("the last <answer> is not closed")
    return None


def _innermost(text: str, found: list[tuple[Span, str]]) -> list[tuple[Span, str]]:
    """Leave out markers around markers, and sentences after a framed answer that announce no value."""
    kept: list[tuple[Span, str]] = []
    for place, (span, rule) in enumerate(found):
        inner = next(
            (s for s, _ in found[place + 1 : place + 2] if s.start >= span.start and s.over <= span.over), None
        )
        if inner is None:
            kept.append((span, rule))
    framed = [k for k, (_, rule) in enumerate(kept) if rule != "phrase"]
    if framed:
        last = framed[-1]
        kept = kept[: last + 1] + [e for e in kept[last + 1 :] if _announces(text[e[0].start : e[0].end], True)]
    else:
        while len(kept) > 1 and not _announces(text[kept[-1][0].start : kept[-1][0].end]):
            kept.pop()
    return kept


_PRAISE = re.compile(r"(?:in)?correct|right|wrong", re.IGNORECASE)


def _announces(content: str, framed: bool = False) -> bool:
    """Say whether the rest of a sentence after "the answer is" states a value rather than talks about one."""
    content = content.strip()
    if not content or len(content) > MAX_LENGTH:
        return False
    readings = read(content)
    if readings and isinstance(readings[0], Truth) and _PRAISE.match(content):
        return False
    if readings and not isinstance(readings[0], Text):
        return True
    if not framed:
        return _NUMBER.search(content) is not None
    head = re.split(r"(?:,|;)?\s+(?=because|since|as|so|which|and|but)|[,;]\s", content, maxsplit=1)[0]
    return bool(read(head)) and not isinstance(read(head)[0], Text)


def _committed(text: str, found: list[tuple[Span, str]]) -> Final | Missing:
    span, rule = found[-1]
    content = text[span.start : span.end].strip()
    marked = [text[s.start : s.end].strip() for s, _ in found]
    # "The answer is not \boxed{5}" denies what it marks.
    if DENIAL.search(text[max(span.begin - 24, 0) : span.begin]):
        return Missing("the marked answer is denied")
    if rule == "phrase" and (meant := contrasted(content)) is not None:
        content = meant
    elif rule == "phrase" and _DENIED.match(content) and not _no_solution(content):
        rest = text[span.over :].strip(" .\n")
        return unmarked(rest) if rest else Missing("the answer is denied")
    if rule == "phrase" and (
        (
            _DOUBTED.search(before := text[max(span.begin - 80, 0) : span.begin])
            and _DOUBTED.search(_SO_THE.split(before)[-1])
        )
        or (UNFINISHED.search(content) and not whole(content))
        or (_CUT.search(content) and not text[span.over :].strip(" .*$"))
    ):
        return Missing("the answer is doubted or cut")
    different = [
        (s, r)
        for (s, r), m in zip(found[:-1], marked[:-1], strict=True)
        if (r != "phrase" or rule == "phrase")
        and _differs(m, content)
        and not _DENIED.match(m)
        and not DENIAL.search(text[max(s.begin - 24, 0) : s.begin])
        and not ATTRIBUTED.search(lead := _lead(text, s))
        and not led_against(lead)
        and not (r != "phrase" and _EXAMPLE.search(lead) and not _EXAMPLE.search(_lead(text, span, s.over)))
    ]
    if different:
        between = text[different[-1][0].over : span.begin]
        settled = _CORRECTION.search(between) is not None or (
            _THE_ANSWER.search(between) is not None and _ANOTHER.search(between) is None
        )
        if not settled and (rule != "phrase" or different[-1][1] != "phrase" or len(between) < 80):
            several = tuple(dict.fromkeys(m for m in marked if m))
            return Final("", True, several) if len(several) > 1 else Missing("several different answers are marked")
    after = text[span.over :]
    if rule != "phrase" and (found_or := _OR.search(text, max(span.begin - 12, 0), span.begin)) is not None:
        # "5/4, or 1.25" says the same twice.
        other = _value_before(text[max(found_or.start() - 120, 0) : found_or.start()])
        if other is not None and not matches(other, content, Context()):
            return Missing("it is one of several answers")
    if rule in ("boxed", "answer_tag") and operand(text[: span.begin], text[span.over :]):
        return Missing("the marked value is a part of a formula")
    if rule == "boxed":
        line = text.rfind("\n", 0, span.begin) + 1
        lead = text[line : span.begin]
        if _RULED_OUT.search(lead[-60:]):
            return Missing("the marked answer is denied or doubted")
    taken_back = bool(different) and _TAKEN_BACK.search(between) is not None
    several = tuple(dict.fromkeys(marked)) if len(set(marked)) > 1 and not taken_back else ()
    return Final(content, rule != "phrase", several, after[:2000], lead="" if rule == "hashes" else _lead(text, span))


def _no_solution(content: str) -> bool:
    """``pas de solution`` denies no answer, it is one."""
    return read(content)[:1] == (RealSet(()),)


def _lead(text: str, span: Span, start: int = 0) -> str:
    """What stands before a marker in the same sentence, from ``start`` on."""
    return _LEAD_ENDS.split(text[max(span.begin - 160, start) : span.begin])[-1].strip(" $*([\\")


_LEAD_ENDS = re.compile(r"[.!?。！？](?=\s)|\n\s*\n|[。！？]")


_VALUE = re.compile(r"\$([^$]{1,100})\$|\\boxed\{(.{1,100})\}\$?|(-?[0-9][0-9.,/]*)")


def _value_before(text: str) -> str | None:
    """The last formula or number of ``text``."""
    last = deque(_VALUE.finditer(text), maxlen=1)
    return next(group for group in last[0].groups() if group is not None) if last else None


def _differs(one: str, other: str) -> bool:
    if one == other:
        return False
    a, b = read(one[:MAX_LENGTH]), read(other[:MAX_LENGTH])
    return not a or not b or (a[0] != b[0] and a[-1] != b[-1])
