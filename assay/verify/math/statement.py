"""The sentence, label or heading of a response that holds its answer, the answer in words.

Markup is taken off, and :data:`A` stands for the answer, so that the words around it can be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math.final import Final
from assay.verify.math.forms import truth
from assay.verify.math.topics import MARKS

A = "\ufffc"
"""Stands for the answer in its sentence."""
_MARKUP = re.compile(
    r"\\(?:(?:text|mathrm|textbf|mathbf|boxed|fbox|emph|textit|textrm|operatorname|ce|large|Large|displaystyle|"
    r"quad|qquad)(?![A-Za-z])|"
    r"[,;! ])\s?\{?|"
    r"\*\*|__|[{}$`]|\\[\[\]()]|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"
)
ENDS = re.compile(
    r"(?<=[^\W\d_][.!?])[\"'”)]*\s+|(?<=[0-9)\]][.!?])\s+(?=[A-Z\ufffc])|\n+|(?<=[。！？।؟])|(?<=\ufffc[.!?])\s+"
)
WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|(?<=[^\W\d_])['’](?=[^\W\d_]))*")
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")


def around_answer(final: Final, response: str) -> tuple[str, str]:
    after = final.after
    if final.framed and not final.marker:
        place = response.rfind(final.text)
        start = max((m.end() for m in ENDS.finditer(response, 0, max(place, 0))), default=0)
        dropped = response[start : max(place, 0)].rstrip(" *")
        if len(dropped.split()) > 3 or "," in dropped:  # a preface rather than a label
            dropped = dropped.rstrip(" :,*")
        aside = f"{dropped}\n" if dropped and not final.lead else ""
        return f"{response[:start]}{aside}{final.lead} {final.text}", after
    place = response.rfind(after) if after else len(response)
    if place < 0:  # the answer of a response without its last remarks
        return f"{final.lead} {final.text}", after if after[:1] in ".,;:!)" else f".{after}"
    return response[:place], response[place:]


def statement(
    before: str, after: str, reference: str, final: Final, agrees: Callable[[str], bool]
) -> tuple[str, list[str], list[str]]:
    """The sentence with the answer in it replaced, the sentences before it and those after it."""
    head, tail = undressed(before[-3000:]), undressed(after[:1200])
    join = len(head)
    text = head + tail
    found: list[re.Match[str]] | None = None
    said = undressed(final.text).strip(" .,!;:\n")
    spelled = [reference.strip(" $.")]
    if said and len(said) < 80 and agrees(said):
        spelled.append(said)
    kind = truth(reference.strip(" $."))
    for one, edged in (
        *((one, True) for one in spelled),
        *((one, False) for one in spelled if kind is None or len(one) > 2),
    ):
        edge = "" if not edged or UNSPACED.search(one) else r"(?<![^\W\d_]){}(?![^\W\d_])"
        pattern = re.compile(edge.format(re.escape(one)) if edge else re.escape(one), re.IGNORECASE)
        found = [m for m in pattern.finditer(text) if m.start() <= join]
        found = [m for m in found if text.count("(", 0, m.start()) <= text.count(")", 0, m.start())] or found
        if found:
            break
    else:
        found = [m for m in WORD.finditer(text) if kind is not None and truth(m.group()) == kind and m.start() <= join][
            -1:
        ]
    if not found:
        return text, [], []
    last = found[-1]
    starts = [m.end() for m in ENDS.finditer(text) if m.end() <= last.start()]
    if kind is not None:  # "No, no es primo."
        last = next(m for m in found if m.start() >= (starts[-1] if starts else 0))
    text = text[: last.start()] + A + text[last.end() :]
    pieces = [p.strip(" \t>") for p in ENDS.split(text)]
    pieces = [p for p in pieces if p]
    index = next(i for i, p in enumerate(pieces) if A in p)
    return pieces[index], pieces[:index], pieces[index + 1 :]


def undressed(text: str) -> str:
    return _MARKUP.sub("", _TAG.sub("\n", text.replace("<answer>", " ").replace("</answer>", " ")))


_TAG = re.compile(r"</?[a-z]+>")


def heading_above(front: str, earlier: list[str]) -> str | None:
    """The line above an answer that stands alone in its line."""
    if re.search(r"\w", re.sub(r"^\W*(?:[-*•>]|[0-9]+[.)])\s", "", front)) or not earlier:
        return None
    above = [line for line in earlier if re.search(r"\w", line)]
    if not above:
        return None
    line = above[-1]
    return line if line.endswith((":", "：")) or line.startswith("#") else None
