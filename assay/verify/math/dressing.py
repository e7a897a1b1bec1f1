"""The dress an answer comes in: markup, comments, tables and JSON, put off before the answer is looked for."""

from __future__ import annotations

import json
import re

# What no reader sees beside HTML's comments: Markdown's, and whole lines of LaTeX's.
_UNSEEN_LINE = re.compile(r"^\[//\]: ?# .*$|^[ \t]*%.*$", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~|<(del|s|strike)>[^<]{0,300}</\1>", re.IGNORECASE)
_HTML = re.compile(r"</?(?:p|b|i|u|em|strong|ins|mark|span|div|code|center|big|h[1-6])>|<br ?/?>", re.IGNORECASE)
_FRAME = re.compile(r"\\(?:underline|displaystyle|textstyle|[lL]arge|LARGE|[hH]uge|bf|bfseries)(?![A-Za-z])")
_FBOX = re.compile(r"\\fbox\s?(?=\{)")
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
    r"^#{1,6}[ \t]*(?:the )?(?:final )?(?:answer|result)[ \t*:]*\n\s{0,20}(?=[^\n]{1,200}\s{0,20}\Z|"
    r"(?:[ \t]*(?:[-*•+]|[0-9]{1,2}[.)])[ \t][^\n]{1,60}\n?){2,40}\s{0,20}\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_PRICE_END = re.compile(r"(?<=[0-9])/-(?=\W|$)")
_FENCE = re.compile(r"\s*```\s*$")
KEYS = ("final_answer", "answer")
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
    if "\\" in text:
        text = _FBOX.sub(r"\\boxed", _FRAME.sub("", text))
    if "|" in text:
        text = _ROW.sub(r"Final answer: \1", text)
    text = _ANNOUNCED.sub(r"\1Answer:", text)
    if "#" in text:
        text = _HEADING.sub("Answer: ", text)
    if "/-" in text:
        text = _PRICE_END.sub("", text)
    return _from_json(text)


def _uncommented(text: str) -> str:
    """Leave out what stands between ``<!--`` and the next ``-->``."""
    kept, place = [], 0
    while (opened := text.find("<!--", place)) >= 0 and (closed := text.find("-->", opened)) >= 0:
        kept.append(text[place:opened])
        place = closed + len("-->")
    return "".join([*kept, text[place:]])


def _from_json(text: str) -> str:
    """Put the answer of the JSON object that ends the text into a tag."""
    body = _FENCE.sub("", text[-MAX_OBJECT:]) if "`" in text[-8:] else text[-MAX_OBJECT:].rstrip()
    if not body.endswith("}"):
        return text
    for match in re.finditer(r"\{(?=\s{0,20}\")", body):
        try:
            found = json.loads(body[match.start() :])
        except (ValueError, RecursionError):
            continue
        answers = [found[key] for key in KEYS if key in found]
        if len(answers) != 1 or isinstance(answers[0], dict | bool) or answers[0] is None:
            return text
        answer = answers[0] if isinstance(answers[0], str) else json.dumps(answers[0], ensure_ascii=False)
        start = len(text) - len(text[-MAX_OBJECT:]) + match.start()
        before = re.sub(r"```[A-Za-z]*\s*$", "", text[:start])
        return f"{before}<answer>{answer}</answer>"
    return text
