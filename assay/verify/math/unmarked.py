"""The final answer of a response that marks none: its last line, formula or sentence, if that concludes anything."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.verify.math.read import MAX_LENGTH, read
from assay.verify.math.values import Text


@dataclass(frozen=True, slots=True)
class Final:
    """A final answer: its text, whether a marker framed exactly it (``framed``) or it is a sentence around it, the
    texts of all different marked answers, what follows, and what comes before in the same sentence."""

    text: str
    framed: bool
    marked: tuple[str, ...] = ()
    after: str = ""
    marker: bool = True
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no final answer."""

    reason: str


_UNCLOSED_THINK = re.compile(r"<think(?:ing)?>")
DENIAL = re.compile(
    r"(?:\bnot|n't|\bnever|\bneither|\bnor|不是|不|nicht|\bno es|n'est pas|не)\s*[:$*(\[\\ ]*$", re.IGNORECASE
)
_CLOSER = re.compile(
    r"let me know|hope (?:this|that)|feel free|is there anything|good luck|thank|happy to|"
    r"if you (?:have|need|want)|great question|"
    r"please (?:ask|tell)|any (?:other|more) questions|best,|cheers|"
    r"^\W*(?:and |all )?(?:done|that'?s (?:it|all)|voil\w+|q\.?\s?e\.?\s?d|easy(?: peasy)?|simple|problem solved|"
    r"solved|perfect|"
    r"finished|ta-?da|there (?:you|we) (?:go|have it)|nice|boom|fertig|listo|fini|готово)\W*$",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z0-9])|(?<=[。！？])|\n+")
_FENCE = re.compile(r"^[ \t]*```[a-z]{0,12}[ \t]*$", re.MULTILINE)
_CODE = re.compile(
    r"^\s*(?:def|return|import|print|exec|eval|while|for|if|let|var|const)\b.*[(:;=]|\breturn\s|print\(|exec\(|;\s*$|==|\blambda\b"
)
_IS_THE_ANSWER = re.compile(
    r"(?:(?:so|hence|thus|therefore|finally)\b,?\s*)?(?:we (?:see|find|"
    r"conclude) that\s*)?(.{1,400}) is (?:the|our|my) (?:final |correct )?(?:answer|result|"
    r"solution)\W*",
    re.IGNORECASE | re.DOTALL,
)
UNFINISHED = re.compile(r"(?<=[^\s*_$])\s*(?:[-+/×÷=^(\[{,<>]|(?<!\*)\*)\s*$")
_PLAN = re.compile(
    r"\b(?:let'?s|let us|let me|we (?:need|must|have) to|first(?:ly)?,|step \d+|i will|i'll|we will|"
    r"we'll|consider|suppose|"
    r"given that|recall|note that|next,)\b|^to [a-z]+ ",
    re.IGNORECASE,
)


_CALCULATOR = re.compile(r"<<[^<>\n]{1,200}>>")


_DISPLAY = re.compile(
    r"(?:\$\$([^$]{1,2000})\$\$|\\\[((?:(?!\\\[).){1,2000}?)\\\]|(?:^|\n)[*\s]*\$([^$]{1,2000})\$\**|(?:^|\n)[*\s]*\\\(((?:(?!\\\().){1,2000}?)\\\)\**"
    r"|(\\begin\{([a-z]*matrix|array)\}(?:(?!\\begin).){1,2000}?\\end\{[a-z]+\}))[\s.]*$",
    re.DOTALL,
)


def unmarked(text: str) -> Final | Missing:
    # GSM8K's calculator notes, "9*2=$<<9*2=18>>18".
    text = _CALCULATOR.sub("", text).rstrip() if "<<" in text else text.rstrip()
    if "```" in text:
        text = _FENCE.sub("", text).rstrip()
    if _UNCLOSED_THINK.search(text) and not re.search(r"</think(?:ing)?>", text):
        return Missing("the thinking does not end")
    if not text.strip():
        return Missing("the response is empty")
    # "So the number is 5!" is no factorial.
    tail = re.sub(r"([A-Za-z] [0-9]{1,20})!+$", r"\1", text[-4000:])
    display = _DISPLAY.search(tail)
    if display is not None:
        return Final(next(g for g in display.groups() if g is not None).strip(), False, marker=False)
    lines = tail.rpartition("\n")[2].strip()
    if (said := _IS_THE_ANSWER.fullmatch(lines)) is not None:
        return Final(said[1].strip(), False)
    if len(tail) <= 400 and "\n" not in tail.strip() and whole(tail):
        return Final(tail.strip(), False, marker=False)
    if whole(lines) and not DENIAL.search(lines):
        return Final(lines, False, marker=False)
    sentences = [s.strip() for s in _SENTENCES.split(tail) if s and s.strip()]
    while len(sentences) > 1 and _CLOSER.search(sentences[-1]):
        sentences.pop()
    last = sentences[-1] if sentences else ""
    if last.endswith(("?", "？")):
        return Missing("it ends in a question")
    if _CODE.search(last):
        return Missing("it ends in code")
    if _PLAN.search(last) and not re.match(r"(?:so|therefore|thus|hence)\b", last, re.IGNORECASE) and "=" not in last:
        return Missing("it ends in the middle of the working")
    if UNFINISHED.search(last):
        return Missing("it ends in the middle of a formula")
    return Final(last, False, marker=False)


def whole(text: str) -> bool:
    readings = read(text.strip()[:MAX_LENGTH]) if len(text) <= MAX_LENGTH else ()
    return bool(readings) and not isinstance(readings[0], Text)
