r"""The dress an answer comes in: thinking, comments, markup and JSON, put off before the answer is looked for."""

from __future__ import annotations

import json
import re
import unicodedata

MAX_RESPONSE = 100_000
"""Characters at the end of a response that are looked at."""
MAX_OBJECT = 4000
"""Characters at the end of a response in which a JSON object with the answer is looked for."""
KEYS = ("final_answer", "answer")
"""Members of a JSON object that hold its answer, the first that is there."""

_THINK = re.compile(r"<think(?:ing)?>")
_UNSEEN_LINE = re.compile(r"^\[//\]: ?# .*$|^[ \t]*%.*$", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~|<(del|s|strike)>[^<]{0,300}</\1>", re.IGNORECASE)
_HTML = re.compile(
    r"</?(?:p|b|i|u|em|strong|ins|mark|span|div|code|center|big|h[1-6]|ul|ol|li|result|solution|output|response)>|"
    r"<br ?/?>",
    re.IGNORECASE,
)
_SIZE = re.compile(r"\\(?:underline|displaystyle|textstyle|[lL]arge|LARGE|[hH]uge|bf|bfseries)(?![A-Za-z])")
_FBOX = re.compile(r"\\(?:fbox|framebox)\s?(?=\{)")
_ONE_TOKEN = re.compile(r"(\\boxed)\s?([0-9A-Za-z])(?![0-9A-Za-z])")
"""TeX takes one token where no brace follows."""
_CALCULATOR = re.compile(r"<<[^<>\n]{1,200}>>")
"""GSM8K's notes for a calculator: ``9*2=$<<9*2=18>>18``."""
_PROGRAM = re.compile(r"^[ \t]*```[^`\n]*\n[^`]*?^[ \t]*```[ \t]*$\n?(?=\s*\S)", re.MULTILINE)
"""A fenced block that something follows."""
_FENCE = re.compile(r"^[ \t]*```[A-Za-z]{0,12}[ \t]*$\n?", re.MULTILINE)
_ROW = re.compile(
    r"^[ \t]*\|[ \t*_]*((?:final )?(?:answer|result))[ \t*_]*\|[ \t]*([^|\n]{1,500}?)[ \t]*\|[ \t]*$", re.I | re.M
)
_HEADING = re.compile(
    r"^(?:#{1,6}[ \t]*|\*\*|__)((?:the )?(?:final )?(?:answer|result))[ \t:.]*(?:\*\*|__)?:?[ \t]*\n\s*"
    r"(?=[^\n]{1,300}(?:\n[ \t]*\n|\s*\Z))",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading whose first paragraph is one line."""
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_PICTURE = r"[\s∎■◻✂-➿☀-⛿\U0001f300-\U0001faff️]"
_PICTURES = re.compile(rf"(?<!{_PICTURE}){_PICTURE}+\Z")
"""The lookbehind keeps a long run that does not end the text from being tried from each of its places."""


class Unfinished(Exception):
    """The response ends inside its thinking."""


def undress(response: str) -> str:
    r"""Return ``response`` with its answer in plain dress, in time linear in its length.

    Thinking that ends, comments and struck-out text go, and so do tags and commands that only change how a text looks,
    programs before the end, and a calculator's notes; the row "answer" of a table and a heading "Answer" with one line
    below it become "Answer: 5", ``\fbox`` becomes ``\boxed``, digits of all scripts become ASCII's, and a JSON object
    at the end that has an ``answer`` becomes a tag. Of a long response, the last :data:`MAX_RESPONSE` characters count.

    Raises:
        Unfinished: the thinking is opened and never ends.
    """
    text = _after_thinking(response[-MAX_RESPONSE:])
    if "<<" in text:
        text = _CALCULATOR.sub("", text)
    if "<" in text:
        if "<!--" in text:
            text = _uncommented(text)
        text = _HTML.sub("", _STRUCK.sub("", text))
    elif "~~" in text:
        text = _STRUCK.sub("", text)
    if "[//]" in text or ("%" in text and "\\" in text):
        text = _UNSEEN_LINE.sub("", text)
    if "\\" in text:
        text = _SIZE.sub("", text)
        if "\\f" in text:
            text = _FBOX.sub(r"\\boxed", text)
        if text.count("\\boxed") != text.count("\\boxed{"):
            text = _ONE_TOKEN.sub(r"\1{\2}", text)
    if "```" in text:
        text = _from_json(text)
        text = _FENCE.sub("", _PROGRAM.sub("", text))
    if "|" in text:
        text = _ROW.sub(r"\1: \2", text)
    text = text.rstrip()
    if not text.isascii():
        text = _PICTURES.sub("", ascii_digits(text))
    if "#" in text or "**" in text or "__" in text:
        text = _HEADING.sub(r"\1: ", text)
    return _from_json(text) if text[-1:] == "}" else text


def ascii_digits(text: str) -> str:
    """Return ``text`` with the decimal digits of all scripts as those of ASCII."""
    return text if text.isascii() else _OTHER_DIGIT.sub(lambda m: str(unicodedata.digit(m[0])), text)


def _after_thinking(text: str) -> str:
    for end in ("</think>", "</thinking>"):
        if end in text:
            rest = text.rpartition(end)[2]
            text = rest if rest.strip() else _THINK.sub("", text.replace(end, "\n"))
    if "<think" in text and _THINK.search(text) is not None:
        raise Unfinished
    return text


def _uncommented(text: str) -> str:
    """Leave out what stands between ``<!--`` and the next ``-->``."""
    kept, place = [], 0
    while (opened := text.find("<!--", place)) >= 0 and (closed := text.find("-->", opened)) >= 0:
        kept.append(text[place:opened])
        place = closed + len("-->")
    return "".join([*kept, text[place:]])


def _from_json(text: str) -> str:
    """Put the answer of the JSON object that ends the text into a tag; an object with two answers has none."""
    body = text[-MAX_OBJECT:].rstrip().removesuffix("```").rstrip()
    if not body.endswith("}"):
        return text
    for match in re.finditer(r"\{(?=\s{0,20}\")", body):
        try:
            pairs = json.loads(body[match.start() :], object_pairs_hook=list)
        except (ValueError, RecursionError):
            continue
        answers = [value for key in KEYS for name, value in pairs if name == key]
        if not answers or len({repr(answer) for answer in answers}) > 1:
            return text
        answer = answers[0] if isinstance(answers[0], str) else json.dumps(answers[0], ensure_ascii=False)
        start = len(text) - len(text[-MAX_OBJECT:]) + match.start()
        before = re.sub(r"```[A-Za-z]*\s*$", "", text[:start])
        return f"{before}<answer>{answer}</answer>"
    return text


__all__ = ["KEYS", "MAX_OBJECT", "MAX_RESPONSE", "Unfinished", "ascii_digits", "undress"]
