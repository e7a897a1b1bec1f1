"""The dress an answer comes in: markup, comments, tables and JSON, put off before the answer is looked for."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from assay.verify.math.reconsidered import disowning

# What no reader sees beside HTML's comments: Markdown's, and whole lines of LaTeX's.
_UNSEEN_LINE = re.compile(r"^\[//\]: ?# .*$|^[ \t]*%.*$", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~|<(del|s|strike)>[^<]{0,300}</\1>", re.IGNORECASE)
_HTML = re.compile(
    r"</?(?:p|b|i|u|em|strong|ins|mark|span|div|code|center|big|h[1-6]|html|body|section|article|ul|ol|li|"
    r"result|final|final[_-]?answer|solution|output|response)>|<br ?/?>",
    re.IGNORECASE,
)
_LOWERED = re.compile(r"<(sub|sup)>([^<>]{1,20})</\1>", re.IGNORECASE)
_FRAME = re.compile(r"\\(?:underline|displaystyle|textstyle|[lL]arge|LARGE|[hH]uge|bf|bfseries)(?![A-Za-z])")
_FBOX = re.compile(r"\\(?:fbox|framebox)\s?(?=\{)")
_ONE_TOKEN = re.compile(r"(\\boxed)\s?([0-9A-Za-z])(?![0-9A-Za-z])")
"""TeX takes one token where no brace follows."""
_ROW = re.compile(
    r"^[ \t]*\|[ \t*_]*(?:final )?(?:answer|result)[ \t*_]*\|[ \t]*([^|\n]{1,500}?)[ \t]*\|[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ANNOUNCED = re.compile(
    r"^([ \t]{0,8}(?:[^\w\s]{1,3}[ \t])?[*_]{0,3})(?:(?:final )?answer[*_]{0,3}[ \t]?[—–]|"
    r"ans(?:[.:]|[ \t]?[—–]))(?=[ \t*_])",
    re.IGNORECASE | re.MULTILINE,
)
# A heading whose whole section is one line or a list.
_HEADING = re.compile(
    r"^#{1,6}[ \t]*(?:the )?(?:final )?(?:answer|result)[ \t*:]*\n\s{0,20}(?:>[ \t]?)?(?=[^\n]{1,200}\s{0,20}\Z|"
    r"(?:[ \t]*(?:[-*•+]|[0-9]{1,2}[.)])[ \t][^\n]{1,60}\n?){2,40}\s{0,20}\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(
    r"(?<=:)([ \t*_]{0,4}\n\s{0,4})>[ \t]?(?=[^\s>=][^\n]{0,300}(?:\n|$))|"
    r"^>[ \t]?(?=[*_$\w#])(?=[^\n]{0,200}[A-Za-z]{3})|(?<!.)>[ \t]?(?=[*_$\w#(\\][^\n]{0,80}\s*\Z)",
    re.M,
)
"""The mark of a quotation in Markdown: after a colon, or before words."""
_BRACKETED = re.compile(
    r"^\[((?:final )?(?:answer|result) ?[:=][^\[\]\n]{1,120})\][ \t]*$", re.IGNORECASE | re.MULTILINE
)
_EMPHASISED = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|sc)?|mathbf|emph)\s?\{\s?((?:the )?(?:final )?(?:answer|result)\s?(?:is)?\s?:?)\s?\}",
    re.IGNORECASE,
)
_TAIL = 90
"""Characters at the end of a text within which :data:`_EQUALS` matches."""
_EQUALS = re.compile(r"\b((?:final )?answer)[*_]{0,3}[ \t]?=(?!=)(?=[^=\n]{1,60}\s*\Z)", re.IGNORECASE)
_RESULT = re.compile(
    r"^(?:\*\*|__)(?:the )?(?:final )?(?:answer|result)[:.]?(?:\*\*|"
    r"__):?[ \t]*\n\s{0,20}([-*•][ \t])?(?=[^\n]{1,200}\s{0,20}\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_PICTURES = re.compile(
    r"[∎■◻\u2700-\u2712\u2714\u2728\u2705\u2600-\u2604\u263a\U0001f300-\U0001f44d\U0001f44f-\U0001f5ff\U0001f600-\U0001f64f"
    r"\U0001f680-\U0001f6aa\U0001f6ac-\U0001faff\ufe0f]"
)
"""Tombstones and friendly pictures; crosses and signs of refusal are none."""
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_QUOTES = re.compile(r"\n\s{0,4}>")
_ABBREVIATED = ("ns.", "ns:", "NS.", "NS:")
_LEADING = re.compile(r"^[ \t]*(?:[➡👉🎯✅☑✔🏁🔹▶►→⇒⟹∴]\ufe0f?[ \t]*)+(?=\S)", re.MULTILINE)
_PRICE_END = re.compile(r"(?<=[0-9])(?:/|\.)[-–](?=\s|$)")
_FENCE = re.compile(r"\s*```\s*$")
KEYS = ("final_answer", "answer")
_CORRECTED = re.compile(r"correct|valid|retract|withdraw|actual|revised|true_answer", re.IGNORECASE)
_TABLE = re.compile(
    r"(?:^|\n)[ \t]*\|(?P<head>[^\n]*)\|[ \t]*\n[ \t]*\|[ \t:|-]+\|(?P<rows>(?:[ \t]*\n[ \t]*\|[^\n]*\|)+)\s*$"
)
_TOTAL = re.compile(
    r"(?:final )?(?:answer|result)|(?:grand )?total|sum|solution|ergebnis|resultado|résultat|итого|合计|答案", re.I
)
_WORKING = re.compile(
    r"answer|reason|rationale|step|explan|thought|think|work|solution|method|approach|confiden|certain|unit|note|check|"
    r"verif|question|problem|result|value|type|format|formula|language|topic|subject|id$|final$|analysis|summary|"
    r"calculation|derivation|comment",
    re.IGNORECASE,
)
"""Members that may stand beside an answer, whatever they hold."""
MAX_OBJECT = 4000


def undress(response: str) -> str:
    r"""Return ``response`` with its answer in plain dress; linear time.

    Comments and struck-out text go, and so do tags and commands that only change how a text looks; the row "answer" of
    a table, "Answer — 5" and "Ans. 5" become "Answer: 5", ``\fbox`` becomes ``\boxed``, and a JSON object at the end
    that has an ``answer`` becomes a tag.
    """
    text = response
    if "<!--" in text:
        text = _uncommented(text)
    if "%" in text or "[//]" in text:
        text = _UNSEEN_LINE.sub("", text)
    if "~~" in text or "<" in text:
        text = _HTML.sub("", _STRUCK.sub("", text))
        text = _LOWERED.sub(lambda m: ("_" if m[1].lower() == "sub" else "^") + f"{{{m[2]}}}", text)
    if "\\" in text:
        text = _FRAME.sub("", text)
        if "\\f" in text:
            text = _FBOX.sub(r"\\boxed", text)
        if text.count("\\boxed") != text.count("\\boxed{"):
            text = _ONE_TOKEN.sub(r"\1{\2}", text)
    if "|" in text:
        text = _table_end(_ROW.sub(r"Final answer: \1", text))
    if not text.isascii():
        text = _LEADING.sub("", ascii_digits(text))
    text = _without_end(text)
    if ">" in text and (text[0] == ">" or _QUOTES.search(text)):
        text = _QUOTED.sub(lambda m: m[1] or "", text)
    named = "nswer" in text or "NSWER" in text or "esult" in text or "RESULT" in text
    if named and "[" in text:
        text = _BRACKETED.sub(r"\1", text)
    if named and ("\\text" in text or "\\math" in text or "\\emph" in text):
        text = _EMPHASISED.sub(r"\1", text)
    if named and "=" in text[-_TAIL:]:
        text = _EQUALS.sub(r"\1:", text)
    if "—" in text or "–" in text or any(map(text.__contains__, _ABBREVIATED)):
        text = _ANNOUNCED.sub(r"\1Answer:", text)
    if named and ("**" in text or "__" in text):
        text = _RESULT.sub(lambda m: "Answer: " + _bullet(text, m[1] or ""), text)
    if "#" in text:
        text = _HEADING.sub("Answer: ", text)
    if "/-" in text or ".-" in text or ".–" in text:
        text = _PRICE_END.sub("", text)
    return _from_json(text)


def _without_end(text: str) -> str:
    """Leave out tombstones, friendly pictures and rules at the end."""
    while True:
        text = text.rstrip()
        if text[-1:] and not text[-1].isascii() and _PICTURES.match(text[-1]):
            text = text[:-1]
        elif (
            text.endswith(("---", "***", "___"))
            and (line := text.rpartition("\n")[2].strip())
            and not line.strip(line[0])
        ):
            text = text[: -len(line)]
        else:
            return text


def _table_end(text: str) -> str:
    """Announce the cell of a final table that is its answer: under "total" or "answer", or the only bold one."""
    table = _TABLE.search(text[-MAX_OBJECT:])
    if table is None:
        return text
    head = [cell.strip(" \t*_") for cell in table["head"].split("|")]
    last = [cell.strip() for cell in table["rows"].strip().split("\n")[-1].strip().strip("|").split("|")]
    named = [k for k, cell in enumerate(head) if _TOTAL.fullmatch(cell)]
    bold = [k for k, cell in enumerate(last) if cell.startswith("**") and cell.endswith("**")]
    chosen = named if len(named) == 1 else bold
    if len(chosen) != 1 or len(last) != len(head) or len(last) < 2:
        return text
    return f"{text.rstrip()}\nAnswer: {last[chosen[0]].strip('*')}"


def _bullet(text: str, mark: str) -> str:
    """A bullet, unless the text has no other: then ``- 5`` is a number."""
    return "" if mark[:1] != "-" or len(re.findall(r"^- ", text, re.MULTILINE)) > 1 else mark


def ascii_digits(text: str) -> str:
    """Return ``text`` with the decimal digits of all scripts as those of ASCII."""
    return text if text.isascii() else _OTHER_DIGIT.sub(lambda m: str(unicodedata.digit(m[0])), text)


def _uncommented(text: str) -> str:
    """Leave out what stands between ``<!--`` and the next ``-->``."""
    kept, place = [], 0
    while (opened := text.find("<!--", place)) >= 0 and (closed := text.find("-->", opened)) >= 0:
        kept.append(text[place:opened])
        place = closed + len("-->")
    return "".join([*kept, text[place:]])


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, the same key twice if it stands there twice."""


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {key: _plain(one) for key, one in value}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _harmless(key: str, value: Any) -> bool:
    """Say whether a member may stand beside an answer: a known one, or one that is no short verdict."""
    if value is False or value is None:
        return _WORKING.search(key) is not None and value is None
    if _WORKING.search(key) is not None or isinstance(value, list | float | int):
        return True
    return len(str(value).split()) > 2 or any(map(str.isdigit, str(value)))


def _from_json(text: str) -> str:
    """Put the answer of the JSON object that ends the text into a tag."""
    body = _FENCE.sub("", text[-MAX_OBJECT:]) if "`" in text[-8:] else text[-MAX_OBJECT:].rstrip()
    if not body.endswith("}"):
        return text
    for match in re.finditer(r"\{(?=\s{0,20}\")", body):
        try:
            pairs = json.loads(body[match.start() :], object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            continue
        if not isinstance(pairs, _Pairs):
            continue
        found = dict(pairs)
        answers = [_plain(found[key]) for key in KEYS if key in found]
        if len(found) < len(pairs) or any(
            (_CORRECTED.search(key) and (value is False or isinstance(value, str | int)))
            or disowning(key, value)
            or (answers and key not in KEYS and not _harmless(key, value))
            for key, value in found.items()
        ):
            answers = [""]  # the object itself says that its answer is wrong, or what it is corrected to
        if len(answers) != 1 or isinstance(answers[0], dict | bool):
            return text
        answer = answers[0] if isinstance(answers[0], str) else json.dumps(answers[0], ensure_ascii=False)
        start = len(text) - len(text[-MAX_OBJECT:]) + match.start()
        before = re.sub(r"```[A-Za-z]*\s*$", "", text[:start])
        return f"{before}<answer>{answer}</answer>"
    return text
